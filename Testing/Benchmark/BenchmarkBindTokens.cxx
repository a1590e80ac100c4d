// Cells of a tetrahedral mesh that are bound to the nearest of 10,000 tokens, and a query on them.
// Counters:
//   cells    of the mesh
//   cells_per_s

#include "vtkBindTokens.h"
#include "vtkSpatialAttention.h"

#include "Recording/Recording.h"
#include "RecordingConversion.h"

#include <vtkDataSetTriangleFilter.h>
#include <vtkImageData.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkTrivialProducer.h>
#include <vtkUnstructuredGrid.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t TokenCount = 10'000;
constexpr int HeadDimension = 16;

/// 59 x 59 x 59 cubes of five tetrahedra each: 1,026,895 cells.
vtkUnstructuredGrid* Mesh()
{
  static const auto mesh = []
  {
    vtkNew<vtkImageData> cubes;
    cubes->SetDimensions(60, 60, 60);
    vtkNew<vtkDataSetTriangleFilter> tetrahedra;
    tetrahedra->SetInputData(cubes);
    tetrahedra->Update();
    return vtkSmartPointer<vtkUnstructuredGrid>(tetrahedra->GetOutput());
  }();
  return mesh;
}

/// Tokens at random places of the mesh.
vtkPolyData* Tokens()
{
  static const auto tokens = []
  {
    std::mt19937 generator(3);
    vtkNew<vtkPoints> points;
    for (std::int64_t i = 0; i < TokenCount; ++i)
    {
      const auto next = [&] { return 59.0 * static_cast<double>(generator()) / 0x1p32; };
      const double x = next();
      const double y = next();
      points->InsertNextPoint(x, y, next());
    }
    auto data = vtkSmartPointer<vtkPolyData>::New();
    data->SetPoints(points);
    return data;
  }();
  return tokens;
}

/// Random queries and keys of one head.
vtkMultiBlockDataSet* Recorded()
{
  static const auto recorded = []
  {
    std::mt19937 generator(5);
    atlas::Recording recording;
    recording.mask = atlas::AttentionMask::Bidirectional;
    recording.layerCount = 1;
    recording.sequenceOffsets = { 0, TokenCount };
    recording.tokens.sequence.assign(TokenCount, 0);
    recording.tokens.position.resize(TokenCount);
    std::iota(recording.tokens.position.begin(), recording.tokens.position.end(), 0);
    atlas::RecordedHead head;
    for (atlas::SharedMatrix* matrix : { &head.query, &head.key })
    {
      *matrix = atlas::SharedMatrix::Zero(TokenCount, HeadDimension);
      for (std::size_t i = 0; i < matrix->Count(); ++i)
      {
        matrix->values.get()[i] = static_cast<float>(generator() % 2001) / 1000 - 1;
      }
    }
    atlas::RecordedLayer layer;
    layer.index = 0;
    layer.scoreScale = 1;
    layer.heads.push_back(head);
    recording.layers.push_back(layer);
    auto data = vtkSmartPointer<vtkMultiBlockDataSet>::New();
    AttentionAtlas::ToDataSet(recording, data);
    return data;
  }();
  return recorded;
}

void Connect(vtkAlgorithm* filter, int port, vtkDataObject* data)
{
  vtkNew<vtkTrivialProducer> producer;
  producer->SetOutput(data);
  filter->SetInputConnection(port, producer->GetOutputPort());
}

void Prepare(vtkBindTokens* binding)
{
  Connect(binding, 0, Mesh());
  Connect(binding, 1, Recorded());
  Connect(binding, 2, Tokens());
  binding->SetMethod(vtkBindTokens::NEAREST);
  binding->SetPlaces(vtkBindTokens::CELLS);
}

void Nearest(benchmark::State& state)
{
  vtkNew<vtkBindTokens> binding;
  Prepare(binding);
  binding->UpdateInformation();
  for (auto _ : state)
  {
    binding->Modified();
    binding->Update();
  }
  const auto cells = static_cast<double>(Mesh()->GetNumberOfCells());
  state.counters["cells"] = cells;
  state.counters["cells_per_s"] =
    benchmark::Counter(cells, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(Nearest)->Unit(benchmark::kMillisecond)->UseRealTime();

/// A new query of a mesh that was bound: the row of a token, a value per cell, lines and table.
void Query(benchmark::State& state)
{
  vtkNew<vtkBindTokens> binding;
  Prepare(binding);
  vtkNew<vtkSpatialAttention> attention;
  attention->SetInputConnection(0, binding->GetOutputPort());
  Connect(attention, 1, Recorded());
  attention->Update();
  int token = 0;
  for (auto _ : state)
  {
    attention->SetToken(++token % static_cast<int>(TokenCount));
    attention->Update();
  }
  state.counters["cells"] = static_cast<double>(Mesh()->GetNumberOfCells());
}
BENCHMARK(Query)->Unit(benchmark::kMillisecond)->UseRealTime();

}
