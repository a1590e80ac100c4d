#include "vtkHeadAccuracy.h"

#include "ArrayNames.h"
#include "AttentionOnlyModel.h"
#include "HeadAccuracy.h"

#include <vtkDoubleArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <string>

namespace
{

namespace Names = AttentionAtlas::ArrayNames;

/// The columns of the output, filled row by row.
class AccuracyTable
{
public:
  AccuracyTable()
  {
    this->Name->SetName(Names::Name);
    this->Accuracy->SetName(Names::Accuracy);
    this->Correct->SetName(Names::Correct);
    this->Pairs->SetName(Names::Pairs);
  }

  void AddRow(const std::string& name, Eigen::Index correct, Eigen::Index pairs)
  {
    this->Name->InsertNextValue(name);
    this->Accuracy->InsertNextValue(static_cast<double>(correct) / static_cast<double>(pairs));
    this->Correct->InsertNextValue(static_cast<int>(correct));
    this->Pairs->InsertNextValue(static_cast<int>(pairs));
  }

  void MoveTo(vtkTable* output)
  {
    output->AddColumn(this->Name);
    output->AddColumn(this->Accuracy);
    output->AddColumn(this->Correct);
    output->AddColumn(this->Pairs);
  }

private:
  vtkNew<vtkStringArray> Name;
  vtkNew<vtkDoubleArray> Accuracy;
  vtkNew<vtkIntArray> Correct;
  vtkNew<vtkIntArray> Pairs;
};

}

vtkStandardNewMacro(vtkHeadAccuracy);

int vtkHeadAccuracy::FillOutputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), "vtkTable");
  return 1;
}

int vtkHeadAccuracy::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkTable* output = vtkTable::GetData(outputVector);
  return this->RequestFromModel(inputVector, outputVector,
    [&](const atlas::AttentionOnlyModel& model)
    {
      const atlas::HeadAccuracies counts =
        atlas::CountCorrect(model, static_cast<atlas::Residual>(this->Residual));
      AccuracyTable table;
      for (std::size_t h = 0; h < counts.alone.size(); ++h)
      {
        table.AddRow("Head " + std::to_string(h), counts.alone[h], counts.pairs);
      }
      table.AddRow("All Heads", counts.all, counts.pairs);
      table.AddRow("Union", counts.any, counts.pairs);
      table.MoveTo(output);
      return true;
    });
}

void vtkHeadAccuracy::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Residual: " << this->Residual << "\n";
}
