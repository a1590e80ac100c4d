// Speed of the views of a joint embedding: lines to the strongest keys, colors, and a search; and
// of the words of a sequence, with lines from a weight of 0.05 on. The recording has sequences of
// random queries and keys, which all heads share to save memory; points are random. Argument 1:
// heads, 2: sequences, 3: tokens in each.

#include "RandomMatrix.h"
#include "RecordingConversion.h"
#include "vtkAttentionLines.h"
#include "vtkAttentionSentence.h"
#include "vtkTokenColors.h"
#include "vtkTokenSearch.h"

#include <cstdint>
#include <random>
#include <string>

#include <vtkCellArray.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkSmartPointer.h>
#include <vtkStringArray.h>
#include <vtkTrivialProducer.h>
#include <vtkUnsignedCharArray.h>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t Dimension = 64;

atlas::Recording MakeRecording(std::int64_t heads, std::int64_t sequences, std::int64_t length)
{
  std::mt19937 generator(1);
  atlas::Recording recording;
  recording.layerCount = 1;
  for (std::int64_t s = 0; s <= sequences; ++s)
  {
    recording.sequenceOffsets.push_back(s * length);
  }
  for (std::int64_t i = 0; i < sequences * length; ++i)
  {
    recording.tokens.sequence.push_back(static_cast<std::int32_t>(i / length));
    recording.tokens.position.push_back(static_cast<std::int32_t>(i % length));
    recording.tokens.id.push_back(i % 1000);
  }
  atlas::RecordedHead head;
  head.query = RandomMatrix(sequences * length, Dimension, generator);
  head.key = RandomMatrix(sequences * length, Dimension, generator);
  atlas::RecordedLayer layer;
  layer.scoreScale = 0.25;
  layer.heads.assign(heads, head);
  recording.layers.push_back(layer);
  return recording;
}

vtkSmartPointer<vtkPolyData> MakePoints(std::int64_t heads, std::int64_t tokens)
{
  std::mt19937 generator(2);
  std::uniform_real_distribution<double> coordinate;
  const vtkIdType count = heads * 2 * tokens;
  const auto add = [count](vtkPolyData* data, auto array, const char* name)
  {
    array->SetName(name);
    array->SetNumberOfValues(count);
    data->GetPointData()->AddArray(array);
    return array;
  };
  auto data = vtkSmartPointer<vtkPolyData>::New();
  const auto kind = add(data, vtkSmartPointer<vtkUnsignedCharArray>::New(), "Kind");
  const auto layer = add(data, vtkSmartPointer<vtkIntArray>::New(), "Layer");
  const auto head = add(data, vtkSmartPointer<vtkIntArray>::New(), "Head");
  const auto index = add(data, vtkSmartPointer<vtkIdTypeArray>::New(), "Token Index");
  const auto position = add(data, vtkSmartPointer<vtkIntArray>::New(), "Position");
  const auto norm = add(data, vtkSmartPointer<vtkFloatArray>::New(), "Norm");
  const auto token = add(data, vtkSmartPointer<vtkStringArray>::New(), "Token");
  vtkNew<vtkPoints> points;
  points->SetNumberOfPoints(count);
  vtkNew<vtkCellArray> vertices;
  vertices->AllocateExact(count, count);
  for (vtkIdType i = 0; i < count; ++i)
  {
    const vtkIdType row = i % tokens;
    kind->SetValue(i, static_cast<unsigned char>(i / tokens % 2));
    layer->SetValue(i, 0);
    head->SetValue(i, static_cast<int>(i / tokens / 2));
    index->SetValue(i, row);
    position->SetValue(i, static_cast<int>(row % 30));
    norm->SetValue(i, static_cast<float>(generator() % 1000));
    token->SetValue(i, "word" + std::to_string(row % 1000));
    points->SetPoint(i, coordinate(generator), coordinate(generator), 0);
    vertices->InsertNextCell(1, &i);
  }
  data->SetPoints(points);
  data->SetVerts(vertices);
  return data;
}

void Connect(vtkAlgorithm* filter, int port, vtkDataObject* data)
{
  vtkNew<vtkTrivialProducer> producer;
  producer->SetOutput(data);
  filter->SetInputConnection(port, producer->GetOutputPort());
}

/// Runs a filter again and again.
template<class Filter>
void Run(benchmark::State& state, Filter* filter)
{
  Connect(filter, 0, MakePoints(state.range(0), state.range(1) * state.range(2)));
  for (auto step : state)
  {
    filter->Modified();
    filter->Update();
  }
  const auto points = static_cast<double>(2 * state.range(0) * state.range(1) * state.range(2));
  state.counters["points/s"] =
    benchmark::Counter(points, benchmark::Counter::kIsIterationInvariantRate);
}

void Lines(benchmark::State& state)
{
  vtkNew<vtkAttentionLines> lines;
  vtkNew<vtkMultiBlockDataSet> recording;
  AttentionAtlas::ToDataSet(
    MakeRecording(state.range(0), state.range(1), state.range(2)), recording);
  Connect(lines, 1, recording);
  Run(state, lines.Get());
  state.counters["lines"] =
    static_cast<double>(lines->GetOutput()->GetNumberOfElements(vtkDataObject::CELL));
}

void LinesOfSelected(benchmark::State& state)
{
  vtkNew<vtkAttentionLines> lines;
  vtkNew<vtkMultiBlockDataSet> recording;
  AttentionAtlas::ToDataSet(
    MakeRecording(state.range(0), state.range(1), state.range(2)), recording);
  Connect(lines, 1, recording);
  lines->AddSelectedToken(5);
  Run(state, lines.Get());
}

void Colors(benchmark::State& state)
{
  vtkNew<vtkTokenColors> colors;
  colors->SetBy(vtkTokenColors::NORM);
  Run(state, colors.Get());
}

void Search(benchmark::State& state)
{
  vtkNew<vtkTokenSearch> search;
  search->SetText("word77");
  Run(state, search.Get());
}

void Sentence(benchmark::State& state)
{
  vtkNew<vtkAttentionSentence> sentence;
  vtkNew<vtkMultiBlockDataSet> recording;
  AttentionAtlas::ToDataSet(
    MakeRecording(state.range(0), state.range(1), state.range(2)), recording);
  Connect(sentence, 0, recording);
  sentence->SetThreshold(0.05);
  for (auto step : state)
  {
    sentence->Modified();
    sentence->Update();
  }
  state.counters["lines"] =
    static_cast<double>(sentence->GetOutput()->GetNumberOfElements(vtkDataObject::CELL));
}

void Sizes(benchmark::internal::Benchmark* benchmark)
{
  benchmark->Args({ 144, 100, 30 })->Args({ 144, 1, 1024 })->Args({ 144, 1000, 30 });
  benchmark->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
}

BENCHMARK(Lines)->Apply(Sizes);
BENCHMARK(LinesOfSelected)->Apply(Sizes);
BENCHMARK(Colors)->Apply(Sizes);
BENCHMARK(Search)->Apply(Sizes);
BENCHMARK(Sentence)
  ->Args({ 1, 1, 256 })
  ->Args({ 1, 1, 4096 })
  ->Args({ 1, 1, 16384 })
  ->Unit(benchmark::kMillisecond)
  ->UseRealTime()
  ->MeasureProcessCPUTime();

}
