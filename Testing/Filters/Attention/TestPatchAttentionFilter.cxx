#include "vtkPatchAttention.h"

#include "Core/PicturedRecording.h"
#include "Matchers.h"
#include "Pictures.h"
#include "Transformers.h"

#include <vtkPNGWriter.h>

#include <cmath>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr int Size = 32; ///< pixels of the oracle's images, of 4 x 4 patches
constexpr int Tokens = 17;

using Link = std::pair<std::int64_t, std::int64_t>;

class Patches : public Warned<vtkPatchAttention>
{
public:
  /// Its squares are as large as patches.
  explicit Patches(vtkDataObject* input)
    : Warned(input)
  {
    this->Get()->SetHeatSide(1);
  }

  /// Queries and keys of arrows or marks, as rows of the recording's tokens.
  std::vector<Link> Links(int port) { return PairsOf(*this, port); }
};

bool IsInside(const double* point, const std::array<double, 6>& bounds)
{
  return point[0] > bounds[0] && point[0] < bounds[1] && point[1] > bounds[2] &&
         point[1] < bounds[3];
}

/// A byte of a picture, from the top.
double Byte(vtkImageData* image, int x, int y, int channel)
{
  return image->GetScalarComponentAsDouble(x, image->GetDimensions()[1] - 1 - y, 0, channel);
}

/// The vision transformer of the oracle, and its recording of the oracle's two images.
class PatchAttentionFilter : public testing::Test
{
protected:
  TransformerOracle Oracle{ "vit" };
  TemporaryDirectory Folder;

  Recording Record() const
  {
    const Tensors pixels = CopyTensors({ { "pixel_values", this->Oracle.Get("pixel_values") } });
    WriteSafetensors(this->Folder / "images.safetensors", pixels, {});
    return this->RecordFile("images.safetensors");
  }

  Recording RecordFile(const std::string& name, bool recordPictures = true) const
  {
    Pipeline vit(TransformerOracle::Folder("vit"));
    vit.Recorder->AddImage((this->Folder / name).c_str());
    vit.Recorder->SetRecordPictures(recordPictures);
    return vit.Record();
  }

  /// Writes a picture of `size` x `size` pixels, from the uppermost row on.
  static int Value(int x, int y, int channel) { return (37 * x + 59 * y + 83 * channel) % 256; }
  std::string WritePicture(const std::string& name, int size = Size, int shift = 0) const
  {
    test::WritePicture<vtkPNGWriter>(this->Folder / name, size, size, 3,
      [shift](int x, int y, int channel) { return Value(x + shift, y, channel); });
    return this->Folder / name;
  }

  /// Row `query` of the attention of a head on an image.
  std::vector<double> Row(int layer, int image, int head, int query) const
  {
    const std::vector<double> all =
      this->Oracle.Values("layer." + std::to_string(layer) + ".attention", image);
    const auto begin = all.begin() + (head * Tokens + query) * Tokens;
    return { begin, begin + Tokens };
  }
};

TEST_F(PatchAttentionFilter, ShowsWhatAPatchAttendsTo)
{
  Patches patches(DataSetOf(this->Record()));
  for (const int layer : { 0, 1 })
  {
    patches->SetLayer(layer);
    patches->SetHead(3 - layer);
    patches->SetSequence(layer);
    patches->SetPatch(-1, -1);
    ExpectClose(
      "the class token", patches.Cells("Weight"), this->Row(layer, layer, 3 - layer, 0), 1e-5);
    EXPECT_EQ(patches.Cells("Heat"), patches.Cells("Weight"));
    patches->SetPatch(2, 1); // token 1 + 4 * 2 + 1
    ExpectClose("a patch", patches.Cells("Weight"), this->Row(layer, layer, 3 - layer, 10), 1e-5);
    patches->SetDirection(vtkPatchAttention::TO);
    std::vector<double> column;
    for (int query = 0; query < Tokens; ++query)
    {
      column.push_back(this->Row(layer, layer, 3 - layer, query)[10]);
    }
    ExpectClose("to a patch", patches.Cells("Weight"), column, 1e-5);
    patches->SetDirection(vtkPatchAttention::FROM);
  }
}

TEST_F(PatchAttentionFilter, HasACellPerToken)
{
  Patches patches(DataSetOf(this->Record()));
  patches->SetSequence(1);
  patches->SetLayer(1);
  patches->SetHead(2);
  vtkPolyData* cells = patches.Geometry();
  EXPECT_EQ(cells->GetNumberOfPolys(), Tokens);
  EXPECT_THAT(
    Names(cells->GetCellData()), ElementsAre("Column", "Head", "Heat", "Layer", "Position", "Row",
                                   "Sequence", "Token Index", "Weight"));
  EXPECT_THAT(patches.Cells("Layer"), Each(1));
  EXPECT_THAT(patches.Cells("Head"), Each(2));
  EXPECT_THAT(patches.Cells("Sequence"), Each(1));
  const std::vector<double> rows = patches.Cells("Row");
  const std::vector<double> columns = patches.Cells("Column");
  for (int i = 0; i < Tokens; ++i)
  {
    const std::size_t token = i;
    EXPECT_EQ(patches.Cells("Token Index")[token], Tokens + i);
    EXPECT_EQ(patches.Cells("Position")[token], i);
    EXPECT_EQ(rows[token], i == 0 ? -1 : (i - 1) / 4);
    EXPECT_EQ(columns[token], i == 0 ? -1 : (i - 1) % 4);
    const auto bounds = BoundsOf(cells, i);
    EXPECT_NEAR(bounds[1] - bounds[0], 1, 1e-6);
    EXPECT_NEAR(bounds[3] - bounds[2], 1, 1e-6);
    if (i > 0)
    {
      EXPECT_NEAR(bounds[0] + 0.5, columns[token], 1e-6);
      EXPECT_NEAR(bounds[2] + 0.5, -rows[token], 1e-6);
    }
    else
    {
      EXPECT_LT(bounds[1], -0.5); // beside the picture
    }
  }
  EXPECT_EQ(cells->GetCellData()->GetPedigreeIds(), cells->GetCellData()->GetArray("Token Index"));
  EXPECT_THAT(Values(cells->GetFieldData(), "Layer"), ElementsAre(1));
}

TEST_F(PatchAttentionFilter, SquaresLeaveThePictureVisible)
{
  Patches patches(DataSetOf(this->Record()));
  for (const bool all : { false, true })
  {
    patches->SetAllHeads(all);
    for (const double side : { 1., 0.6, 0.25 })
    {
      patches->SetHeatSide(side);
      const auto bounds = BoundsOf(patches.Geometry(), 6);
      EXPECT_NEAR(bounds[1] - bounds[0], side, 1e-6);
      EXPECT_NEAR(bounds[3] - bounds[2], side, 1e-6);
      EXPECT_NEAR((bounds[0] + bounds[1]) / 2, all ? 2 : 1, 1e-6); // patch 6, token 6
      EXPECT_NEAR((bounds[2] + bounds[3]) / 2, -1, 1e-6);
      // What is clicked is a whole patch, of the same token.
      const auto whole = BoundsOf(patches.Geometry(6), 6);
      EXPECT_NEAR(whole[0], all ? 1.5 : 0.5, 1e-6);
      EXPECT_NEAR(whole[1], all ? 2.5 : 1.5, 1e-6);
      EXPECT_NEAR(whole[2], -1.5, 1e-6);
      EXPECT_NEAR(whole[3], -0.5, 1e-6);
      vtkCellData* cells = patches.Geometry(6)->GetCellData();
      EXPECT_EQ(cells->GetPedigreeIds(), cells->GetArray("Token Index"));
      EXPECT_EQ(Values(cells, "Position"), Values(patches.Geometry()->GetCellData(), "Position"));
    }
  }
  for (const double side : { 0., -1., 1.5, std::nan("") })
  {
    patches->SetHeatSide(side);
    EXPECT_THAT(patches.Error(), testing::HasSubstr("HeatSide: expected a share above 0"));
  }
}

/// Cyan are the arrows and marks of the chosen query, or to the chosen key; the others are gray.
TEST_F(PatchAttentionFilter, WhatTheHeatDoesNotShowIsGray)
{
  Patches patches(DataSetOf(this->Record()));
  patches->SetArrows(vtkPatchAttention::ABOVE);
  patches->SetArrowThreshold(0);
  patches->SetPatch(1, 1); // token 6
  for (const int direction : { vtkPatchAttention::FROM, vtkPatchAttention::TO })
  {
    patches->SetDirection(direction);
    for (const int port : { 1, 2 })
    {
      const std::vector<Link> links = patches.Links(port);
      const std::vector<double> colors = patches.Cells("MarkColor", port);
      for (std::size_t i = 0; i < links.size(); ++i)
      {
        const bool isShown =
          (direction == vtkPatchAttention::FROM ? links[i].first : links[i].second) == 6;
        EXPECT_EQ(colors[3 * i], isShown ? 0 : 150) << links[i].first << " " << links[i].second;
      }
    }
    EXPECT_THAT(patches.FieldTexts("MarkColor Legend", 1),
      ElementsAre(testing::HasSubstr("\n150 150 150 strongest keys of other patches")));
    EXPECT_THAT(patches.FieldTexts("Signs", 0),
      ElementsAre(testing::StartsWith(
        direction == vtkPatchAttention::FROM
          ? "A square: the attention of the patch in row 1, column 1 to its patch. Left of"
          : "A square: the attention of its patch to the patch in row 1, column 1. Left of")));
  }
}

/// From the cell of the query to that of the key. TestPatchAttention of Core has which they are.
TEST_F(PatchAttentionFilter, ArrowsPointAtTheirKeys)
{
  Patches patches(DataSetOf(this->Record()));
  patches->SetSequence(1);
  EXPECT_EQ(patches.Geometry(2)->GetNumberOfPolys(),
    static_cast<vtkIdType>(patches.Cells("Mark", 2).size()));
  vtkPolyData* cells = patches.Geometry();
  vtkPolyData* arrows = patches.Geometry(1);
  const std::vector<double> weights = patches.Cells("Weight", 1);
  ASSERT_GT(arrows->GetNumberOfCells(), 3);
  for (vtkIdType i = 0; i < arrows->GetNumberOfCells(); ++i)
  {
    const auto [query, key] = patches.Links(1)[i];
    const vtkIdType* corners = nullptr;
    vtkIdType number = 0;
    arrows->GetCellPoints(i, number, corners);
    ASSERT_EQ(number, 7);
    EXPECT_TRUE(IsInside(arrows->GetPoint(corners[5]), BoundsOf(cells, key - Tokens)));
    EXPECT_TRUE(IsInside(arrows->GetPoint(corners[1]), BoundsOf(cells, query - Tokens)));
    EXPECT_GE(weights[i], 0.1);
  }
  const std::size_t strongest = weights.size();
  patches->SetArrows(vtkPatchAttention::ABOVE);
  EXPECT_GT(patches.Links(1).size(), strongest);
  patches->SetArrowThreshold(0.25);
  EXPECT_THAT(patches.Cells("Weight", 1), Each(testing::Ge(0.25)));
}

TEST_F(PatchAttentionFilter, MeansQuantitiesAndAllImages)
{
  const Recording recording = this->Record();
  Patches patches(DataSetOf(recording));
  patches->SetPatch(0, 3); // token 4
  const auto expect = [&](int quantity, AttentionQuantity expected, int head, int sequence)
  {
    patches->SetQuantity(quantity);
    patches->SetHead(head);
    patches->SetSequence(sequence);
    std::vector<float> values(Tokens);
    EvaluateAttention(recording, sequence, 0, head, expected, 4, 5, values.data());
    ExpectClose("weights", patches.Cells("Weight"), { values.begin(), values.end() }, 1e-6);
  };
  expect(vtkPatchAttention::WEIGHTS, AttentionQuantity::Weights, -1, 0);
  expect(vtkPatchAttention::ROLLOUT, AttentionQuantity::Rollout, -1, 0);
  expect(vtkPatchAttention::NORM_WEIGHTED, AttentionQuantity::NormWeighted, 2, 0);
  expect(vtkPatchAttention::WEIGHTS, AttentionQuantity::Weights, 2, -1);
  EXPECT_THAT(patches.Cells("Sequence"), Each(-1));
  EXPECT_THAT(patches.Points("PictureColor", 3), Each(220));
  EXPECT_THAT(patches.TakeWarnings(), IsEmpty());
}

/// Pixel i of the picture is at the middle of its part of the patches, and has the byte of the
/// file.
TEST_F(PatchAttentionFilter, ThePictureIsUnderItsPatches)
{
  this->WritePicture("picture.png");
  Patches patches(DataSetOf(this->RecordFile("picture.png")));
  vtkImageData* picture = patches.Image(3);
  ASSERT_THAT(SizeOf(picture), ElementsAre(Size, Size));
  auto* colors =
    vtkUnsignedCharArray::SafeDownCast(picture->GetPointData()->GetArray("PictureColor"));
  ASSERT_NE(colors, nullptr);
  for (vtkIdType i = 0; i < picture->GetNumberOfPoints(); ++i)
  {
    const double* point = picture->GetPoint(i);
    const double x = (point[0] + 0.5) * 8 - 0.5; // pixels of a patch
    const double y = (0.5 - point[1]) * 8 - 0.5;
    for (int channel = 0; channel < 3; ++channel)
    {
      EXPECT_EQ(colors->GetComponent(i, channel),
        Value(static_cast<int>(std::lround(x)), static_cast<int>(std::lround(y)), channel));
    }
    EXPECT_NEAR(x, std::round(x), 1e-9);
    EXPECT_NEAR(y, std::round(y), 1e-9);
  }
  EXPECT_THAT(patches.TakeWarnings(), IsEmpty());
}

/// Whatever part of the picture is asked for; the cells do not depend on it.
TEST_F(PatchAttentionFilter, GivesPartsOfThePicture)
{
  Patches whole(DataSetOf(this->Record()));
  Patches part(DataSetOf(this->Record()));
  const int extent[6] = { 3, 17, 8, 31, 0, 0 };
  part->UpdateInformation();
  part->GetOutputInformation(3)->Set(vtkStreamingDemandDrivenPipeline::UPDATE_EXTENT(), extent, 6);
  part->Update(3);
  auto* image = OutputOf<vtkImageData>(part.Get(), 3);
  EXPECT_THAT(ExtentOf(image), ElementsAreArray(extent));
  ExpectIsPartOf(image, whole.Image(3));
  ExpectSameArrays(part.Geometry()->GetCellData(), whole.Geometry()->GetCellData());
}

TEST_F(PatchAttentionFilter, FindsThePictureAgainOrSaysWhyNot)
{
  const std::string file = this->WritePicture("picture.png", 50);
  const Recording kept = this->RecordFile("picture.png");
  const Recording named = this->RecordFile("picture.png", false);
  EXPECT_EQ(named.pictures.pixels, nullptr);
  Patches expected(DataSetOf(kept));
  const std::vector<double> pixels = expected.Points("PictureColor", 3);
  const auto show = [&named]() { return std::make_unique<Patches>(DataSetOf(named)); };
  auto patches = show();
  EXPECT_EQ(Values(patches->Image(3)->GetPointData(), "PictureColor"), pixels);

  this->WritePicture("picture.png", 50, 1);
  patches = show();
  EXPECT_THAT(patches->Cells("Weight"), SizeIs(Tokens)); // as ever
  EXPECT_THAT(patches->TakeErrors(),
    ElementsAre(AllOf(HasSubstr(file + ": the picture has changed"), HasSubstr("mean colors"))));
  const std::vector<double> colors = Values(patches->Image(3)->GetPointData(), "PictureColor");
  EXPECT_EQ(colors.size(), pixels.size());
  for (int channel = 0; channel < 3; ++channel) // the lowest row shows the last row of patches
  {
    EXPECT_EQ(colors[channel], std::lround(255 * named.tokens.color.Row(13)[channel]));
  }
  (*patches)->SetHead(1); // told once
  (*patches)->Update();
  EXPECT_THAT(patches->TakeErrors(), IsEmpty());

  std::filesystem::remove(file);
  patches = show();
  EXPECT_THAT(patches->Cells("Weight"), SizeIs(Tokens));
  EXPECT_THAT(patches->TakeErrors(), ElementsAre(HasSubstr(file + ": there is no such file.")));
}

TEST_F(PatchAttentionFilter, RecordingsWithoutPicturesShowColors)
{
  Recording recording = this->Record();
  recording.pictures = {};
  Patches patches(DataSetOf(recording));
  vtkImageData* picture = patches.Image(3); // a pixel per patch
  EXPECT_THAT(SizeOf(picture), ElementsAre(4, 4));
  EXPECT_THAT(BoundsOf(picture), ElementsAre(0, 3, -3, 0, 0, 0));
  for (int channel = 0; channel < 3; ++channel)
  {
    EXPECT_EQ(
      Byte(picture, 2, 0, channel), std::lround(255 * recording.tokens.color.Row(3)[channel]));
  }
  EXPECT_THAT(patches.TakeWarnings(), ElementsAre(HasSubstr("the recording has no pictures")));
  patches->SetHead(1);
  patches.Geometry();
  EXPECT_THAT(patches.TakeWarnings(), IsEmpty());
  recording.tokens.color = {};
  Patches plain(DataSetOf(recording));
  EXPECT_THAT(plain.Points("PictureColor", 3), Each(220));
  EXPECT_THAT(plain.TakeWarnings(), SizeIs(1));
}

TEST_F(PatchAttentionFilter, SelectedTokensAreChosen)
{
  Patches patches(DataSetOf(this->Record()));
  patches->SetSequence(1);
  const std::vector<double> a = this->Row(0, 1, 0, 5);
  const std::vector<double> b = this->Row(0, 1, 0, 9);
  std::vector<double> mean;
  for (std::size_t i = 0; i < a.size(); ++i)
  {
    mean.push_back((a[i] + b[i]) / 2);
  }
  const auto expectBoth = [&](const char* what)
  {
    ExpectClose(what, patches.Cells("Weight"), mean, 1e-5);
    EXPECT_THAT(patches.Cells("Token Index", 4), ElementsAre(Tokens + 5, Tokens + 9));
  };
  using Node = vtkSelectionNode;
  Connect(patches.Get(), 1, SelectionOf({ 9, 5 }, Node::INDICES, Node::CELL)); // cells of output 0
  expectBoth("cells");
  Connect(patches.Get(), 1, SelectionOf({ 20, 36 }, Node::INDICES, Node::POINT)); // their corners
  expectBoth("points");
  for (const int field : { Node::CELL, Node::POINT, Node::ROW })
  {
    // Also of another image, in a view of all tokens.
    const std::vector<vtkIdType> tokens = { 2, Tokens + 5, Tokens + 9 };
    Connect(patches.Get(), 1, SelectionOf(tokens, Node::PEDIGREEIDS, field));
    expectBoth("pedigree ids");
    Connect(patches.Get(), 1, SelectionOf(tokens, Node::VALUES, field));
    expectBoth("values");
  }
  Connect(patches.Get(), 1, SelectionOf({ 2 }, Node::PEDIGREEIDS, Node::CELL));
  ExpectClose("none here", patches.Cells("Weight"), this->Row(0, 1, 0, 0), 1e-5);
  patches->SetInputConnection(1, nullptr);
  patches->AddSelectedToken(Tokens + 9);
  patches->AddSelectedToken(Tokens + 5);
  expectBoth("tokens");
  patches->ClearSelectedTokens();
  EXPECT_THAT(patches.Cells("Token Index", 4), ElementsAre(Tokens));
}

/// The places of cells and pixels follow from 4 x 4 patches with a gap of one.
TEST_F(PatchAttentionFilter, AllHeadsAreAGrid)
{
  constexpr int Step = 5;
  Patches patches(DataSetOf(this->Record()));
  patches->SetSequence(1);
  patches->SetPatch(2, 1); // token 10
  patches->SetAllHeads(true);
  const auto expect = [&]()
  {
    const std::vector<double> layers = patches.Cells("Layer");
    const std::vector<double> heads = patches.Cells("Head");
    const std::vector<double> positions = patches.Cells("Position");
    const std::vector<double> weights = patches.Cells("Weight");
    const std::vector<double> heat = patches.Cells("RelativeHeat");
    vtkPolyData* cells = patches.Geometry();
    ASSERT_EQ(cells->GetNumberOfCells(), 2 * 4 * 16);
    for (int i = 0; i < 2 * 4 * 16; ++i)
    {
      const int layer = i / 64;
      const int head = i / 16 % 4;
      const int patch = i % 16;
      EXPECT_EQ(layers[i], layer);
      EXPECT_EQ(heads[i], head);
      EXPECT_EQ(positions[i], 1 + patch); // without the class token
      const std::vector<double> row = this->Row(layer, 1, head, 10);
      EXPECT_NEAR(weights[i], row[1 + patch], 1e-5);
      EXPECT_NEAR(heat[i], row[1 + patch] / *std::max_element(row.begin() + 1, row.end()), 1e-4);
      const auto bounds = BoundsOf(cells, i);
      EXPECT_NEAR(bounds[0], Step * head + patch % 4 - 0.5, 1e-5);
      EXPECT_NEAR(bounds[1], Step * head + patch % 4 + 0.5, 1e-5);
      EXPECT_NEAR(bounds[2], -(Step * layer + patch / 4) - 0.5, 1e-5);
      EXPECT_NEAR(bounds[3], -(Step * layer + patch / 4) + 0.5, 1e-5);
    }
    EXPECT_EQ(cells->GetCellData()->GetArray("Heat"), nullptr);
  };
  expect();
  for (const int port : { 1, 2, 4 })
  {
    EXPECT_EQ(patches.Geometry(port)->GetNumberOfCells(), 0);
  }
  EXPECT_THAT(Texts(patches.Geometry(5)->GetPointData(), "Token"),
    ElementsAre("Layer 0", "Head 0", "Head 1", "Head 2", "Head 3", "Layer 1"));

  patches->SetPatch(-1, -1); // a patch that is selected in any of the pictures
  Connect(patches.Get(), 1,
    SelectionOf({ 6 * 16 + 9 }, vtkSelectionNode::INDICES, vtkSelectionNode::CELL));
  expect();
  patches->SetInputConnection(1, nullptr);

  patches->SetQuantity(vtkPatchAttention::ROLLOUT);
  EXPECT_EQ(patches.Geometry()->GetNumberOfCells(), 2 * 16);
  EXPECT_THAT(patches.Cells("Head"), Each(-1));
  EXPECT_THAT(
    Texts(patches.Geometry(5)->GetPointData(), "Token"), ElementsAre("Layer 0", "Layer 1"));
  patches->SetAllHeads(false);
  EXPECT_EQ(patches.Geometry(5)->GetNumberOfCells(), 0);
}

/// Each head has the picture under its patches; white is between them.
TEST_F(PatchAttentionFilter, AllHeadsHaveThePicture)
{
  this->WritePicture("picture.png");
  Patches patches(DataSetOf(this->RecordFile("picture.png")));
  patches->SetAllHeads(true);
  vtkImageData* picture = patches.Image(3);
  const int width = (4 * 4 + 3) * 8;
  const int height = (2 * 4 + 1) * 8;
  ASSERT_THAT(SizeOf(picture), ElementsAre(width, height));
  EXPECT_EQ(picture->GetOrigin()[0], -0.5 + 1 / 16.); // the middle of the first pixel
  EXPECT_EQ(picture->GetOrigin()[1], 0.5 - 9 + 1 / 16.);
  EXPECT_EQ(picture->GetSpacing()[0], 1 / 8.);
  EXPECT_EQ(picture->GetSpacing()[1], 1 / 8.);
  for (int y = 0; y < height; ++y) // from the top
  {
    for (int x = 0; x < width; ++x)
    {
      const bool isGap = x % 40 >= Size || y % 40 >= Size;
      for (int channel = 0; channel < 3; ++channel)
      {
        ASSERT_EQ(Byte(picture, x, y, channel), isGap ? 255 : Value(x % 40, y % 40, channel));
      }
    }
  }
  EXPECT_THAT(patches.TakeWarnings(), IsEmpty());
}

TEST_F(PatchAttentionFilter, CanBeCancelled)
{
  Patches patches(DataSetOf(this->Record()));
  patches->SetAbortExecute(1);
  EXPECT_EQ(patches.Geometry()->GetNumberOfCells(), 0);
  EXPECT_EQ(patches.Geometry()->GetNumberOfCells(), Tokens);
}

/// The pixels of an image, from the top, as ByteOf gives them.
void ExpectPixels(vtkImageData* image, int left, std::int64_t picture, int height, int width,
  int top = 0, int begin = 0)
{
  for (int y = 0; y < height; ++y)
  {
    for (int x = 0; x < width; ++x)
    {
      for (int channel = 0; channel < 3; ++channel)
      {
        ASSERT_EQ(Byte(image, left + x, y, channel), ByteOf(picture, top + y, begin + x, channel))
          << y << " " << x;
      }
    }
  }
}

TEST(PatchAttentionOfWords, PicturesAreSideBySideUnderTheirPatches)
{
  Patches patches(DataSetOf(PicturedRecording()));
  patches->UpdateInformation();
  EXPECT_EQ(patches->GetHasWords(), 1);
  EXPECT_EQ(patches->GetPictureRange()[1], 1);
  EXPECT_EQ(patches->GetTokenRange()[1], 10);
  vtkImageData* image = patches.Image(3);
  ASSERT_THAT(SizeOf(image), ElementsAre((3 + 1 + 1) * TokenPixels, 2 * TokenPixels));
  ExpectPixels(image, 0, 0, 8, 12);
  ExpectPixels(image, 16, 1, 8, 4);
  for (int x = 12; x < 16; ++x)
  {
    EXPECT_EQ(Byte(image, x, 4, 1), 255); // white between them
  }
  // A square covers its pixels, whose middles are points.
  vtkPolyData* cells = patches.Geometry();
  ASSERT_EQ(cells->GetNumberOfCells(), 8);
  EXPECT_THAT(patches.Cells("Picture"), ElementsAre(0, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(patches.Cells("Row"), ElementsAre(0, 0, 0, 1, 1, 1, 0, 1));
  EXPECT_THAT(patches.Cells("Column"), ElementsAre(0, 1, 2, 0, 1, 2, 0, 0));
  EXPECT_THAT(patches.Cells("Position"), ElementsAre(1, 2, 3, 4, 5, 6, 8, 9));
  const auto bounds = BoundsOf(cells, 7); // the lower square of the second picture
  for (int y = 0; y < 8; ++y)
  {
    for (int x = 0; x < 20; ++x)
    {
      EXPECT_EQ(IsInside(image->GetPoint((7 - y) * 20 + x), bounds), x >= 16 && y >= 4);
    }
  }
  patches->SetPicture(1);
  image = patches.Image(3);
  EXPECT_THAT(SizeOf(image), ElementsAre(TokenPixels, 2 * TokenPixels));
  ExpectPixels(image, 0, 1, 8, 4);
  EXPECT_THAT(patches.Cells("Position"), ElementsAre(8, 9));
  patches->SetSequence(1); // a video: two groups of frames
  patches->SetPicture(-1);
  image = patches.Image(3);
  EXPECT_THAT(SizeOf(image), ElementsAre((2 + 1 + 2) * TokenPixels, TokenPixels));
  ExpectPixels(image, 0, 2, 4, 8);
  ExpectPixels(image, 12, 3, 4, 8);
  EXPECT_THAT(patches.TakeWarnings(), IsEmpty());
}

/// Words are selected in other views of the recording; patches here.
TEST(PatchAttentionOfWords, WordsAndPatchesAreChosen)
{
  Patches patches(DataSetOf(PicturedRecording()));
  const auto expect = [&](const std::vector<std::int64_t>& chosen)
  {
    std::vector<double> expected(8, 0);
    const std::vector<double> positions = patches.Cells("Position");
    for (const std::int64_t token : chosen)
    {
      for (std::size_t cell = 0; cell < 8; ++cell)
      {
        expected[cell] += positions[cell] == static_cast<double>(KeyOf(0, 0, token))
                            ? 1. / static_cast<double>(chosen.size())
                            : 0;
      }
    }
    ExpectClose("weights", patches.Cells("Weight"), expected, 1e-6);
  };
  expect({ 10 });                                          // the last word
  EXPECT_THAT(patches.Geometry(4)->GetNumberOfCells(), 0); // it has no place
  patches->SetPatch(1, 0);
  patches->SetPatchPicture(1);
  expect({ 9 });
  EXPECT_THAT(patches.Cells("Position", 4), ElementsAre(9));
  using Node = vtkSelectionNode;
  for (const int content : { Node::PEDIGREEIDS, Node::VALUES })
  {
    Connect(patches.Get(), 1, SelectionOf({ 7 }, content, Node::POINT)); // a word
    expect({ 7 });
    Connect(patches.Get(), 1, SelectionOf({ 7, 10, 8 }, content, Node::ROW));
    expect({ 7, 10, 8 });
  }
  Connect(patches.Get(), 1, SelectionOf({ 6 }, Node::INDICES, Node::CELL)); // cell 6 is token 8
  expect({ 8 });
  patches->SetInputConnection(1, nullptr);
  patches->AddSelectedToken(10);
  expect({ 10 });
  patches->AddSelectedToken(14); // of the other text
  expect({ 10 });
}

TEST(PatchAttentionOfWords, ArrowsMarksAndMeans)
{
  Patches patches(DataSetOf(PicturedRecording()));
  EXPECT_THAT(patches.Links(1), ElementsAre(Link(2, 1), Link(3, 1), Link(4, 2), Link(5, 2),
                                  Link(6, 3), Link(8, 4), Link(9, 4)));
  EXPECT_THAT(patches.Links(2), ElementsAre(Link(1, 0)));
  EXPECT_THAT(patches.Cells("Mark", 2), ElementsAre(1)); // to a word
  const auto expectExplained = [&patches](const char* share, const char* legend)
  {
    EXPECT_THAT(patches.FieldTexts("Signs", 0), ElementsAre(testing::HasSubstr(share)));
    EXPECT_THAT(patches.FieldTexts("MarkColor Legend", 1), ElementsAre(legend));
  };
  // A word has no place: no frame around it, and no arrow from it.
  expectExplained(" to its patch. 0% goes to words. An arrow",
    "Marks\n150 150 150 strongest keys of other patches");
  patches->SetToken(1); // a patch, whose mark is to a word
  expectExplained(" to its patch. 100% goes to words. An arrow",
    "Marks\n0 217 242 strongest key\n51 230 51 chosen patch\n150 150 150 strongest keys of other "
    "patches");
  patches->SetToken(-1);
  patches->SetHead(-1);
  patches->SetMeanOfLayers(true); // keys 5, 3, 10 and 6, of which 10 is a word
  EXPECT_THAT(patches.Cells("Weight"), ElementsAre(0, 0, 0.25, 0, 0.25, 0.25, 0, 0));
  EXPECT_THAT(patches.Field("Weight on Words"), ElementsAre(0.25));
  EXPECT_THAT(patches.Cells("Layer"), Each(-1));
}

/// With the pictures of the text, also without pixels of its own; then in tiles.
TEST(PatchAttentionOfWords, ShowsTheEncodersImages)
{
  Recording recording = PicturedRecording();
  Patches patches(DataSetOf(recording));
  patches->SetAttentionKind(vtkPatchAttention::ENCODER);
  patches->SetPatch(3, 5);
  vtkImageData* image = patches.Image(3);
  EXPECT_THAT(SizeOf(image), ElementsAre(6 * PatchPixels, 4 * PatchPixels));
  ExpectPixels(image, 0, 0, 8, 12);
  std::vector<double> expected(24, 0);
  expected[2 * 6 + 4] = 1; // the first of its window
  EXPECT_EQ(patches.Cells("Weight"), expected);
  EXPECT_EQ(patches.Geometry()->GetCellData()->GetArray("Picture"), nullptr);
  EXPECT_THAT(patches.FieldTexts("Attention Kind"), ElementsAre("encoder"));
  patches->SetSequence(2);
  patches->SetPatch(1, 1);
  image = patches.Image(3);
  EXPECT_THAT(SizeOf(image), ElementsAre(4 * PatchPixels, 2 * PatchPixels));
  ExpectPixels(image, 0, 2, 4, 8);
  EXPECT_EQ(patches->GetHasWords(), 0);
  EXPECT_EQ(patches->GetHasKinds(), 1);
  EXPECT_THAT(patches.TakeWarnings(), IsEmpty());

  // Two tiles of the first picture: 4 x 3 patches each; the others are a tile each of this size.
  Recording tiled = PicturedRecording();
  tiled.pictures.contents = { { 0, 0, 1, false, 8, 12 }, { 1, 0, 1, false, 8, 6 } };
  tiled.pictures.count = 2;
  for (std::int32_t& picture : tiled.tokens.picture)
  {
    picture = std::min(picture, 1);
  }
  tiled.encoder =
    std::make_shared<const Recording>(WindowedImages({ { 4, 3 }, { 4, 3 }, { 4, 3 } }));
  Patches tiles(DataSetOf(tiled));
  tiles->SetAttentionKind(vtkPatchAttention::ENCODER);
  tiles->SetSequence(1);
  image = tiles.Image(3);
  EXPECT_THAT(SizeOf(image), ElementsAre(6, 8));
  ExpectPixels(image, 0, 0, 8, 6, 0, 6);
}

/// Panels of two pictures of 2 x 3 and 2 x 1 tokens with a gap of one column; the weight of a query
/// goes to one token.
TEST(PatchAttentionOfWords, AllHeadsOfAWord)
{
  Patches patches(DataSetOf(PicturedRecording()));
  patches->SetAllHeads(true);
  Connect(patches.Get(), 1, SelectionOf({ 7 }, vtkSelectionNode::VALUES, vtkSelectionNode::ROW));
  const std::vector<double> weights = patches.Cells("Weight");
  const std::vector<double> positions = patches.Cells("Position");
  ASSERT_EQ(weights.size(), 2U * 2U * 8U);
  for (int i = 0; i < 32; ++i)
  {
    const auto key = static_cast<double>(KeyOf(i / 16, i / 8 % 2, 7));
    EXPECT_EQ(weights[i], positions[i] == key ? 1 : 0);
  }
  EXPECT_EQ(patches.Geometry()->GetFieldData()->GetArray("Weight on Words"), nullptr);
  for (const int port : { 1, 2, 4 })
  {
    EXPECT_EQ(patches.Geometry(port)->GetNumberOfCells(), 0);
    EXPECT_FALSE(patches.Geometry(port)->GetFieldData()->HasArray("MarkColor Legend"));
  }
  vtkImageData* image = patches.Image(3);
  ASSERT_THAT(SizeOf(image), ElementsAre((5 + 1 + 5) * TokenPixels, (2 + 1 + 2) * TokenPixels));
  for (int i = 0; i < 4; ++i)
  {
    const int left = i % 2 * 6 * TokenPixels;
    const int top = i / 2 * 3 * TokenPixels;
    for (int y = 0; y < 2 * TokenPixels; ++y)
    {
      EXPECT_EQ(Byte(image, left, top + y, 1), ByteOf(0, y, 0, 1));
      EXPECT_EQ(Byte(image, left + 4 * TokenPixels + 1, top + y, 2), ByteOf(1, y, 1, 2));
      EXPECT_EQ(Byte(image, left + 3 * TokenPixels, top + y, 0), 255);
    }
  }
}

TEST(PatchAttentionOfWords, WithoutPicturesPatchesHaveColors)
{
  Recording recording = PicturedRecording();
  recording.pictures = {};
  recording.tokens.color = SharedMatrix::Zero(17, 3);
  recording.tokens.color.Row(8)[1] = 1;
  Patches patches(DataSetOf(recording));
  vtkImageData* image = patches.Image(3); // a pixel per token
  EXPECT_THAT(SizeOf(image), ElementsAre(5, 2));
  EXPECT_EQ(Byte(image, 4, 0, 1), 255);
  EXPECT_EQ(Byte(image, 4, 0, 0), 0);
  EXPECT_EQ(Byte(image, 3, 0, 0), 255); // between them
  EXPECT_EQ(Byte(image, 2, 0, 0), 0);
  EXPECT_THAT(patches.TakeWarnings(), ElementsAre(HasSubstr("the recording has no pictures")));
}

}
