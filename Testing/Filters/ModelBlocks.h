#pragma once

#include "Core/HandModel.h"
#include "Pipeline.h"

namespace atlas::test
{

/// The tables of a model by the names of their blocks.
inline std::map<std::string, vtkTable*> Blocks(vtkMultiBlockDataSet* model)
{
  std::map<std::string, vtkTable*> blocks;
  for (unsigned int i = 0; i < model->GetNumberOfBlocks(); ++i)
  {
    const char* name = model->GetMetaData(i)->Get(vtkCompositeDataSet::NAME());
    blocks[name] = vtkTable::SafeDownCast(model->GetBlock(i));
  }
  return blocks;
}

/// The single column of a block.
inline vtkDataArray* Column(vtkMultiBlockDataSet* model, const std::string& block)
{
  const std::map<std::string, vtkTable*> blocks = Blocks(model);
  const auto found = blocks.find(block);
  return found == blocks.end() || found->second == nullptr
           ? nullptr
           : vtkDataArray::SafeDownCast(found->second->GetColumn(0));
}

inline std::string Text(vtkMultiBlockDataSet* model, const std::string& field)
{
  auto* array =
    vtkStringArray::SafeDownCast(model->GetFieldData()->GetAbstractArray(field.c_str()));
  return array == nullptr ? "(none)" : std::string(array->GetValue(0));
}

/// Expects equal blocks: their names, and types and bytes of their columns.
inline void ExpectSameBlocks(vtkMultiBlockDataSet* found, vtkMultiBlockDataSet* expected)
{
  const auto expectedBlocks = Blocks(expected);
  ASSERT_EQ(Blocks(found).size(), expectedBlocks.size());
  for (const auto& [name, table] : expectedBlocks)
  {
    EXPECT_TRUE(IsSame(Column(found, name), Column(expected, name))) << name;
  }
}

}
