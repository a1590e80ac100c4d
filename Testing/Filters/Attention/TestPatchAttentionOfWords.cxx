// Pictures among the words of texts; TestPatchAttentionFilter has images alone.

#include "Core/PicturedRecording.h"
#include "Matchers.h"
#include "PatchFilter.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Link = Patches::Link;

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
