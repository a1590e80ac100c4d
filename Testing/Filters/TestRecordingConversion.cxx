#include "RecordingConversion.h"

#include "Core/ErrorMessage.h"
#include "Error.h"
#include "Recordings.h"
#include "SharedArray.h"

#include <vtkCompositeDataSet.h>
#include <vtkDoubleArray.h>
#include <vtkInformation.h>
#include <vtkNew.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <functional>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

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

vtkTable* Table(vtkMultiBlockDataSet* recording, const std::string& layer, const std::string& name)
{
  auto* parent = vtkMultiBlockDataSet::SafeDownCast(Block(recording, layer));
  return vtkTable::SafeDownCast(Block(parent, name));
}

TEST(RecordingConversion, NamesBlocksAndColumns)
{
  const auto data = DataSetOf(SmallRecording());
  EXPECT_EQ(data->GetNumberOfBlocks(), 5U); // tokens, layers 0, 2 and 3, logits
  auto* tokens = vtkTable::SafeDownCast(Block(data, "tokens"));
  EXPECT_THAT(Names(tokens->GetRowData()), ElementsAre("Position", "Sequence", "Token", "TokenId"));
  EXPECT_THAT(Values(tokens->GetRowData(), "TokenId"), ElementsAre(11, 12, 13, 21, 22));
  vtkTable* head = Table(data, "layer 2", "head 1");
  EXPECT_THAT(
    Names(head->GetRowData()), ElementsAre("Key", "Output", "Query", "Value", "Value Norm"));
  EXPECT_EQ(head->GetNumberOfRows(), 5);
  EXPECT_EQ(head->GetColumnByName("Output")->GetNumberOfComponents(), 6);
  EXPECT_EQ(Table(data, "layer 3", "residual")->GetNumberOfRows(), 5);
  EXPECT_EQ(
    vtkTable::SafeDownCast(Block(data, "logits"))->GetColumn(0)->GetNumberOfComponents(), 9);
  vtkFieldData* fields = data->GetFieldData();
  EXPECT_THAT(Values(fields, "Layers"), ElementsAre(3));
  EXPECT_THAT(Values(fields, "Heads"), ElementsAre(2));
  EXPECT_THAT(Values(fields, "HeadDimension"), ElementsAre(4));
  EXPECT_THAT(Values(fields, "Score Scale"), ElementsAre(0, 0.5, 2, 0.5 / 3));
  EXPECT_THAT(Values(fields, "ALiBi Slopes"), ElementsAre(0.5, 0.25));
  EXPECT_THAT(Values(fields, "Sequence Offsets"), ElementsAre(0, 3, 5));
  EXPECT_EQ(vtkStringArray::SafeDownCast(fields->GetAbstractArray("Mask"))->GetValue(0), "causal");
}

TEST(RecordingConversion, NamesPatchesOfImages)
{
  Recording recording = SmallRecording();
  recording.tokens.id.clear();
  recording.tokens.text.clear();
  recording.tokens.row = { -1, 0, 0, -1, 0 };
  recording.tokens.column = { -1, 0, 1, -1, 0 };
  const auto data = DataSetOf(recording);
  auto* tokens = vtkTable::SafeDownCast(Block(data, "tokens"));
  EXPECT_THAT(Names(tokens->GetRowData()), ElementsAre("Column", "Image", "Position", "Row"));
  ExpectEqual(AttentionAtlas::ToRecording(data), recording);
}

TEST(RecordingConversion, GivesTheRecordingBack)
{
  const Recording recording = SmallRecording();
  ExpectEqual(AttentionAtlas::ToRecording(DataSetOf(recording)), recording);
}

/// The small recording with attention of layer 2.
Recording StoredRecording()
{
  std::mt19937 generator(1);
  Recording recording = SmallRecording();
  for (RecordedHead& head : recording.layers[1].heads)
  {
    head.weights = { RandomMatrix(3, 3, generator), RandomMatrix(2, 2, generator) };
    head.scores = { RandomMatrix(3, 3, generator), RandomMatrix(2, 2, generator) };
  }
  return recording;
}

TEST(RecordingConversion, GivesStoredAttentionBack)
{
  const Recording recording = StoredRecording();
  ExpectEqual(AttentionAtlas::ToRecording(DataSetOf(recording)), recording);
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

using Damage = std::function<void(vtkMultiBlockDataSet*)>;

/// Damaged recordings, and the expected messages.
std::string MessageAfter(const Damage& damage)
{
  const auto data = DataSetOf(SmallRecording());
  damage(data);
  return MessageOf<ModelError>([&]() { AttentionAtlas::ToRecording(data); });
}

/// The same of one head, head 0 of layer 2.
std::string MessageOfHeadAfter(const Damage& damage)
{
  const auto data = DataSetOf(StoredRecording());
  damage(data);
  return MessageOf<ModelError>([&]() { AttentionAtlas::ToRecording(data, 2, 0); });
}

TEST(RecordingConversion, GivesOneHead)
{
  const Recording expected = StoredRecording();
  const auto data = DataSetOf(expected);
  const Recording found = AttentionAtlas::ToRecording(data, 2, 1);
  EXPECT_EQ(found.sequenceOffsets, expected.sequenceOffsets);
  EXPECT_EQ(found.tokens.text, expected.tokens.text);
  EXPECT_EQ(found.alibiSlopes, expected.alibiSlopes);
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
  const auto head = [](auto* data) { return Table(data, "layer 2", "head 0"); };
  const auto replace = [head](auto* data, const char* name, std::int64_t rows, std::int64_t columns)
  {
    head(data)->RemoveColumnByName(name);
    auto* table = head(data);
    table->GetRowData()->AddArray(AttentionAtlas::ToArray(SharedMatrix::Zero(rows, columns), name));
  };
  EXPECT_THAT(MessageOfHeadAfter([](auto* data) { data->GetFieldData()->RemoveArray("Format"); }),
    HasSubstr("input recording: expected the field array 'Format'"));
  EXPECT_THAT(
    MessageOfHeadAfter([](auto* data) { data->GetFieldData()->RemoveArray("Score Scale"); }),
    HasSubstr("expected a scale of layer 2, found none"));
  EXPECT_THAT(MessageOfHeadAfter([](auto* data) { data->SetBlock(0, nullptr); }),
    HasSubstr("expected a table in a block 'tokens', found none"));
  EXPECT_THAT(MessageOfHeadAfter([head](auto* data) { head(data)->RemoveColumnByName("Key"); }),
    HasSubstr("layer 2, head 0: expected both queries and keys or neither, found queries alone"));
  EXPECT_THAT(MessageOfHeadAfter([&](auto* data) { replace(data, "Key", 5, 3); }),
    HasSubstr("layer 2, head 0: key: expected shape [5, 4], found [5, 3]"));
  EXPECT_THAT(MessageOfHeadAfter([&](auto* data) { replace(data, "Query", 4, 4); }),
    HasSubstr("query: expected a row for each of the 5 tokens, found shape [4, 4]"));
  EXPECT_THAT(MessageOfHeadAfter(
                [](auto* data)
                {
                  auto* layer = vtkMultiBlockDataSet::SafeDownCast(Block(data, "layer 2"));
                  auto* weights =
                    vtkMultiBlockDataSet::SafeDownCast(Block(layer, "head 0 weights"));
                  weights->SetNumberOfBlocks(1);
                }),
    HasSubstr("weights: expected a matrix for each of the 2 sequences, found 1"));
  EXPECT_THAT(
    MessageOfHeadAfter([](auto* data)
      { vtkDoubleArray::SafeDownCast(data->GetFieldData()->GetArray("ALiBi Slopes"))->Resize(1); }),
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
  const auto name = [](const char* field, const char* text)
  {
    return [field, text](vtkMultiBlockDataSet* data)
    {
      auto* array = vtkStringArray::SafeDownCast(data->GetFieldData()->GetAbstractArray(field));
      array->SetValue(0, text);
    };
  };
  EXPECT_EQ(MessageAfter([](auto* data) { data->GetFieldData()->RemoveArray("Mask"); }),
    "input recording: field array 'Mask': expected one of causal, bidirectional, but the array is "
    "missing.");
  EXPECT_EQ(MessageAfter(name("Mask", "Causal")),
    "input recording: field array 'Mask': expected one of causal, bidirectional, found 'Causal'.");
  EXPECT_THAT(MessageAfter(name("Mask", "")), HasSubstr("found ''."));
  EXPECT_THAT(MessageAfter(name("Weight Processing", "folded")), HasSubstr("found 'folded'."));
}

TEST(RecordingConversion, ProcessingMayBeUnknown)
{
  const auto data = DataSetOf(SmallRecording());
  data->GetFieldData()->RemoveArray("Weight Processing");
  EXPECT_EQ(AttentionAtlas::ToRecording(data).processing, WeightProcessing::Unknown);
}

TEST(RecordingConversion, RefusesOtherData)
{
  EXPECT_THAT(MessageAfter([](auto* data) { data->GetFieldData()->RemoveArray("Format"); }),
    HasSubstr("input recording: expected the field array 'Format' to be "
              "'attention-atlas.recording', found no such array; give the output of"));
  EXPECT_THAT(MessageAfter([](auto* data) { data->GetFieldData()->RemoveArray("Score Scale"); }),
    HasSubstr("expected a scale of layer 0, found none"));
  EXPECT_THAT(MessageAfter([](auto* data) { data->SetBlock(0, nullptr); }),
    HasSubstr("expected a table in a block 'tokens', found none"));
  const auto shorten = [](auto* data)
  { Table(data, "layer 2", "head 0")->RemoveColumnByName("Key"); };
  EXPECT_THAT(MessageAfter(shorten), HasSubstr("layer 2"));
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
