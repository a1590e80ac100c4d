#include "AttentionOnly/AttentionEvaluation.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/FieldEvaluation.h"
#include "Files/Safetensors.h"
#include "FuzzTarget.h"

#include <vector>

using namespace atlas;

namespace
{

/// Evaluates the model at a few pairs of tokens and in a row of the torus.
void Evaluate(const AttentionOnlyModel& model)
{
  EvaluationOptions options;
  const ReferenceEvaluator reference(model, options);
  const Eigen::Index last = model.VocabularySize() - 1;
  const Evaluation evaluation = reference.AtTokens(0, last);
  fuzz::Require(evaluation.predicted >= 0 && evaluation.predicted <= last, "a token");

  constexpr std::size_t points = 5;
  std::vector<std::int32_t> classes(points);
  std::vector<float> probabilities(points);
  FieldArrays arrays;
  arrays.predicted = classes.data();
  arrays.probability = probabilities.data();
  FieldEvaluator field(model, options);
  field.SetColumns({ -3, -1, 0, 0.5, 3 });
  field.EvaluateRow(1, arrays, 0);
  for (const std::int32_t predicted : classes)
  {
    fuzz::Require(predicted >= 0 && predicted <= last, "a token");
  }
}

}

/// The reader of models in both of their namings, the evaluation of what it reads, and that a model
/// is read as it was written.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  AttentionOnlyModel model;
  const bool isRead = fuzz::Read(
    [&]
    {
      const SafetensorsContent content = ParseSafetensors(fuzz::Bytes(data), size, fuzz::Source);
      const int subHeads = size % 8 == 0 ? 3 : 1;
      model = MakeAttentionOnlyModel(content.tensors, content.metadata, subHeads, fuzz::Source);
    });
  if (!isRead)
  {
    return 0;
  }
  fuzz::Use([&] { Evaluate(model); });

  const Tensors tensors = MakeTensors(model);
  const AttentionOnlyModel again =
    MakeAttentionOnlyModel(ViewsOf(tensors), model.metadata, 1, "again");
  const Tensors others = MakeTensors(again);
  fuzz::Require(others.size() == tensors.size(), "as many tensors");
  for (const auto& [name, tensor] : tensors)
  {
    const Tensor& other = others.at(name);
    fuzz::Require(
      other.dtype == tensor.dtype && other.shape == tensor.shape && other.bytes == tensor.bytes,
      "the same tensor '" + name + "'");
  }
  return 0;
}
