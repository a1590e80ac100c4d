#pragma once

#include "Circuits/LargestProducts.h"
#include "Recorder/OpenTransformer.h"

#include <cstdint>
#include <string>
#include <vector>

class vtkAlgorithm;
class vtkDataObject;
class vtkMultiBlockDataSet;

/// What the views of weights share.
namespace AttentionAtlas
{

/// The sizes of a transformer, from its field data alone; 0 without one.
struct ModelSizes
{
  int layers = 0;
  int heads = 0;
  int headDimension = 0;
  int modelDimension = 0;

  ModelSizes() = default;
  explicit ModelSizes(vtkMultiBlockDataSet* model);

  /// Those of the input of a filter, by its outline.
  static ModelSizes OfInput(vtkAlgorithm* filter);
};

/// Adds the format and the field arrays Processing and Left Out of a result of weights.
void Describe(vtkDataObject* output, const char* format, bool processes,
  const std::vector<std::string>& leftOut);

/// "2.5" for head 5 of layer 2.
std::string HeadNameOf(int layer, int head);

class Task;

/// The tokens of the property Tokens, or Core's SampleTokens if there are none. Throws as
/// TokenNames::Find.
std::vector<std::int32_t> ChosenTokens(
  const atlas::OpenTransformer& model, const std::vector<std::string>& entries);

/// Settings of a filter's search for the largest entries: on its threads, with its progress.
atlas::LargestProductOptions LargestOptions(const Task& task, int top);

}
