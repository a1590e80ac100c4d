#include "Base/Error.h"
#include "Core/ErrorMessage.h"
#include "ModelBlocks.h"

#include <vtkShortArray.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The hand model as data, with the targets 0 1, 1 0 in an array of another type.
template<class Array>
vtkSmartPointer<vtkMultiBlockDataSet> ModelWithTargets()
{
  auto model = DataSetOf(HandModel());
  vtkNew<vtkTable> table;
  AddArray<Array>(table->GetRowData(), "next_token", std::vector<unsigned char>{ 0, 1, 1, 0 }, 2);
  const unsigned int block = model->GetNumberOfBlocks();
  model->SetBlock(block, table);
  model->GetMetaData(block)->Set(vtkCompositeDataSet::NAME(), "next_token");
  return model;
}

std::string Refusal(vtkMultiBlockDataSet* model)
{
  return MessageOf<std::runtime_error>([&] { AttentionAtlas::ToModel(model); });
}

TEST(ModelConversion, IsLossless)
{
  HandModel model;
  model.nextToken = TokenMatrix{ { 1, 0 }, { 1, 1 } };
  model.metadata = { { "source", "a test" } };
  const AttentionOnlyModel back = AttentionAtlas::ToModel(DataSetOf(model));
  EXPECT_EQ(back.wordEmbedding, model.wordEmbedding);
  EXPECT_EQ(back.positionEmbedding, model.positionEmbedding);
  EXPECT_EQ(back.unembedding, model.unembedding);
  EXPECT_EQ(back.nextToken, model.nextToken);
  EXPECT_EQ(back.metadata, model.metadata);
  EXPECT_EQ(back.precision, model.precision);
  ASSERT_EQ(back.HeadCount(), model.HeadCount());
  for (std::size_t h = 0; h < model.HeadCount(); ++h)
  {
    EXPECT_EQ(back.heads[h].query, model.heads[h].query);
    EXPECT_EQ(back.heads[h].key, model.heads[h].key);
    EXPECT_EQ(back.heads[h].value, model.heads[h].value);
    EXPECT_EQ(back.heads[h].output, model.heads[h].output);
  }
}

TEST(ModelConversion, TakesTargetsOfEveryIntegerType)
{
  const TokenMatrix expected{ { 0, 1 }, { 1, 0 } };
  for (const auto& model :
    { ModelWithTargets<vtkIntArray>(), ModelWithTargets<vtkUnsignedCharArray>() })
  {
    EXPECT_EQ(AttentionAtlas::ToModel(model).nextToken, expected);
  }
  EXPECT_THAT(Refusal(ModelWithTargets<vtkShortArray>()),
    HasSubstr("block 'next_token': expected double, float or integer values, found short"));
}

TEST(ModelConversion, WantsOneColumnOfNumbers)
{
  const auto model = DataSetOf(HandModel());
  vtkTable* table = Blocks(model)["heads.0.key"];
  AddArray<vtkIntArray>(table->GetRowData(), "second", std::vector<int>{ 0 });
  EXPECT_THAT(Refusal(model),
    HasSubstr("block 'heads.0.key': expected a table with one column of numbers, found 2 columns"));

  table->RemoveColumn(1);
  table->RemoveColumn(0);
  AddArray<vtkStringArray>(table->GetRowData(), "text", std::vector<std::string>{ "no number" });
  EXPECT_THAT(Refusal(model), HasSubstr("block 'heads.0.key': expected a table with one column"));
}

TEST(ModelConversion, RefusesOtherFormats)
{
  const auto model = DataSetOf(HandModel());
  EXPECT_EQ(AttentionAtlas::FormatOf(model), "attention-atlas.attention-only");
  AttentionAtlas::SetFormat(model, AttentionAtlas::Formats::Recording);
  EXPECT_EQ(Refusal(model),
    "input model: expected the field array 'Format' to be 'attention-atlas.attention-only', found "
    "'attention-atlas.recording'; give the output of an Attention-Only Model Reader or "
    "Attention-Only Training.");
}

TEST(ModelConversion, TakesBlocksWithoutAFormat)
{
  const auto model = DataSetOf(HandModel());
  model->GetFieldData()->RemoveArray("Format");
  EXPECT_EQ(AttentionAtlas::ToModel(model).wordEmbedding, HandModel().wordEmbedding);
}

TEST(ModelConversion, NamesAMissingBlock)
{
  const auto model = DataSetOf(HandModel());
  for (unsigned int i = 0; i < model->GetNumberOfBlocks(); ++i)
  {
    if (model->GetBlock(i) == Blocks(model)["unembedding"])
    {
      model->SetBlock(i, nullptr);
    }
  }
  EXPECT_THAT(Refusal(model), HasSubstr("input model: tensor 'unembedding' is missing"));
}

}
