#include "Base/Error.h"
#include "Core/ErrorMessage.h"
#include "Core/PicturedRecording.h"
#include "Recordings.h"
#include "SharedArray.h"

#include <algorithm>
#include <initializer_list>

using namespace atlas;
using namespace atlas::test;

namespace
{

vtkDataObject* Block(vtkMultiBlockDataSet* parent, const std::string& name)
{
  for (unsigned int i = 0; i < parent->GetNumberOfBlocks(); ++i)
  {
    if (name == parent->GetMetaData(i)->Get(vtkCompositeDataSet::NAME()))
    {
      return parent->GetBlock(i);
    }
  }
  ADD_FAILURE() << "no block " << name;
  return nullptr;
}

vtkMultiBlockDataSet* Blocks(vtkMultiBlockDataSet* parent, const std::string& name)
{
  return vtkMultiBlockDataSet::SafeDownCast(Block(parent, name));
}

vtkTable* Table(vtkMultiBlockDataSet* parent, const std::string& name)
{
  return vtkTable::SafeDownCast(Block(parent, name));
}

vtkTable* Table(vtkMultiBlockDataSet* recording, const std::string& layer, const std::string& name)
{
  return Table(Blocks(recording, layer), name);
}

/// Whether data have none of some field arrays.
bool HasNone(vtkMultiBlockDataSet* data, std::initializer_list<const char*> names)
{
  return std::none_of(names.begin(), names.end(),
    [data](const char* name) { return data->GetFieldData()->HasArray(name) != 0; });
}

void ExpectRoundTrip(const Recording& recording)
{
  ExpectEqual(AttentionAtlas::ToRecording(DataSetOf(recording)), recording);
}

using Damage = std::function<void(vtkMultiBlockDataSet*)>;

Damage SetField(const char* name, int component, double value)
{
  return [=](vtkMultiBlockDataSet* data)
  { data->GetFieldData()->GetArray(name)->SetComponent(0, component, value); };
}

Damage SetField(const char* name, const char* text)
{
  return [=](vtkMultiBlockDataSet* data)
  {
    vtkAbstractArray* array = data->GetFieldData()->GetAbstractArray(name);
    vtkStringArray::SafeDownCast(array)->SetValue(0, text);
  };
}

Damage RemoveField(const char* name)
{
  return [=](vtkMultiBlockDataSet* data) { data->GetFieldData()->RemoveArray(name); };
}

/// What is said of a damaged recording.
std::string MessageAfter(const Damage& damage, const Recording& recording = SmallRecording())
{
  const auto data = DataSetOf(recording);
  damage(data);
  return MessageOf<ModelError>([&] { AttentionAtlas::ToRecording(data); });
}

/// The same where head 0 of layer 2 alone is read.
std::string MessageOfHeadAfter(const Damage& damage, const Recording& recording)
{
  const auto data = DataSetOf(recording);
  damage(data);
  return MessageOf<ModelError>([&] { AttentionAtlas::ToRecording(data, 2, 0); });
}

TEST(RecordingConversion, KeepsProductsThatAreNotThoseOfFloats)
{
  Recording recording = SmallRecording();
  EXPECT_TRUE(HasNone(DataSetOf(recording), { "Products" }));
  recording.products = ProductPrecision::Bfloat16;
  ExpectRoundTrip(recording);
  EXPECT_THAT(MessageAfter(SetField("Products", "half"), recording),
    HasSubstr("field array 'Products': expected one of single, bf16, found 'half'"));
}

TEST(RecordingConversion, NamesBlocksAndColumns)
{
  const auto data = DataSetOf(SmallRecording());
  EXPECT_EQ(AttentionAtlas::ToRecording(data).model, "bloom-560m");
  EXPECT_EQ(data->GetNumberOfBlocks(), 5U); // tokens, layers 0, 2 and 3, logits
  auto* tokens = Table(data, "tokens");
  EXPECT_THAT(Names(tokens->GetRowData()), ElementsAre("Position", "Sequence", "Token", "TokenId"));
  EXPECT_THAT(Values(tokens->GetRowData(), "TokenId"), ElementsAre(11, 12, 13, 21, 22));
  vtkTable* head = Table(data, "layer 2", "head 1");
  EXPECT_THAT(
    Names(head->GetRowData()), ElementsAre("Key", "Output", "Query", "Value", "Value Norm"));
  EXPECT_EQ(head->GetNumberOfRows(), 5);
  EXPECT_EQ(head->GetColumnByName("Output")->GetNumberOfComponents(), 6);
  EXPECT_EQ(Table(data, "layer 3", "residual")->GetNumberOfRows(), 5);
  EXPECT_EQ(Table(data, "logits")->GetColumn(0)->GetNumberOfComponents(), 9);
  vtkFieldData* fields = data->GetFieldData();
  EXPECT_THAT(Values(fields, "Layers"), ElementsAre(3));
  EXPECT_THAT(Values(fields, "Heads"), ElementsAre(2));
  EXPECT_THAT(Values(fields, "HeadDimension"), ElementsAre(4));
  EXPECT_THAT(Values(fields, "Score Scale"), ElementsAre(0, 0.5, 2, 0.5 / 3));
  EXPECT_THAT(Values(fields, "ALiBi Slopes"), ElementsAre(0.5, 0.25));
  EXPECT_THAT(Values(fields, "Sequence Offsets"), ElementsAre(0, 3, 5));
  EXPECT_THAT(Texts(fields, "Mask"), ElementsAre("causal"));
}

/// The small recording with a cap and a window in layer 0, and sinks in layer 2.
Recording VariantRecording()
{
  Recording recording = SmallRecording();
  recording.layers[0].scoreCap = 0.3;
  recording.layers[0].window = 2;
  recording.layers[1].sinks = { 0.1F, -2 };
  return recording;
}

TEST(RecordingConversion, GivesCapsWindowsAndSinksBack)
{
  const Recording recording = VariantRecording();
  const auto data = DataSetOf(recording);
  EXPECT_THAT(Values(data->GetFieldData(), "Score Cap"), ElementsAre(0, 0.3));
  EXPECT_THAT(Values(data->GetFieldData(), "Window"), ElementsAre(0, 2));
  EXPECT_THAT(Values(data->GetFieldData(), "Sinks"), ElementsAre(2, static_cast<double>(0.1F), -2));
  ExpectEqual(AttentionAtlas::ToRecording(data), recording);
  const Recording one = AttentionAtlas::ToRecording(data, 2, 1);
  EXPECT_EQ(one.layers[0].window, 2);
  EXPECT_EQ(one.layers[1].sinks, recording.layers[1].sinks);
  EXPECT_TRUE(HasNone(DataSetOf(SmallRecording()), { "Score Cap", "Window", "Sinks" }));
}

/// The small recording with routing of layer 2: one of 3 experts.
Recording RoutedRecording()
{
  Recording recording = SmallRecording();
  RecordedRouting& routing = recording.layers[1].routing;
  routing = { 3, SharedMatrix::Zero(5, 1), SharedMatrix::Zero(5, 1) };
  for (std::int64_t row = 0; row < 5; ++row)
  {
    *routing.chosen.Row(row) = static_cast<float>(row % 3);
    *routing.weights.Row(row) = 0.25F * static_cast<float>(row);
  }
  return recording;
}

TEST(RecordingConversion, GivesRoutingBack)
{
  const Recording recording = RoutedRecording();
  const auto data = DataSetOf(recording);
  EXPECT_THAT(Values(data->GetFieldData(), "Experts"), ElementsAre(2, 3));
  vtkTable* table = Table(data, "layer 2", "routing");
  EXPECT_THAT(Names(table->GetRowData()), ElementsAre("Expert", "Expert Weight"));
  EXPECT_THAT(Values(table->GetRowData(), "Expert"), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(Values(table->GetRowData(), "Expert Weight"), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  ExpectEqual(AttentionAtlas::ToRecording(data), recording);
  EXPECT_NO_THROW(AttentionAtlas::ToRecording(data, 2, 1));
  EXPECT_TRUE(HasNone(DataSetOf(SmallRecording()), { "Experts" }));
}

TEST(RecordingConversion, RefusesBadRouting)
{
  const auto message = [](const Damage& damage) { return MessageAfter(damage, RoutedRecording()); };
  EXPECT_THAT(message(SetField("Experts", 1, 2)),
    HasSubstr("layer 2: experts: expected numbers of its 2 experts"));
  for (const double count : { 1.5, std::nan(""), 1e300 })
  {
    EXPECT_THAT(message(SetField("Experts", 1, count)),
      HasSubstr("'Experts': expected a number of experts, found"));
  }
  EXPECT_THAT(
    message([](auto* data) { Table(data, "layer 2", "routing")->RemoveColumnByName("Expert"); }),
    HasSubstr("expected both experts and their weights or neither, found weights alone"));
}

/// The small recording with attention of layer 2.
Recording StoredRecording()
{
  std::mt19937 generator(1);
  Recording recording = SmallRecording();
  for (RecordedHead& head : recording.layers[1].heads)
  {
    head.weights = { RandomRows(3, 3, generator), RandomRows(2, 2, generator) };
    head.scores = { RandomRows(3, 3, generator), RandomRows(2, 2, generator) };
  }
  return recording;
}

TEST(RecordingConversion, GivesTheRecordingBack)
{
  ExpectRoundTrip(SmallRecording());
  ExpectRoundTrip(StoredRecording());
}

/// The small recording as one of images of 4 x 6 pixels, with their pixels.
Recording PictureRecording()
{
  Recording recording = SmallRecording();
  recording.tokens.id.clear();
  recording.tokens.text.clear();
  recording.tokens.row = { -1, 0, 0, -1, 0 };
  recording.tokens.column = { -1, 0, 1, -1, 0 };
  recording.pictures.count = 2;
  recording.pictures.height = 4;
  recording.pictures.width = 6;
  const std::shared_ptr<std::uint8_t[]> pixels(new std::uint8_t[2 * 72]);
  for (int i = 0; i < 2 * 72; ++i)
  {
    pixels[i] = static_cast<std::uint8_t>(255 - i);
  }
  recording.pictures.pixels = { pixels, pixels.get() };
  return recording;
}

TEST(RecordingConversion, GivesPicturesBack)
{
  Recording recording = PictureRecording();
  const auto data = DataSetOf(recording);
  EXPECT_THAT(Values(data->GetFieldData(), "Picture Size"), ElementsAre(4, 6));
  EXPECT_THAT(Values(data->GetFieldData(), "Patch Grid"), ElementsAre(1, 2));
  EXPECT_THAT(
    Names(Table(data, "tokens")->GetRowData()), ElementsAre("Column", "Image", "Position", "Row"));
  auto* table = Table(data, "pictures");
  EXPECT_EQ(table->GetNumberOfRows(), 48);
  EXPECT_EQ(vtkDataArray::SafeDownCast(table->GetColumnByName("Picture"))->GetVoidPointer(0),
    recording.pictures.pixels.get());
  const Recording back = AttentionAtlas::ToRecording(data);
  ExpectEqual(back, recording);
  EXPECT_EQ(back.pictures.pixels.get(), recording.pictures.pixels.get());
  ExpectEqual(AttentionAtlas::ToRecording(data, 2, 0).pictures, recording.pictures);

  recording.pictures.pixels = nullptr;
  recording.pictures.sources = { { "a.png", "12" }, { "b.png", "34" } };
  recording.pictures.processing = "{}";
  ExpectRoundTrip(recording);
}

TEST(RecordingConversion, GivesPicturesAmongWordsBack)
{
  Recording recording = PicturedRecording();
  const auto data = DataSetOf(recording);
  auto* tokens = Table(data, "tokens");
  EXPECT_THAT(Names(tokens->GetRowData()),
    ElementsAre("Column", "Picture Number", "Position", "Row", "Sequence", "Token", "TokenId"));
  EXPECT_THAT(Values(data->GetFieldData(), "Picture Contents"),
    ElementsAre(0, 0, 1, 0, 8, 12, 1, 0, 1, 0, 8, 4, 2, 0, 2, 0, 4, 8, 2, 2, 2, 0, 4, 8));
  EXPECT_TRUE(HasNone(data, { "Picture Size", "Patch Grid" }));
  auto* encoder = Blocks(data, "encoder");
  EXPECT_THAT(Values(encoder->GetFieldData(), "Patch Window"), ElementsAre(0, 2));
  ExpectEqual(AttentionAtlas::ToRecording(data), recording);
  ExpectEqual(AttentionAtlas::ToRecording(encoder), *recording.encoder);

  recording.pictures.contents[1].isSmall = true;
  recording.pictures.pixels = nullptr;
  recording.pictures.sources.assign(4, { "a.png", "0123" });
  recording.pictures.processing = "{}";
  ExpectRoundTrip(recording);
  recording.pictures.sources.clear();
  recording.pictures.processing.clear();
  recording.encoder = nullptr;
  ExpectRoundTrip(recording);
}

TEST(RecordingConversion, RefusesDamagedPicturesAmongWords)
{
  const auto message = [](int component, double value)
  { return MessageAfter(SetField("Picture Contents", component, value), PicturedRecording()); };
  EXPECT_THAT(message(4, 12), HasSubstr("expected a column 'Picture' of 240 pixels of 3 bytes"));
  EXPECT_THAT(message(4, -8), HasSubstr("expected a place in one of the 4 pictures"));
  EXPECT_THAT(message(5, 1e300), HasSubstr("expected a place in one of the 4 pictures"));
  EXPECT_THAT(message(2, 0), HasSubstr("1 frame or more"));
  const auto shorten = [](auto* data)
  { data->GetFieldData()->GetArray("Picture Contents")->SetNumberOfComponents(5); };
  EXPECT_THAT(MessageAfter(shorten, PicturedRecording()),
    HasSubstr("'Picture Contents': expected tuples of 6 numbers, found 5"));
}

TEST(RecordingConversion, RefusesDamagedPictures)
{
  const auto message = [](const Damage& damage)
  { return MessageOfHeadAfter(damage, PictureRecording()); };
  const auto size = [](double height, double width)
  {
    return [height, width](vtkMultiBlockDataSet* data)
    { data->GetFieldData()->GetArray("Picture Size")->SetTuple2(0, height, width); };
  };
  EXPECT_THAT(message(size(5, 6)),
    HasSubstr(
      "block 'pictures': expected a column 'Picture' of 60 pixels of 3 bytes, found another"));
  EXPECT_THAT(message(size(0, 6)), HasSubstr("expected pictures of 1 to 16384 pixels on a side"));
  EXPECT_THAT(message(size(2e9, 2e9)), HasSubstr("expected pictures of 1 to 16384 pixels"));
  EXPECT_THAT(message([](auto* data) { Table(data, "pictures")->RemoveColumnByName("Picture"); }),
    HasSubstr("block 'pictures': expected a column 'Picture' of 48 pixels of 3 bytes, found none"));
  EXPECT_THAT(message([](auto* data) { data->RemoveBlock(data->GetNumberOfBlocks() - 1); }),
    HasSubstr("expected the pixels of the 2 pictures or a file for each, found 0 files"));
  EXPECT_THAT(message([](auto* data) { Table(data, "tokens")->RemoveColumnByName("Row"); }),
    HasSubstr("expected pictures of images"));
}

TEST(RecordingConversion, SharesMemory)
{
  const Recording recording = SmallRecording();
  const auto data = DataSetOf(recording);
  const RecordedHead& head = recording.layers[0].heads[1];
  auto* query =
    vtkDataArray::SafeDownCast(Table(data, "layer 0", "head 1")->GetColumnByName("Query"));
  EXPECT_EQ(query->GetVoidPointer(0), head.query.values.get());
  const Recording back = AttentionAtlas::ToRecording(data);
  EXPECT_TRUE(IsOneMatrix(back.layers[0].heads[1].query, head.query));
  EXPECT_TRUE(IsOneMatrix(back.layers[0].heads[0].key, back.layers[0].heads[1].key));
}

TEST(RecordingConversion, KeepsMemoryAliveAsLongAsItIsUsed)
{
  std::weak_ptr<float> memory;
  vtkNew<vtkFloatArray> copy;
  SharedMatrix back;
  {
    SharedMatrix matrix = SharedMatrix::Zero(2, 3);
    memory = matrix.values;
    matrix.values.get()[5] = 4;
    const auto array = AttentionAtlas::ToArray(matrix, "x");
    const auto other = AttentionAtlas::ToArray(matrix, "y");
    copy->ShallowCopy(array);
    back = AttentionAtlas::ToMatrix(copy);
  }
  ASSERT_FALSE(memory.expired());
  EXPECT_EQ(copy->GetComponent(1, 2), 4);
  EXPECT_EQ(back.Row(1)[2], 4);
  back = {};
  EXPECT_FALSE(memory.expired());
  copy->Initialize();
  EXPECT_TRUE(memory.expired());
}

/// A matrix of an array is made an array again, which goes first.
TEST(RecordingConversion, KeepsMemoryAliveThroughRoundTrips)
{
  SharedMatrix matrix = SharedMatrix::Zero(2, 3);
  const std::weak_ptr<float> memory = matrix.values;
  auto first = AttentionAtlas::ToArray(matrix, "first");
  matrix = AttentionAtlas::ToMatrix(first);
  first = nullptr;
  for (int i = 0; i < 3; ++i)
  {
    AttentionAtlas::ToArray(matrix, "second");
    ASSERT_FALSE(memory.expired());
  }
  matrix = {};
  EXPECT_TRUE(memory.expired());
}

TEST(RecordingConversion, GivesOneHead)
{
  const Recording expected = StoredRecording();
  const auto data = DataSetOf(expected);
  const Recording found = AttentionAtlas::ToRecording(data, 2, 1);
  EXPECT_EQ(found.sequenceOffsets, expected.sequenceOffsets);
  EXPECT_EQ(found.tokens.text, expected.tokens.text);
  EXPECT_EQ(found.alibiSlopes, expected.alibiSlopes);
  EXPECT_EQ(found.alibiUnit, expected.alibiUnit);
  ASSERT_EQ(found.layers.size(), 2U);
  EXPECT_EQ(found.layers[0].index, 0);
  EXPECT_TRUE(found.layers[0].heads.empty());
  EXPECT_EQ(found.layers[1].index, 2);
  EXPECT_EQ(found.layers[1].scoreScale, expected.layers[1].scoreScale);
  ASSERT_EQ(found.layers[1].heads.size(), 2U);
  ExpectEqual(found.layers[1].heads[1], expected.layers[1].heads[1]);
  EXPECT_TRUE(IsOneMatrix(found.layers[1].heads[1].query, expected.layers[1].heads[1].query));
  EXPECT_FALSE(found.layers[1].heads[0].query.IsRecorded());
  EXPECT_TRUE(found.residual.empty());
}

TEST(RecordingConversion, RefusesBadCapsWindowsAndSinks)
{
  const auto message = [](const char* name, double value)
  { return MessageAfter(SetField(name, 1, value), VariantRecording()); };
  EXPECT_THAT(message("Score Cap", -1), HasSubstr("layer 0: expected a score cap above 0"));
  EXPECT_THAT(message("Score Cap", std::nan("")), HasSubstr("found nan"));
  EXPECT_THAT(message("Window", -1), HasSubstr("layer 0: expected a window of at least 1 key"));
  EXPECT_THAT(message("Window", 1.5), HasSubstr("'Window': expected a number of keys, found 1.5"));
  EXPECT_THAT(message("Window", std::nan("")), HasSubstr("expected a number of keys, found nan"));
  EXPECT_THAT(message("Window", 1e300), HasSubstr("expected a number of keys"));
  EXPECT_THAT(message("Sinks", std::nan("")), HasSubstr("layer 2, head 0: expected a finite sink"));
  const auto rename = [](auto* data)
  { data->GetFieldData()->GetArray("Score Cap")->SetName("Sinks"); };
  EXPECT_THAT(MessageAfter(rename, VariantRecording()),
    HasSubstr("layer 0: expected a sink for each of the 2 heads, found 1"));
}

TEST(RecordingConversion, ALayerOrHeadThatIsAbsentIsLeftToTheView)
{
  const auto data = DataSetOf(SmallRecording());
  for (const auto& [layer, head] :
    { std::pair(1, 0), std::pair(7, 0), std::pair(2, 2), std::pair(2, -1), std::pair(-1, 0) })
  {
    const Recording found = AttentionAtlas::ToRecording(data, layer, head);
    EXPECT_EQ(found.layers.size(), 2U);
  }
}

TEST(RecordingConversion, ChecksOneHead)
{
  const auto message = [](const Damage& damage)
  { return MessageOfHeadAfter(damage, StoredRecording()); };
  const auto replace = [&](const char* name, std::int64_t rows, std::int64_t columns)
  {
    return message(
      [=](auto* data)
      {
        vtkTable* head = Table(data, "layer 2", "head 0");
        head->RemoveColumnByName(name);
        head->GetRowData()->AddArray(
          AttentionAtlas::ToArray(SharedMatrix::Zero(rows, columns), name));
      });
  };
  EXPECT_THAT(message(RemoveField("Format")),
    HasSubstr("input recording: expected the field array 'Format'"));
  EXPECT_THAT(
    message(RemoveField("Score Scale")), HasSubstr("expected a scale of layer 2, found none"));
  EXPECT_THAT(message([](auto* data) { data->SetBlock(0, nullptr); }),
    HasSubstr("expected a table in a block 'tokens', found none"));
  EXPECT_THAT(
    message([](auto* data) { Table(data, "layer 2", "head 0")->RemoveColumnByName("Key"); }),
    HasSubstr("layer 2, head 0: expected both queries and keys or neither, found queries alone"));
  EXPECT_THAT(
    replace("Key", 5, 3), HasSubstr("layer 2, head 0: key: expected shape [5, 4], found [5, 3]"));
  EXPECT_THAT(replace("Query", 4, 4),
    HasSubstr("query: expected a row for each of the 5 tokens, found shape [4, 4]"));
  EXPECT_THAT(message([](auto* data)
                { Blocks(Blocks(data, "layer 2"), "head 0 weights")->SetNumberOfBlocks(1); }),
    HasSubstr("weights: expected a matrix for each of the 2 sequences, found 1"));
  EXPECT_THAT(
    message([](auto* data) { data->GetFieldData()->GetArray("ALiBi Slopes")->Resize(1); }),
    HasSubstr("layer 2: expected 2 ALiBi slopes, found 1"));
  // Damage of another head is for those who use it.
  const auto other = [](auto* data)
  { Table(data, "layer 0", "head 1")->RemoveColumnByName("Key"); };
  const auto data = DataSetOf(StoredRecording());
  other(data.Get());
  EXPECT_NO_THROW(AttentionAtlas::ToRecording(data, 2, 0));
  EXPECT_THAT(MessageAfter(other), HasSubstr("layer 0, head 1: expected both queries and keys"));
}

TEST(RecordingConversion, RefusesALostOrMisspeltMask)
{
  EXPECT_EQ(MessageAfter(RemoveField("Mask")),
    "input recording: field array 'Mask': expected one of causal, bidirectional, cross, but the "
    "array is missing.");
  EXPECT_EQ(MessageAfter(SetField("Mask", "Causal")),
    "input recording: field array 'Mask': expected one of "
    "causal, bidirectional, cross, found 'Causal'.");
  EXPECT_THAT(MessageAfter(SetField("Mask", "")), HasSubstr("found ''."));
  EXPECT_THAT(MessageAfter(SetField("Weight Processing", "folded")), HasSubstr("found 'folded'."));
}

TEST(RecordingConversion, ProcessingMayBeUnknown)
{
  const auto data = DataSetOf(SmallRecording());
  data->GetFieldData()->RemoveArray("Weight Processing");
  EXPECT_EQ(AttentionAtlas::ToRecording(data).processing, WeightProcessing::Unknown);
}

TEST(RecordingConversion, RefusesOtherData)
{
  EXPECT_THAT(MessageAfter(RemoveField("Format")),
    HasSubstr("input recording: expected the field array 'Format' to be "
              "'attention-atlas.recording', found no such array; give the output of"));
  const auto convert = [](auto* data)
  {
    vtkTable* table = Table(data, "layer 2", "head 0");
    table->RemoveColumnByName("Key");
    vtkNew<vtkStringArray> texts;
    texts->SetName("Key");
    texts->SetNumberOfValues(5);
    table->AddColumn(texts);
  };
  EXPECT_THAT(MessageAfter(convert),
    HasSubstr("block 'head 0', column 'Key': expected float values, found "));
}

}
