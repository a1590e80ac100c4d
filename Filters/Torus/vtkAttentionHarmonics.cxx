#include "vtkAttentionHarmonics.h"

#include "ArrayNames.h"
#include "AttentionOnlyModel.h"
#include "Harmonics.h"

#include <vtkDoubleArray.h>
#include <vtkFieldData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <string>
#include <vector>

namespace
{

namespace Names = AttentionAtlas::ArrayNames;

void AddColumn(vtkTable* table, const char* name, std::size_t head,
  const std::array<double, atlas::HarmonicCount>& values)
{
  vtkNew<vtkDoubleArray> column;
  column->SetName((name + (" " + std::to_string(head))).c_str());
  for (const double value : values)
  {
    column->InsertNextValue(value);
  }
  table->AddColumn(column);
}

void AddNames(vtkTable* table)
{
  vtkNew<vtkStringArray> names;
  names->SetName(Names::Harmonic);
  for (const char* name : atlas::HarmonicNames)
  {
    names->InsertNextValue(name);
  }
  table->AddColumn(names);
}

void AddWaves(vtkTable* table, std::size_t head, const atlas::HarmonicCoefficients& coefficients)
{
  std::array<double, atlas::HarmonicCount> amplitudes;
  std::array<double, atlas::HarmonicCount> phases;
  for (std::size_t i = 0; i < atlas::HarmonicCount; ++i)
  {
    const atlas::Wave wave = atlas::WaveOf(coefficients, i);
    amplitudes.at(i) = wave.amplitude;
    phases.at(i) = wave.phase;
  }
  AddColumn(table, Names::Amplitude, head, amplitudes);
  AddColumn(table, Names::Phase, head, phases);
}

}

vtkStandardNewMacro(vtkAttentionHarmonics);

int vtkAttentionHarmonics::FillOutputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), "vtkTable");
  return 1;
}

int vtkAttentionHarmonics::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkTable* output = vtkTable::GetData(outputVector);
  return this->RequestFromModel(inputVector, outputVector,
    [&](const atlas::AttentionOnlyModel& model)
    {
      std::vector<atlas::HarmonicCoefficients> heads;
      for (std::size_t h = 0; h < model.HeadCount(); ++h)
      {
        heads.push_back(atlas::ScoreHarmonics(model, h));
      }
      // The coefficients of all heads side by side, and behind them what they amount to.
      AddNames(output);
      for (std::size_t h = 0; h < heads.size(); ++h)
      {
        AddColumn(output, Names::Head, h, heads[h]);
      }
      for (std::size_t h = 0; h < heads.size(); ++h)
      {
        AddWaves(output, h, heads[h]);
      }
      vtkNew<vtkIntArray> freeParameters;
      freeParameters->SetName(Names::FreeParameters);
      freeParameters->InsertNextValue(atlas::FreeParameterCount(model.HeadDimension()));
      output->GetFieldData()->AddArray(freeParameters);
      return true;
    });
}
