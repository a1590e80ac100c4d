#include "vtkClassAreas.h"

#include "ArrayNames.h"
#include "AttentionOnlyModel.h"
#include "ClassAreas.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Task.h"

#include <vtkInformation.h>
#include <vtkObjectFactory.h>

#include <mutex>
#include <numeric>
#include <vector>

using AttentionAtlas::Task;

namespace
{

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::AddColumn;

}

vtkStandardNewMacro(vtkClassAreas);

vtkClassAreas::vtkClassAreas()
  : vtkTorusAlgorithm({ "vtkTable" })
{
}

void vtkClassAreas::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  auto* output = task.Output<vtkTable>();
  const vtkIdType rows = this->Resolution[1];
  const atlas::ClassCounter counter(model, this->GetOptions(), this->Resolution[0], rows);
  std::vector<std::size_t> classes(model.VocabularySize());
  std::iota(classes.begin(), classes.end(), std::size_t{ 0 });
  atlas::ClassCounts counts{ std::vector<std::int64_t>(classes.size()),
    std::vector<std::int64_t>(classes.size()) };
  std::mutex mutex;
  AttentionAtlas::ParallelSteps(rows, rows / 64 + 1, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      const atlas::ClassCounts part = counter.Count(begin, end);
      const std::lock_guard<std::mutex> lock(mutex);
      counts.Add(part);
    });
  const atlas::PairCounts pairs = atlas::CountPairs(model, this->GetOptions());
  AddColumn<vtkIntArray>(
    output, Names::Class, classes, [](std::size_t k) { return static_cast<int>(k); });
  AddColumn<vtkDoubleArray>(
    output, Names::Area, classes, [&](std::size_t k) { return counts.Area(k); });
  AddColumn<vtkDoubleArray>(
    output, Names::Probability, classes, [&](std::size_t k) { return counts.MeanProbability(k); });
  AddColumn<vtkIntArray>(
    output, Names::PredictedPairs, classes, [&](std::size_t k) { return pairs.predicted[k]; });
  if (model.HasTargets())
  {
    AddColumn<vtkIntArray>(
      output, Names::TargetPairs, classes, [&](std::size_t k) { return pairs.targets[k]; });
    AddColumn<vtkIntArray>(
      output, Names::CorrectPairs, classes, [&](std::size_t k) { return pairs.correct[k]; });
    AttentionAtlas::AddField(output->GetFieldData(), Names::Accuracy, pairs.Accuracy());
  }
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::ClassAreas);
}
