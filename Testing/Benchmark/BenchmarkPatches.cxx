// Speed of PatchAttention on a recording the size of ViT-B/16's: 12 layers of 12 heads, 197 tokens
// per image of 224 x 224 pixels. A step is what a slider of Head moves: all outputs of another
// head. Argument 1: images, 2: the head, -1 for the mean, 3: 0 the strongest keys, 1 all from 0.1
// on.

#include "RandomMatrix.h"
#include "RecordingConversion.h"
#include "vtkPatchAttention.h"

#include <cstdint>
#include <memory>
#include <random>

#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkPolyData.h>
#include <vtkTrivialProducer.h>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int32_t Side = 14;
constexpr std::int64_t Tokens = Side * Side + 1;
constexpr std::int64_t Heads = 12;
constexpr std::int64_t Dimension = 64;
constexpr std::int64_t Pixels = 224;

atlas::Recording MakeRecording(std::int64_t images)
{
  std::mt19937 generator(1);
  atlas::Recording recording;
  recording.architecture = "vit";
  recording.mask = atlas::AttentionMask::Bidirectional;
  recording.layerCount = 12;
  for (std::int64_t s = 0; s <= images; ++s)
  {
    recording.sequenceOffsets.push_back(s * Tokens);
  }
  for (std::int32_t i = 0; i < images * Tokens; ++i)
  {
    const auto token = static_cast<std::int32_t>(i % Tokens);
    recording.tokens.sequence.push_back(static_cast<std::int32_t>(i / Tokens));
    recording.tokens.position.push_back(token);
    recording.tokens.row.push_back(token == 0 ? -1 : (token - 1) / Side);
    recording.tokens.column.push_back(token == 0 ? -1 : (token - 1) % Side);
  }
  recording.pictures.count = images;
  recording.pictures.height = recording.pictures.width = Pixels;
  const std::shared_ptr<std::uint8_t[]> pixels(new std::uint8_t[images * 3 * Pixels * Pixels]());
  recording.pictures.pixels = { pixels, pixels.get() };
  for (std::int32_t l = 0; l < recording.layerCount; ++l)
  {
    atlas::RecordedLayer layer;
    layer.index = l;
    layer.scoreScale = 0.125;
    for (std::int64_t h = 0; h < Heads; ++h)
    {
      atlas::RecordedHead head;
      head.query = RandomMatrix(images * Tokens, Dimension, generator);
      head.key = RandomMatrix(images * Tokens, Dimension, generator);
      layer.heads.push_back(head);
    }
    recording.layers.push_back(layer);
  }
  return recording;
}

void MoveHead(benchmark::State& state)
{
  vtkNew<vtkMultiBlockDataSet> recording;
  AttentionAtlas::ToDataSet(MakeRecording(state.range(0)), recording);
  vtkNew<vtkTrivialProducer> producer;
  producer->SetOutput(recording);
  vtkNew<vtkPatchAttention> patches;
  patches->SetInputConnection(producer->GetOutputPort());
  patches->SetArrows(static_cast<int>(state.range(2)));
  int head = 0;
  for (auto step : state)
  {
    head = (head + 1) % static_cast<int>(Heads);
    patches->SetHead(state.range(1) < 0 ? -1 : head);
    patches->SetLayer(head);
    patches->Update();
  }
  state.counters["arrows"] =
    static_cast<double>(patches->GetOutputDataObject(1)->GetNumberOfElements(vtkDataObject::CELL));
}

void Cases(benchmark::internal::Benchmark* benchmark)
{
  benchmark->Args({ 1, 0, 0 })->Args({ 1, 0, 1 })->Args({ 1, -1, 0 })->Args({ 50, 0, 0 });
  benchmark->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
}

BENCHMARK(MoveHead)->Apply(Cases);

}
