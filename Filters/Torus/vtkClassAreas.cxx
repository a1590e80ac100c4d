#include "vtkClassAreas.h"

#include "ArrayNames.h"
#include "AttentionOnlyModel.h"
#include "ClassAreas.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Execution.h"

#include <vtkInformation.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <vector>

namespace
{

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::AddColumn;

}

vtkStandardNewMacro(vtkClassAreas);

int vtkClassAreas::FillOutputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), "vtkTable");
  return 1;
}

int vtkClassAreas::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkTable* output = vtkTable::GetData(outputVector);
  return this->RequestFromModel(inputVector, outputVector, { AttentionAtlas::Formats::ClassAreas },
    [&](const atlas::AttentionOnlyModel& model)
    {
      const vtkIdType rows = this->Resolution[1];
      const atlas::ClassCounter counter(model, this->GetOptions(), this->Resolution[0], rows);
      std::vector<std::size_t> classes(static_cast<std::size_t>(model.VocabularySize()));
      std::iota(classes.begin(), classes.end(), std::size_t{ 0 });
      atlas::ClassCounts counts{ std::vector<std::int64_t>(classes.size()),
        std::vector<std::int64_t>(classes.size()) };
      std::mutex mutex;
      const vtkIdType chunks = std::min<vtkIdType>(rows, 64);
      for (vtkIdType chunk = 0; chunk < chunks; ++chunk)
      {
        AttentionAtlas::ParallelFor(rows * chunk / chunks, rows * (chunk + 1) / chunks,
          [&](vtkIdType begin, vtkIdType end)
          {
            const atlas::ClassCounts part = counter.Count(begin, end);
            const std::lock_guard<std::mutex> lock(mutex);
            counts.Add(part);
          });
        if (!AttentionAtlas::ReportProgress(
              this, static_cast<double>(chunk + 1) / static_cast<double>(chunks)))
        {
          return false;
        }
      }
      const atlas::PairCounts pairs = atlas::CountPairs(model, this->GetOptions());
      AddColumn<vtkIntArray>(
        output, Names::Class, classes, [](std::size_t k) { return static_cast<int>(k); });
      AddColumn<vtkDoubleArray>(
        output, Names::Area, classes, [&](std::size_t k) { return counts.Area(k); });
      AddColumn<vtkDoubleArray>(output, Names::Probability, classes,
        [&](std::size_t k) { return counts.MeanProbability(k); });
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
      return true;
    });
}

void vtkClassAreas::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Resolution: " << this->Resolution[0] << " " << this->Resolution[1] << "\n";
}
