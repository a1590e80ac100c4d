// What filters take beside the kernel of Core inside them, on the same threads in the same run,
// after what a slider changes. Kernels write into memory that is in use already. Every output is
// kept until the next one is there, as ParaView does.
//
// - HeadWeights: Attention Torus; points along each side. Class, Probability, ClassColor and
//   Attention of three heads. ClassMap: the same without Attention.
// - Donut: MajorRadius of Torus Deformation; points along each side. Surface: the same with Shape
//   Vectors, where the chart is new each time.
// - Pairs: HeadWeights of Token Pairs; tokens.
// - Map: Head of Attention Map; tokens.
// - Embedding: KeyTranslation of Head Embedding, by principal components; tokens. Arranged: the
//   same with Arrangement, which needs no layout; beside a plain copy of the coordinates.
// - Sentence: Head of Attention Sentence, with the lines from Threshold 0.01 on; tokens.
// - Words: Head of Patch Attention, of the last word on three pictures that are most of the text;
//   tokens.
//
// Counters: kernel_ms and filter_over_kernel, medians; cpu_ms and cpu_over_kernel, the same of the
// processor time of all threads, which other programs do not change; faults, the pages that the
// system gave the process in an update of the filter, a median.

#include "AttentionOnly/AttentionEvaluation.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/Deformation.h"
#include "AttentionOnly/FieldEvaluation.h"
#include "AttentionOnly/TorusGrid.h"
#include "AttentionOnly/TorusSurface.h"
#include "Base/Pi.h"
#include "Cost.h"
#include "Embedding/HeadLayouts.h"
#include "Execution.h"
#include "HeadRecordings.h"
#include "ModelConversion.h"
#include "Recording/PatchAttention.h"
#include "Recording/RecordedAttention.h"
#include "Recording/SentenceAttention.h"
#include "RecordingConversion.h"
#include "SmoothModel.h"
#include "TorusChart.h"
#include "vtkAttentionMap.h"
#include "vtkAttentionSentence.h"
#include "vtkAttentionTorus.h"
#include "vtkHeadEmbedding.h"
#include "vtkPatchAttention.h"
#include "vtkTokenPairs.h"
#include "vtkTorusDeformation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkSmartPointer.h>
#include <vtkTrivialProducer.h>

#include <benchmark/benchmark.h>

namespace
{

using atlas::benchmarks::Cost;

/// A filter of some data, whose first output is kept as ParaView keeps it.
template<class Filter>
class Shown
{
public:
  explicit Shown(vtkDataObject* input)
  {
    this->Producer->SetOutput(input);
    this->Made->SetInputConnection(this->Producer->GetOutputPort());
  }
  Filter* operator->() const { return this->Made; }

  void SetInput(vtkDataObject* input) { this->Producer->SetOutput(input); }

  void Update()
  {
    this->Made->Update();
    vtkDataObject* output = this->Made->GetOutputDataObject(0);
    const auto kept = vtkSmartPointer<vtkDataObject>::Take(output->NewInstance());
    kept->ShallowCopy(output);
    this->Kept = kept;
  }

private:
  vtkNew<vtkTrivialProducer> Producer;
  vtkNew<Filter> Made;
  vtkSmartPointer<vtkDataObject> Kept;
};

double MedianOf(const std::vector<Cost>& costs, double Cost::* part)
{
  std::vector<double> values;
  values.reserve(costs.size());
  std::transform(costs.begin(), costs.end(), std::back_inserter(values),
    [part](const Cost& cost) { return cost.*part; });
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls filter(i) and kernel(i), one after the other, for i = 0, 1, ...
template<class Filter, class Kernel>
void Compare(benchmark::State& state, const Filter& filter, const Kernel& kernel)
{
  std::vector<Cost> ofFilter;
  std::vector<Cost> ofKernel;
  int i = 0;
  for (; i < 3; ++i) // so that all memory is in use
  {
    filter(i);
    kernel(i);
  }
  for (auto _ : state)
  {
    ofFilter.emplace_back([&] { filter(i); });
    ofKernel.emplace_back([&] { kernel(i); });
    state.SetIterationTime(ofFilter.back().seconds);
    ++i;
  }
  const double filterTime = MedianOf(ofFilter, &Cost::seconds);
  const double kernelTime = MedianOf(ofKernel, &Cost::seconds);
  const double filterProcessor = MedianOf(ofFilter, &Cost::processor);
  state.counters["filter_ms"] = 1e3 * filterTime;
  state.counters["kernel_ms"] = 1e3 * kernelTime;
  state.counters["filter_over_kernel"] = filterTime / kernelTime;
  state.counters["cpu_ms"] = 1e3 * filterProcessor;
  state.counters["cpu_over_kernel"] = filterProcessor / MedianOf(ofKernel, &Cost::processor);
  state.counters["faults"] = MedianOf(ofFilter, &Cost::faults);
}

vtkSmartPointer<vtkMultiBlockDataSet> DataSetOf(const atlas::AttentionOnlyModel& model)
{
  auto data = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(model, data);
  return data;
}

atlas::AttentionOnlyModel ShippedModel()
{
  return atlas::ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors");
}

/// The kernel's work for a chart, in arrays of its own.
class ChartKernel
{
public:
  ChartKernel(const atlas::AttentionOnlyModel& model, int side, bool hasAttention)
    : Model(model)
    , Side(side)
    , Points(static_cast<std::size_t>(side) * static_cast<std::size_t>(side))
    , Predicted(this->Points)
    , Probability(this->Points)
    , Color(3 * this->Points)
    , Attention(hasAttention ? model.HeadCount() : 0, std::vector<float>(this->Points))
  {
    this->Arrays.predicted = this->Predicted.data();
    this->Arrays.probability = this->Probability.data();
    this->Arrays.classColor = this->Color.data();
    for (std::vector<float>& head : this->Attention)
    {
      this->Arrays.attention.push_back(head.data());
    }
    for (int i = 0; i < side; ++i)
    {
      this->Angles.push_back(AttentionAtlas::ChartAngle(i, side));
    }
  }

  void Run(double weight)
  {
    atlas::EvaluationOptions options;
    options.headWeights = { 1, weight, 1 };
    atlas::FieldEvaluator evaluator(this->Model, options);
    evaluator.SetColumns(this->Angles);
    AttentionAtlas::ParallelFor(0, this->Side,
      [&](vtkIdType begin, vtkIdType end)
      {
        for (vtkIdType row = begin; row < end; ++row)
        {
          const std::size_t r = row;
          evaluator.EvaluateRow(this->Angles[r], this->Arrays, r * this->Angles.size());
        }
      });
  }

private:
  const atlas::AttentionOnlyModel& Model;
  int Side;
  std::size_t Points;
  std::vector<std::int32_t> Predicted;
  std::vector<float> Probability;
  std::vector<std::uint8_t> Color;
  std::vector<std::vector<float>> Attention;
  std::vector<double> Angles;
  atlas::FieldArrays Arrays;
};

void CompareCharts(benchmark::State& state, bool hasAttention)
{
  const auto side = static_cast<int>(state.range(0));
  const atlas::AttentionOnlyModel model = ShippedModel();
  Shown<vtkAttentionTorus> torus(DataSetOf(model));
  torus->SetResolution(side, side);
  torus->SetQuantityArrayStatus("Attention", hasAttention ? 1 : 0);
  torus->SetNumberOfHeadWeights(3);
  ChartKernel kernel(model, side, hasAttention);
  const auto weight = [](int i) { return 1 - 1e-3 * i; };
  Compare(
    state,
    [&](int i)
    {
      torus->SetHeadWeight(1, weight(i));
      torus.Update();
    },
    [&](int i) { kernel.Run(weight(i)); });
}

void HeadWeights(benchmark::State& state)
{
  CompareCharts(state, true);
}

void ClassMap(benchmark::State& state)
{
  CompareCharts(state, false);
}

/// A chart with the default quantities and the outputs of the model.
vtkSmartPointer<vtkImageData> ChartOf(int side, double weight)
{
  vtkNew<vtkAttentionTorus> torus;
  torus->SetInputDataObject(DataSetOf(ShippedModel()));
  torus->SetResolution(side, side);
  torus->SetQuantityArrayStatus("Output", 1);
  torus->SetNumberOfHeadWeights(3);
  torus->SetHeadWeight(1, weight);
  torus->Update();
  return vtkImageData::SafeDownCast(torus->GetOutputDataObject(0));
}

void Donut(benchmark::State& state)
{
  const auto side = static_cast<int>(state.range(0));
  Shown<vtkTorusDeformation> deformation(ChartOf(side, 1));
  std::vector<double> angles;
  for (int i = 0; i + 1 < side; ++i)
  {
    angles.push_back(AttentionAtlas::ChartAngle(i, side));
  }
  const vtkIdType rows = side - 1;
  std::vector<float> points(3 * rows * rows);
  const auto radius = [](int i) { return 2 + 1e-3 * i; };
  Compare(
    state,
    [&](int i)
    {
      deformation->SetMajorRadius(radius(i));
      deformation.Update();
    },
    [&](int i)
    {
      const atlas::DonutGrid grid(angles, angles);
      AttentionAtlas::ParallelFor(0, rows,
        [&](vtkIdType begin, vtkIdType end)
        {
          for (vtkIdType row = begin; row < end; ++row)
          {
            grid.Points({ radius(i), 1 }, row, &points[3 * row * rows]);
          }
        });
    });
}

void Surface(benchmark::State& state)
{
  const auto side = static_cast<int>(state.range(0));
  const std::array<vtkSmartPointer<vtkImageData>, 2> charts = { ChartOf(side, 1),
    ChartOf(side, 0.5) };
  Shown<vtkTorusDeformation> deformation(charts[0]);
  deformation->SetShape(vtkTorusDeformation::VECTORS);
  deformation->SetNormalization(vtkTorusDeformation::WHITENED);
  const std::array<double, 2> whole = { -atlas::Pi, atlas::Pi };
  const atlas::TorusGrid grid(side, side, whole, whole);
  const vtkIdType rows = side - 1;
  const std::size_t size = 3 * rows * rows;
  std::vector<float> points(size);
  std::vector<float> normals(size);
  Compare(
    state,
    [&](int i)
    {
      deformation.SetInput(charts.at(i % 2));
      deformation.Update();
    },
    [&](int i)
    {
      const auto* vectors =
        vtkFloatArray::SafeDownCast(charts.at(i % 2)->GetPointData()->GetArray("Output"))
          ->GetPointer(0);
      const auto read = [&](std::int64_t row, double* values)
      { std::copy_n(vectors + 3 * row * side, 3 * rows, values); };
      const atlas::VectorNormalizer normalizer({ rows * rows, rows, read }, nullptr,
        atlas::Normalization::Whitened, AttentionAtlas::ThreadLimit());
      const auto normalized = [&](std::int64_t row, double* values)
      {
        read(row, values);
        normalizer.Apply(values, rows);
      };
      AttentionAtlas::ParallelFor(0, rows,
        [&](vtkIdType begin, vtkIdType end)
        {
          const std::size_t first = 3 * begin * rows;
          atlas::EvaluateSurface(grid, normalized, begin, end, &points[first], &normals[first]);
        });
    });
}

void Pairs(benchmark::State& state)
{
  const auto tokens = static_cast<int>(state.range(0));
  const atlas::AttentionOnlyModel model = SmoothModel(3, tokens);
  Shown<vtkTokenPairs> pairs(DataSetOf(model));
  pairs->SetNumberOfHeadWeights(3);
  const auto weight = [](int i) { return 1 - 1e-3 * i; };
  std::vector<int> predicted(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(tokens));
  Compare(
    state,
    [&](int i)
    {
      pairs->SetHeadWeight(1, weight(i));
      pairs.Update();
    },
    [&](int i)
    {
      atlas::EvaluationOptions options;
      options.headWeights = { 1, weight(i), 1 };
      const atlas::ReferenceEvaluator evaluator(model, options);
      AttentionAtlas::ParallelFor(0, static_cast<vtkIdType>(predicted.size()),
        [&](vtkIdType begin, vtkIdType end)
        {
          atlas::Evaluation at;
          for (vtkIdType pair = begin; pair < end; ++pair)
          {
            evaluator.AtTokens(pair / tokens, pair % tokens, at);
            predicted[pair] = at.predicted;
          }
        });
    });
}

constexpr int Heads = 8;

/// Eight heads on one causal sequence.
atlas::Recording MakeRecording(std::int64_t tokens)
{
  return atlas::benchmarks::MakeRecording(tokens, Heads, tokens);
}

vtkSmartPointer<vtkMultiBlockDataSet> DataSetOf(const atlas::Recording& recording)
{
  auto data = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(recording, data);
  return data;
}

void Map(benchmark::State& state)
{
  const std::int64_t tokens = state.range(0);
  const atlas::Recording recording = MakeRecording(tokens);
  Shown<vtkAttentionMap> map(DataSetOf(recording));
  std::vector<float> values(tokens * tokens);
  Compare(
    state,
    [&](int i)
    {
      map->SetHead(i % Heads);
      map.Update();
    },
    [&](int i)
    {
      atlas::EvaluateAttentionRows(recording,
        { 0, 0, i % Heads, atlas::AttentionQuantity::Weights, 0, tokens }, values.data(),
        AttentionAtlas::ThreadLimit());
    });
}

void Embedding(benchmark::State& state)
{
  const atlas::Recording recording = MakeRecording(state.range(0));
  Shown<vtkHeadEmbedding> embedding(DataSetOf(recording));
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  const atlas::JointRows rows = atlas::ChooseTokens(recording, {});
  std::vector<atlas::LayoutTask> tasks(Heads);
  for (std::int32_t h = 0; h < Heads; ++h)
  {
    tasks[h].place = { 0, h };
  }
  atlas::LayoutOptions options;
  options.method = atlas::LayoutMethod::Principal;
  options.scaling = atlas::KeyScaling::Fixed;
  embedding->SetKeyScaling(vtkHeadEmbedding::FIXED);
  const auto scale = [](int i) { return 1 + 1e-3 * i; }; // no layout of before fits
  Compare(
    state,
    [&](int i)
    {
      embedding->SetKeyScale(scale(i));
      embedding.Update();
    },
    [&](int i)
    {
      options.scale = scale(i);
      benchmark::DoNotOptimize(atlas::LayOutHeads(recording, rows, tasks, options,
        AttentionAtlas::ThreadLimit(), [](const atlas::LayoutProgress&) { return true; }));
    });
}

void Arranged(benchmark::State& state)
{
  const atlas::Recording recording = MakeRecording(state.range(0));
  Shown<vtkHeadEmbedding> embedding(DataSetOf(recording));
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  std::vector<float> from(std::size_t{ 2 * Heads * 3 } * static_cast<std::size_t>(state.range(0)));
  std::vector<float> to(from.size());
  Compare(
    state,
    [&](int i)
    {
      embedding->SetArrangement(i % 2);
      embedding.Update();
    },
    [&](int)
    {
      std::copy(from.begin(), from.end(), to.begin());
      benchmark::DoNotOptimize(to.data());
    });
}

void Sentence(benchmark::State& state)
{
  const std::int64_t tokens = state.range(0);
  const atlas::Recording recording = MakeRecording(tokens);
  Shown<vtkAttentionSentence> sentence(DataSetOf(recording));
  sentence->SetThreshold(0.01);
  atlas::SentenceOptions options;
  options.threshold = 0.01;
  atlas::SentenceAttention attention;
  Compare(
    state,
    [&](int i)
    {
      sentence->SetHead(i % Heads);
      sentence.Update();
    },
    [&](int i)
    {
      options.head = i % Heads;
      atlas::EvaluateSentence(recording, options, attention, AttentionAtlas::ThreadLimit());
    });
}

void Words(benchmark::State& state)
{
  const atlas::Recording recording = atlas::benchmarks::WithPictures(MakeRecording(state.range(0)));
  Shown<vtkPatchAttention> patches(DataSetOf(recording));
  atlas::PatchOptions options;
  options.tokens = { state.range(0) - 1 };
  options.threads = AttentionAtlas::ThreadLimit();
  Compare(
    state,
    [&](int i)
    {
      patches->SetHead(i % Heads);
      patches.Update();
    },
    [&](int i)
    {
      options.head = i % Heads;
      benchmark::DoNotOptimize(atlas::EvaluatePatches(recording, options));
    });
}

void Settings(benchmark::internal::Benchmark* benchmark)
{
  benchmark->UseManualTime()->Unit(benchmark::kMillisecond);
}

}

BENCHMARK(HeadWeights)->Arg(512)->Arg(2000)->Apply(Settings);
BENCHMARK(ClassMap)->Arg(512)->Arg(2000)->Apply(Settings);
BENCHMARK(Donut)->Arg(512)->Arg(1024)->Arg(2000)->Apply(Settings);
BENCHMARK(Surface)->Arg(512)->Arg(1024)->Arg(2000)->Apply(Settings);
BENCHMARK(Pairs)->Arg(50)->Arg(500)->Apply(Settings);
BENCHMARK(Map)->Arg(512)->Arg(2048)->Apply(Settings);
BENCHMARK(Embedding)->Arg(256)->Arg(2048)->Apply(Settings);
BENCHMARK(Arranged)->Arg(256)->Arg(2048)->Apply(Settings);
BENCHMARK(Sentence)->Arg(64)->Arg(512)->Apply(Settings);
BENCHMARK(Words)->Arg(512)->Arg(2048)->Apply(Settings);
