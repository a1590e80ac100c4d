#include "vtkTokenPairs.h"

#include "ArrayNames.h"
#include "AttentionOnly/AttentionEvaluation.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/HeadAccuracy.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Drawing/ClassPalette.h"
#include "PolyOutput.h"
#include "Task.h"

#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// A pair of tokens.
struct Pair
{
  int first;
  int second;
  int target; ///< -1: unknown
  int predicted;
  double probability;
  std::array<float, 3> output;

  int Correct() const
  {
    return this->target < 0 ? -1 : static_cast<int>(this->predicted == this->target);
  }
};

/// A generous estimate of the bytes per pair: itself, and in the output its point, its cell and its
/// arrays.
constexpr double BytesPerTokenPair = 80 + sizeof(Pair);

/// Pairs between two reports of progress.
constexpr vtkIdType PairsPerReport = 16384;

}

vtkStandardNewMacro(vtkTokenPairs);

vtkTokenPairs::vtkTokenPairs()
  : vtkTorusAlgorithm({ "vtkPolyData" })
{
}

void vtkTokenPairs::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  auto* output = task.Output<vtkPolyData>();
  const atlas::ReferenceEvaluator evaluator(model, this->GetOptions());
  const vtkIdType tokens = model.VocabularySize();
  RequireMemory(BytesPerTokenPair * static_cast<double>(tokens) * static_cast<double>(tokens),
    "the " + std::to_string(tokens) + " x " + std::to_string(tokens) + " pairs of tokens",
    "use a model with a smaller vocabulary.");
  std::vector<double> angles;
  angles.reserve(tokens);
  for (vtkIdType t = 0; t < tokens; ++t)
  {
    angles.push_back(
      atlas::AngleOfEmbedding(evaluator.TokenEmbedding(t), this->GetOptions().angles));
  }
  std::vector<Pair> pairs(tokens * tokens);
  ParallelSteps(tokens * tokens, PairsPerReport, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      atlas::Evaluation at;
      for (vtkIdType i = begin; i < end; ++i)
      {
        const auto t1 = static_cast<int>(i / tokens);
        const auto t2 = static_cast<int>(i % tokens);
        evaluator.AtTokens(t1, t2, at);
        const int target = model.HasTargets() ? static_cast<int>(model.nextToken(t1, t2)) : -1;
        pairs[i] = { t1, t2, target, at.predicted, at.probability, {} };
        std::copy_n(at.output.cast<float>().eval().data(), 3, pairs[i].output.begin());
      }
    });
  vtkNew<vtkPoints> points;
  points->SetNumberOfPoints(tokens * tokens);
  for (vtkIdType i = 0; i < tokens * tokens; ++i)
  {
    points->SetPoint(i, angles[pairs[i].first], angles[pairs[i].second], 0);
  }
  output->SetPoints(points);
  output->SetVerts(Vertices(tokens * tokens));
  ListArrays(pairs, output->GetPointData())
    .Int(Names::First, &Pair::first)
    .Int(Names::Second, &Pair::second)
    .Int(Names::Target, &Pair::target)
    .Int(Names::Predicted, &Pair::predicted)
    .Int(Names::Correct, &Pair::Correct)
    .Float(Names::Probability, &Pair::probability)
    .Tuples<vtkFloatArray>(Names::Output, &Pair::output);
  AddColors(output->GetPointData(), Names::TargetColor, pairs,
    [](const Pair& pair) { return atlas::ClassColor(pair.target); });
  if (model.HasTargets())
  {
    const auto correct = std::count_if(
      pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.Correct() == 1; });
    AddField(
      output->GetFieldData(), Names::Accuracy, atlas::PairAccuracy(correct, tokens * tokens));
  }
  SetFormat(output, Formats::TokenPairs);
}
