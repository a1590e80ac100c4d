#include "vtkHeadSpectra.h"

#include "ArrayNames.h"
#include "Circuits/CircuitWeights.h"
#include "Circuits/HeadSpectra.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "PanelTitles.h"
#include "RecordingRanges.h"
#include "Shapes.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <complex>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::HeadSpectrum;
using Spectra = std::vector<HeadSpectrum>;

constexpr double HalfSide = 0.48;
constexpr double LargestRadius = 0.44;

/// The place of a head: its square is around it.
struct Center
{
  double x = 0;
  double y = 0;
};

Center CenterOf(const Spectra& spectra, const HeadSpectrum& spectrum)
{
  const atlas::HeadPlace& first = spectra.front().place;
  return { static_cast<double>(spectrum.place.head - first.head),
    static_cast<double>(first.layer - spectrum.place.layer) };
}

void FillTable(const Spectra& spectra, vtkTable* table)
{
  ListArrays(spectra, table->GetRowData())
    .Int(Names::Layer, [](const HeadSpectrum& s) { return s.place.layer; })
    .Int(Names::Head, [](const HeadSpectrum& s) { return s.place.head; })
    .Double(Names::Copying, &HeadSpectrum::copying);
  const std::size_t count = spectra.front().eigenvalues.size();
  for (std::size_t k = 0; k < count; ++k)
  {
    ListArrays(spectra, table->GetRowData())
      .Tuples<vtkDoubleArray>(Names::Eigenvalue + (" " + std::to_string(k)),
        [k](const HeadSpectrum& s)
        { return std::array{ s.eigenvalues[k].real(), s.eigenvalues[k].imag() }; });
  }
  for (std::size_t k = 0; k < count; ++k)
  {
    AddColumn<vtkDoubleArray>(table, Names::SingularValue + (" " + std::to_string(k)), spectra,
      [k](const HeadSpectrum& s) { return s.singularValues[k]; });
  }
}

void FillSquares(const Spectra& spectra, vtkPolyData* output)
{
  Shapes squares;
  for (const HeadSpectrum& spectrum : spectra)
  {
    const Center center = CenterOf(spectra, spectrum);
    squares.AddRectangle(
      center.x - HalfSide, center.y - HalfSide, center.x + HalfSide, center.y + HalfSide);
  }
  squares.MoveToPolys(output);
  vtkCellData* data = output->GetCellData();
  ListArrays(spectra, data)
    .Int(Names::Layer, [](const HeadSpectrum& s) { return s.place.layer; })
    .Int(Names::Head, [](const HeadSpectrum& s) { return s.place.head; })
    .Double(Names::CopyingScore, &HeadSpectrum::copying);
  data->SetActiveScalars(Names::CopyingScore);
}

/// An eigenvalue of a head.
struct Eigenvalue
{
  const HeadSpectrum* spectrum;
  int index;

  const std::complex<double>& Value() const { return this->spectrum->eigenvalues[this->index]; }
};

void FillEigenvalues(const Spectra& spectra, vtkPolyData* output)
{
  std::vector<Eigenvalue> list;
  Shapes vertices;
  for (const HeadSpectrum& spectrum : spectra)
  {
    const Center center = CenterOf(spectra, spectrum);
    const double largest = std::abs(spectrum.eigenvalues.front());
    const double scale = largest > 0 ? LargestRadius / largest : 0;
    for (std::size_t k = 0; k < spectrum.eigenvalues.size(); ++k)
    {
      const std::complex<double> value = scale * spectrum.eigenvalues[k];
      vertices.AddVertex(center.x + value.real(), center.y + value.imag(), 0.01);
      list.push_back({ &spectrum, static_cast<int>(k) });
    }
  }
  vertices.MoveToVerts(output);
  vtkPointData* data = output->GetPointData();
  ListArrays(list, data)
    .Int(Names::Layer, [](const Eigenvalue& e) { return e.spectrum->place.layer; })
    .Int(Names::Head, [](const Eigenvalue& e) { return e.spectrum->place.head; })
    .Int(Names::Index, &Eigenvalue::index)
    .Double(Names::Real, [](const Eigenvalue& e) { return e.Value().real(); })
    .Double(Names::Imaginary, [](const Eigenvalue& e) { return e.Value().imag(); })
    .Double(Names::Modulus, [](const Eigenvalue& e) { return std::abs(e.Value()); });
}

void FillTitles(const Spectra& spectra, vtkPolyData* output)
{
  PanelTitles titles;
  const atlas::HeadPlace& first = spectra.front().place;
  for (const HeadSpectrum& spectrum : spectra)
  {
    const Center center = CenterOf(spectra, spectrum);
    if (spectrum.place.head == first.head)
    {
      titles.AddToTheLeft(-0.6, center.y, "Layer " + std::to_string(spectrum.place.layer));
    }
    if (spectrum.place.layer == first.layer)
    {
      titles.Add(center.x - HalfSide, 0.6, "Head " + std::to_string(spectrum.place.head));
    }
  }
  titles.MoveTo(output, Formats::HeadSpectraTitles);
}

}

vtkStandardNewMacro(vtkHeadSpectra);

vtkHeadSpectra::vtkHeadSpectra()
  : vtkTaskAlgorithm(
      { "vtkMultiBlockDataSet" }, { "vtkTable", "vtkPolyData", "vtkPolyData", "vtkPolyData" })
{
}

int vtkHeadSpectra::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const auto sizes = ModelSizes::OfInput(this);
  this->LayerRange[1] = std::max(sizes.layers - 1, 0);
  this->HeadRange[1] = std::max(sizes.heads - 1, 0);
  for (int port = 0; port < 4; ++port)
  {
    outputVector->GetInformationObject(port)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  }
  return 1;
}

void vtkHeadSpectra::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  const auto model = ToTransformer(input);
  const bool isOv = this->Circuit == OV;
  const std::vector<HeadSpectrum> found = atlas::FindHeadSpectra(model->GetModel(),
    { isOv ? atlas::SpectrumCircuit::OutputValue : atlas::SpectrumCircuit::QueryKey, this->Full,
      this->Layer, this->Head, atlas::CircuitSteps(this->Processing), ThreadLimit(),
      task.Progress() });
  FillTable(found, task.Output<vtkTable>(0));
  FillSquares(found, task.Output<vtkPolyData>(1));
  FillEigenvalues(found, task.Output<vtkPolyData>(2));
  FillTitles(found, task.Output<vtkPolyData>(3));
  const atlas::TransformerConfig& config = model->GetModel().GetConfig();
  std::vector<std::string> leftOut = isOv ? atlas::LeftOutOfOutputValue(config, this->Processing)
                                          : atlas::LeftOutOfQueryKey(config, this->Processing);
  if (!isOv)
  {
    leftOut.emplace_back("division by sqrt(d_head)");
  }
  const std::array<const char*, 4> formats = { Formats::HeadSpectra, Formats::HeadSpectraHeads,
    Formats::HeadSpectraEigenvalues, Formats::HeadSpectraTitles };
  for (int port = 0; port < 4; ++port)
  {
    Describe(task.Output<vtkDataObject>(port), formats.at(port), this->Processing, leftOut);
  }
}
