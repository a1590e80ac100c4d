#pragma once

// Names and parts that writing and reading of RecordingConversion.h share.

#include "Recording/RecordingQuantities.h"
#include "RecordingConversion.h"

#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace AttentionAtlas
{

/// The largest window that arrays of numbers hold exactly; longer than any sequence.
inline constexpr std::int64_t LargestWindow = std::int64_t{ 1 } << 53U;

inline constexpr const char* RoutingBlock = "routing";

/// The numbers of a picture in the field array PictureContentsField.
inline constexpr int PictureContentNumbers = 6;

/// A kind of window of layers: its field array, its place, and what it has a number of.
struct WindowKind
{
  const char* field;
  std::int64_t atlas::RecordedLayer::* size;
  const char* things;
};
inline constexpr std::array<WindowKind, 3> WindowKinds = { {
  { WindowField, &atlas::RecordedLayer::window, "keys" },
  { PatchWindowField, &atlas::RecordedLayer::patchWindow, "patches" },
  { ChunkField, &atlas::RecordedLayer::chunk, "tokens" },
} };

inline std::string Numbered(const char* name, std::int64_t number)
{
  return name + std::to_string(number);
}

/// The name of a block; empty if it has none.
inline std::string NameOf(vtkMultiBlockDataSet* parent, unsigned int block)
{
  const char* name = parent->HasMetaData(block) != 0
                       ? parent->GetMetaData(block)->Get(vtkCompositeDataSet::NAME())
                       : nullptr;
  return name != nullptr ? name : "";
}

/// The first block of a name if it has a type; otherwise nullptr.
template<class Data>
Data* Find(vtkMultiBlockDataSet* parent, const std::string& name)
{
  unsigned int block = 0;
  while (block < parent->GetNumberOfBlocks() && NameOf(parent, block) != name)
  {
    ++block;
  }
  return block < parent->GetNumberOfBlocks() ? Data::SafeDownCast(parent->GetBlock(block))
                                             : nullptr;
}

inline constexpr auto FindBlocks = Find<vtkMultiBlockDataSet>;
inline constexpr auto FindTable = Find<vtkTable>;

inline const char* SequenceColumn(bool ofImages)
{
  return ofImages ? "Image" : "Sequence";
}

/// "head 3 weights", beside the block "head 3".
inline std::string StoredBlock(const std::string& head, const atlas::StoredQuantity& quantity)
{
  return head + " " + quantity.name;
}

/// "Weights 2", of sequence 2.
inline std::string StoredColumn(const atlas::StoredQuantity& quantity, std::int64_t sequence)
{
  return quantity.label + (" " + std::to_string(sequence));
}

/// The pixels of all pictures.
inline std::int64_t PixelsOf(const atlas::RecordedPictures& pictures)
{
  return static_cast<std::int64_t>(pictures.FirstByte(pictures.count) / 3);
}

template<class Value>
std::vector<Value> ListOf(vtkAbstractArray* array)
{
  std::vector<Value> values;
  auto* numbers = vtkDataArray::SafeDownCast(array);
  for (vtkIdType i = 0; numbers != nullptr && i < numbers->GetNumberOfTuples(); ++i)
  {
    values.push_back(static_cast<Value>(numbers->GetComponent(i, 0)));
  }
  return values;
}

template<>
inline std::vector<std::string> ListOf(vtkAbstractArray* array)
{
  std::vector<std::string> values;
  auto* texts = vtkStringArray::SafeDownCast(array);
  for (vtkIdType i = 0; texts != nullptr && i < texts->GetNumberOfValues(); ++i)
  {
    values.push_back(texts->GetValue(i));
  }
  return values;
}

}
