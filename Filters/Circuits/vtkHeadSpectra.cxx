#include "vtkHeadSpectra.h"

#include "ArrayNames.h"
#include "CircuitWeights.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "HeadSpectra.h"
#include "Index.h"
#include "ModelSizes.h"
#include "PanelTitles.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <complex>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
namespace Formats = AttentionAtlas::Formats;
using AttentionAtlas::Task;

namespace
{

using atlas::HeadSpectrum;
using atlas::ToIndex;
using AttentionAtlas::AddColumn;
using AttentionAtlas::MakeArray;
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
  AddColumn<vtkIntArray>(
    table, Names::Layer, spectra, [](const HeadSpectrum& s) { return s.place.layer; });
  AddColumn<vtkIntArray>(
    table, Names::Head, spectra, [](const HeadSpectrum& s) { return s.place.head; });
  AddColumn<vtkDoubleArray>(
    table, Names::Copying, spectra, [](const HeadSpectrum& s) { return s.copying; });
  const std::size_t count = spectra.front().eigenvalues.size();
  for (std::size_t k = 0; k < count; ++k)
  {
    vtkNew<vtkDoubleArray> values;
    values->SetName((Names::Eigenvalue + (" " + std::to_string(k))).c_str());
    values->SetNumberOfComponents(2);
    for (const HeadSpectrum& spectrum : spectra)
    {
      values->InsertNextTuple2(spectrum.eigenvalues[k].real(), spectrum.eigenvalues[k].imag());
    }
    table->AddColumn(values);
  }
  for (std::size_t k = 0; k < count; ++k)
  {
    AddColumn<vtkDoubleArray>(table, Names::SingularValue + (" " + std::to_string(k)), spectra,
      [k](const HeadSpectrum& s) { return s.singularValues[k]; });
  }
}

void FillSquares(const Spectra& spectra, vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> cells;
  for (const HeadSpectrum& spectrum : spectra)
  {
    const Center center = CenterOf(spectra, spectrum);
    const vtkIdType first = points->GetNumberOfPoints();
    for (const auto& [x, y] : { std::pair(-1, -1), { 1, -1 }, { 1, 1 }, { -1, 1 } })
    {
      points->InsertNextPoint(center.x + HalfSide * x, center.y + HalfSide * y, 0);
    }
    cells->InsertNextCell({ first, first + 1, first + 2, first + 3 });
  }
  output->SetPoints(points);
  output->SetPolys(cells);
  vtkCellData* data = output->GetCellData();
  data->AddArray(MakeArray<vtkIntArray>(
    Names::Layer, spectra, [](const HeadSpectrum& s) { return s.place.layer; }));
  data->AddArray(MakeArray<vtkIntArray>(
    Names::Head, spectra, [](const HeadSpectrum& s) { return s.place.head; }));
  data->AddArray(MakeArray<vtkDoubleArray>(
    Names::CopyingScore, spectra, [](const HeadSpectrum& s) { return s.copying; }));
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
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> vertices;
  for (const HeadSpectrum& spectrum : spectra)
  {
    const Center center = CenterOf(spectra, spectrum);
    const double largest = std::abs(spectrum.eigenvalues.front());
    const double scale = largest > 0 ? LargestRadius / largest : 0;
    for (std::size_t k = 0; k < spectrum.eigenvalues.size(); ++k)
    {
      const std::complex<double> value = scale * spectrum.eigenvalues[k];
      const vtkIdType point =
        points->InsertNextPoint(center.x + value.real(), center.y + value.imag(), 0.01);
      vertices->InsertNextCell(1, &point);
      list.push_back({ &spectrum, static_cast<int>(k) });
    }
  }
  output->SetPoints(points);
  output->SetVerts(vertices);
  vtkPointData* data = output->GetPointData();
  const auto add = [&](const char* name, auto valueOf)
  { data->AddArray(MakeArray<vtkDoubleArray>(name, list, valueOf)); };
  data->AddArray(MakeArray<vtkIntArray>(
    Names::Layer, list, [](const Eigenvalue& e) { return e.spectrum->place.layer; }));
  data->AddArray(MakeArray<vtkIntArray>(
    Names::Head, list, [](const Eigenvalue& e) { return e.spectrum->place.head; }));
  data->AddArray(
    MakeArray<vtkIntArray>(Names::Index, list, [](const Eigenvalue& e) { return e.index; }));
  add(Names::Real, [](const Eigenvalue& e) { return e.Value().real(); });
  add(Names::Imaginary, [](const Eigenvalue& e) { return e.Value().imag(); });
  add(Names::Modulus, [](const Eigenvalue& e) { return std::abs(e.Value()); });
}

void FillTitles(const Spectra& spectra, vtkPolyData* output)
{
  AttentionAtlas::PanelTitles titles;
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
  const auto sizes = AttentionAtlas::ModelSizes::OfInput(this);
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
  if (AttentionAtlas::IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  const auto model = AttentionAtlas::ToTransformer(input);
  const bool isOv = this->Circuit == OV;
  const std::vector<HeadSpectrum> found = atlas::FindHeadSpectra(model->GetModel(),
    { isOv ? atlas::SpectrumCircuit::OutputValue : atlas::SpectrumCircuit::QueryKey, this->Full,
      this->Layer, this->Head, atlas::CircuitSteps(this->Processing), AttentionAtlas::ThreadLimit(),
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
    AttentionAtlas::Describe(
      task.Output<vtkDataObject>(port), formats.at(port), this->Processing, leftOut);
  }
}
