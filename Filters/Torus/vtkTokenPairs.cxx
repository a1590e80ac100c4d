#include "vtkTokenPairs.h"

#include "ArrayNames.h"
#include "AttentionEvaluation.h"
#include "AttentionOnlyModel.h"
#include "ClassPalette.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "HeadAccuracy.h"
#include "PolyOutput.h"
#include "Task.h"

#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <vector>

using AttentionAtlas::Task;

namespace
{

namespace Names = AttentionAtlas::ArrayNames;

/// The points of the output and their arrays. Pairs may be written concurrently.
class PairTable
{
public:
  explicit PairTable(vtkIdType pairs)
  {
    this->Points->SetNumberOfPoints(pairs);
    Prepare(this->First, Names::First, 1, pairs);
    Prepare(this->Second, Names::Second, 1, pairs);
    Prepare(this->Target, Names::Target, 1, pairs);
    Prepare(this->Predicted, Names::Predicted, 1, pairs);
    Prepare(this->Correct, Names::Correct, 1, pairs);
    Prepare(this->Probability, Names::Probability, 1, pairs);
    Prepare(this->Output, Names::Output, 3, pairs);
    Prepare(this->TargetColor, Names::TargetColor, 3, pairs);
  }

  void Set(vtkIdType pair, const atlas::AttentionOnlyModel& model,
    const atlas::ReferenceEvaluator& evaluator, const std::vector<double>& angles,
    atlas::Evaluation& at)
  {
    const vtkIdType t1 = pair / model.VocabularySize();
    const vtkIdType t2 = pair % model.VocabularySize();
    evaluator.AtTokens(t1, t2, at);
    const int target = model.HasTargets() ? static_cast<int>(model.nextToken(t1, t2)) : -1;
    const atlas::Rgb color = atlas::ClassColor(target);
    this->Points->SetPoint(pair, angles[t1], angles[t2], 0);
    this->First->SetValue(pair, static_cast<int>(t1));
    this->Second->SetValue(pair, static_cast<int>(t2));
    this->Target->SetValue(pair, target);
    this->Predicted->SetValue(pair, at.predicted);
    this->Correct->SetValue(pair, target < 0 ? -1 : at.predicted == target);
    this->Probability->SetValue(pair, static_cast<float>(at.probability));
    for (int c = 0; c < 3; ++c)
    {
      this->Output->SetTypedComponent(pair, c, static_cast<float>(at.output[c]));
      this->TargetColor->SetTypedComponent(pair, c, color[c]);
    }
  }

  void MoveTo(vtkPolyData* output)
  {
    output->SetPoints(this->Points);
    output->SetVerts(AttentionAtlas::Vertices(this->Points->GetNumberOfPoints()));
    vtkPointData* data = output->GetPointData();
    for (vtkDataArray* array :
      std::initializer_list<vtkDataArray*>{ this->First, this->Second, this->Target,
        this->Predicted, this->Correct, this->Probability, this->Output, this->TargetColor })
    {
      data->AddArray(array);
    }
    data->SetActiveScalars(Names::TargetColor);
  }

  /// The fraction of correct pairs.
  double Accuracy() const
  {
    vtkIdType correct = 0;
    for (vtkIdType i = 0; i < this->Correct->GetNumberOfTuples(); ++i)
    {
      correct += this->Correct->GetValue(i);
    }
    return atlas::PairAccuracy(correct, this->Correct->GetNumberOfTuples());
  }

private:
  static void Prepare(vtkDataArray* array, const char* name, int components, vtkIdType tuples)
  {
    array->SetName(name);
    array->SetNumberOfComponents(components);
    array->SetNumberOfTuples(tuples);
  }

  vtkNew<vtkPoints> Points;
  vtkNew<vtkIntArray> First;
  vtkNew<vtkIntArray> Second;
  vtkNew<vtkIntArray> Target;
  vtkNew<vtkIntArray> Predicted;
  vtkNew<vtkIntArray> Correct;
  vtkNew<vtkFloatArray> Probability;
  vtkNew<vtkFloatArray> Output;
  vtkNew<vtkUnsignedCharArray> TargetColor;
};

/// A generous estimate of the bytes per pair in the output: its point, its cell and its arrays.
constexpr double BytesPerTokenPair = 80;

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
  AttentionAtlas::RequireMemory(
    BytesPerTokenPair * static_cast<double>(tokens) * static_cast<double>(tokens),
    "the " + std::to_string(tokens) + " x " + std::to_string(tokens) + " pairs of tokens",
    "use a model with a smaller vocabulary.");
  std::vector<double> angles;
  angles.reserve(tokens);
  for (vtkIdType t = 0; t < tokens; ++t)
  {
    angles.push_back(
      atlas::AngleOfEmbedding(evaluator.TokenEmbedding(t), this->GetOptions().angles));
  }
  const vtkIdType pairs = tokens * tokens;
  PairTable table(pairs);
  AttentionAtlas::ParallelSteps(pairs, PairsPerReport, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      atlas::Evaluation scratch;
      for (vtkIdType pair = begin; pair < end; ++pair)
      {
        table.Set(pair, model, evaluator, angles, scratch);
      }
    });
  table.MoveTo(output);
  if (model.HasTargets())
  {
    AttentionAtlas::AddField(output->GetFieldData(), Names::Accuracy, table.Accuracy());
  }
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::TokenPairs);
}
