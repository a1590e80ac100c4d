#include "Matchers.h"
#include "PatchFilter.h"
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
      const std::vector<Patches::Link> links = patches.Links(port);
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

}
