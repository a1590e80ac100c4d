#include "vtkScoreHarmonics.h"

#include "ArrayNames.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/Harmonics.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Task.h"

#include <vtkObjectFactory.h>

#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

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
  AddColumn<vtkDoubleArray>(table, Names::OfHead(Names::Amplitude, head), amplitudes);
  AddColumn<vtkDoubleArray>(table, Names::OfHead(Names::Phase, head), phases);
}

}

vtkStandardNewMacro(vtkScoreHarmonics);

vtkScoreHarmonics::vtkScoreHarmonics()
  : vtkModelAlgorithm({ "vtkTable" })
{
}

void vtkScoreHarmonics::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  auto* output = task.Output<vtkTable>();
  std::vector<atlas::HarmonicCoefficients> heads;
  heads.reserve(model.HeadCount());
  for (std::size_t h = 0; h < model.HeadCount(); ++h)
  {
    heads.push_back(atlas::ScoreHarmonics(model, h));
  }
  // The coefficients of all heads side by side, followed by amplitudes and phases.
  AddColumn<vtkStringArray>(output, Names::Harmonic, atlas::HarmonicNames);
  for (std::size_t h = 0; h < heads.size(); ++h)
  {
    AddColumn<vtkDoubleArray>(output, Names::OfHead(Names::Head, h), heads[h]);
  }
  for (std::size_t h = 0; h < heads.size(); ++h)
  {
    AddWaves(output, h, heads[h]);
  }
  AddField(output->GetFieldData(), Names::FreeParameters,
    atlas::FreeParameterCount(model.HeadDimension()));
  SetFormat(output, Formats::ScoreHarmonics);
}
