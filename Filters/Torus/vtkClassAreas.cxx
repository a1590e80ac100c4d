#include "vtkClassAreas.h"

#include "ArrayNames.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/ClassAreas.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "Task.h"

#include <vtkObjectFactory.h>

#include <mutex>
#include <numeric>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

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
  ParallelSteps(rows, rows / 64 + 1, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      const atlas::ClassCounts part = counter.Count(begin, end);
      const std::lock_guard<std::mutex> lock(mutex);
      counts.Add(part);
    });
  const atlas::PairCounts pairs = atlas::CountPairs(model, this->GetOptions());
  ListArrays(classes, output->GetRowData())
    .Int(Names::Class)
    .Double(Names::Area, [&](std::size_t k) { return counts.Area(k); })
    .Double(Names::Probability, [&](std::size_t k) { return counts.MeanProbability(k); })
    .Int(Names::PredictedPairs, [&](std::size_t k) { return pairs.predicted[k]; });
  if (model.HasTargets())
  {
    ListArrays(classes, output->GetRowData())
      .Int(Names::TargetPairs, [&](std::size_t k) { return pairs.targets[k]; })
      .Int(Names::CorrectPairs, [&](std::size_t k) { return pairs.correct[k]; });
    AddField(output->GetFieldData(), Names::Accuracy, pairs.Accuracy());
  }
  SetFormat(output, Formats::ClassAreas);
}
