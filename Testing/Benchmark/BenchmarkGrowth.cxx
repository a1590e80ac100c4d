// What views take as their data grow, by powers of two from 2^10 on. A new filter computes each
// time, so nothing of the time before is kept.
//
// The argument is the size, in what its name says: points, pairs or tokens, cells, or entries of a
// vocabulary. The label is the law that the time should follow: n, n log n, n^1.5 or n^2. growth.py
// fits the exponents.
//
// - AttentionTorus, TorusDeformation, ClassAreas, TokenPairs: a model of 3 heads
// - AttentionMap, AttentionMatrix, AttentionSentence, AttentionLines: one causal sequence, of which
//   all pairs take part; the matrix has 8 heads, the others one
// - PatchAttention: one word and the pictures of its text, whose arrows take the strongest key of
// each
//   query
// - HeadScores, AttentionFocus: 8 heads on sequences of 128 tokens
// - HeadEmbedding, TokenColors: queries and keys like those of a head (EmbeddingPoints.h). Below
//   100,000 points t-SNE and UMAP search all pairs for neighbors, so sizes go beyond
// - AttentionTokens, LogitLens, TransformerRecorder: a rotary model of two layers; the recorder
// runs
//   one sequence, attention tokens are of 32 tokens
// - CorpusStatistics: language-2 in windows of 128 tokens
// - BindTokens, SpatialAttention: hexahedra and 10,000 tokens
//
// Counters: cpu_s, the processor time of all threads, the least of the iterations.

#include "Cost.h"
#include "EmbeddingPoints.h"
#include "HeadRecordings.h"
#include "ModelConversion.h"
#include "RandomGpt2.h"
#include "RecordingConversion.h"
#include "Run/RecordTransformer.h"
#include "SmoothModel.h"
#include "TokenIds.h"
#include "TransformerConversion.h"
#include "vtkAttentionFocus.h"
#include "vtkAttentionLines.h"
#include "vtkAttentionMap.h"
#include "vtkAttentionMatrix.h"
#include "vtkAttentionSentence.h"
#include "vtkAttentionTokens.h"
#include "vtkAttentionTorus.h"
#include "vtkBindTokens.h"
#include "vtkClassAreas.h"
#include "vtkCorpusStatistics.h"
#include "vtkHeadEmbedding.h"
#include "vtkHeadScores.h"
#include "vtkLogitLens.h"
#include "vtkPatchAttention.h"
#include "vtkSpatialAttention.h"
#include "vtkTokenColors.h"
#include "vtkTokenPairs.h"
#include "vtkTorusDeformation.h"
#include "vtkTransformerReader.h"
#include "vtkTransformerRecorder.h"

#include <vtkAppendFilter.h>
#include <vtkCallbackCommand.h>
#include <vtkImageData.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkSmartPointer.h>
#include <vtkTrivialProducer.h>
#include <vtkUnstructuredGrid.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <benchmark/benchmark.h>
#include <malloc.h>

namespace
{

using namespace atlas::benchmarks;

void Connect(vtkAlgorithm* filter, int port, vtkDataObject* data)
{
  vtkNew<vtkTrivialProducer> producer;
  producer->SetOutput(data);
  filter->SetInputConnection(port, producer->GetOutputPort());
}

/// Memory that is freed stays with the process.
[[maybe_unused]] const bool KeepsMemory =
  mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, -1) == 1;

/// A first update that takes longer than this is the one that counts.
constexpr double Long = 0.5;

/// Times the first update of filters, each of which connect(filter) connects and sets.
template<class Filter, class Function>
void Measure(benchmark::State& state, const char* law, const Function& connect)
{
  bool fails = false;
  vtkNew<vtkCallbackCommand> observer;
  observer->SetClientData(&fails);
  observer->SetCallback(
    [](vtkObject*, unsigned long, void* data, void*) { *static_cast<bool*>(data) = true; });
  const auto update = [&]
  {
    vtkNew<Filter> filter;
    filter->AddObserver(vtkCommand::ErrorEvent, observer);
    connect(filter.Get());
    return Cost([&] { filter->Update(); });
  };
  const Cost first = update(); // so that memory is in use
  double least = std::numeric_limits<double>::max();
  bool isFirst = true;
  for (auto _ : state)
  {
    const Cost cost = isFirst && first.seconds > Long ? first : update();
    isFirst = false;
    least = std::min(least, cost.processor);
    state.SetIterationTime(cost.seconds);
  }
  if (fails)
  {
    state.SkipWithError("the filter failed");
    return;
  }
  state.counters["cpu_s"] = least;
  state.SetLabel(law);
}

int Side(std::int64_t points)
{
  int side = 1;
  while (static_cast<std::int64_t>(side) * side < points)
  {
    ++side;
  }
  return side;
}

vtkSmartPointer<vtkMultiBlockDataSet> DataSetOf(const atlas::AttentionOnlyModel& model)
{
  auto data = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(model, data);
  return data;
}

vtkSmartPointer<vtkMultiBlockDataSet> DataSetOf(const atlas::Recording& recording)
{
  auto data = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(recording, data);
  return data;
}

void AttentionTorus(benchmark::State& state)
{
  const auto model = DataSetOf(SmoothModel(3, 5));
  const int side = Side(state.range(0));
  Measure<vtkAttentionTorus>(state, "n",
    [&](vtkAttentionTorus* torus)
    {
      Connect(torus, 0, model);
      torus->SetResolution(side, side);
    });
}

void TorusDeformation(benchmark::State& state)
{
  const int side = Side(state.range(0));
  vtkNew<vtkAttentionTorus> torus;
  torus->SetInputDataObject(DataSetOf(SmoothModel(3, 5)));
  torus->SetResolution(side, side);
  torus->Update();
  Measure<vtkTorusDeformation>(state, "n",
    [&](vtkTorusDeformation* surface) { Connect(surface, 0, torus->GetOutputDataObject(0)); });
}

void ClassAreas(benchmark::State& state)
{
  const auto model = DataSetOf(SmoothModel(3, 5));
  const int side = Side(state.range(0));
  Measure<vtkClassAreas>(state, "n",
    [&](vtkClassAreas* areas)
    {
      Connect(areas, 0, model);
      areas->SetResolution(side, side);
    });
}

/// Each pair has a logit per token.
void TokenPairs(benchmark::State& state)
{
  const auto model = DataSetOf(SmoothModel(3, Side(state.range(0))));
  Measure<vtkTokenPairs>(state, "n^1.5", [&](vtkTokenPairs* pairs) { Connect(pairs, 0, model); });
}

void AttentionMap(benchmark::State& state)
{
  const auto data = DataSetOf(MakeRecording(state.range(0), 1, state.range(0)));
  Measure<vtkAttentionMap>(state, "n^2", [&](vtkAttentionMap* map) { Connect(map, 0, data); });
}

void AttentionMatrix(benchmark::State& state)
{
  const auto data = DataSetOf(MakeRecording(state.range(0), 8, state.range(0)));
  Measure<vtkAttentionMatrix>(
    state, "n^2", [&](vtkAttentionMatrix* matrix) { Connect(matrix, 0, data); });
}

void AttentionSentence(benchmark::State& state)
{
  const auto data = DataSetOf(MakeRecording(state.range(0), 1, state.range(0)));
  Measure<vtkAttentionSentence>(state, "n^2",
    [&](vtkAttentionSentence* sentence)
    {
      Connect(sentence, 0, data);
      sentence->SetThreshold(0.01);
    });
}

void AttentionLines(benchmark::State& state)
{
  const auto data = DataSetOf(MakeRecording(state.range(0), 1, state.range(0)));
  vtkNew<vtkHeadEmbedding> embedding;
  embedding->SetInputDataObject(data);
  embedding->SetKeyScaling(vtkHeadEmbedding::SCALING_NONE);
  embedding->Update();
  Measure<vtkAttentionLines>(state, "n^2",
    [&](vtkAttentionLines* lines)
    {
      Connect(lines, 0, embedding->GetOutputDataObject(0));
      Connect(lines, 1, data);
      lines->SetMinimumWeight(0.01);
    });
}

void PatchAttention(benchmark::State& state)
{
  const std::int64_t tokens = state.range(0);
  const auto data = DataSetOf(WithPictures(MakeRecording(tokens, 1, tokens)));
  Measure<vtkPatchAttention>(state, "n^2",
    [&](vtkPatchAttention* patches)
    {
      Connect(patches, 0, data);
      patches->SetPatch(-1, -1);
      patches->SetToken(static_cast<int>(tokens - 1));
    });
}

constexpr std::int64_t SequenceLength = 128;

void HeadScores(benchmark::State& state)
{
  const auto data = DataSetOf(MakeRecording(state.range(0), 8, SequenceLength));
  Measure<vtkHeadScores>(state, "n", [&](vtkHeadScores* scores) { Connect(scores, 0, data); });
}

void AttentionFocus(benchmark::State& state)
{
  const auto data = DataSetOf(MakeRecording(state.range(0), 8, SequenceLength));
  Measure<vtkAttentionFocus>(
    state, "n", [&](vtkAttentionFocus* focus) { Connect(focus, 0, data); });
}

/// The queries and keys of a head: the two halves of generated points.
vtkSmartPointer<vtkMultiBlockDataSet> PointsOfHead(std::int64_t points)
{
  const std::int64_t tokens = points / 2;
  atlas::Recording recording = MakeRecording(tokens, 1, SequenceLength);
  const EmbeddingPoints generated = GeneratePoints(points);
  atlas::RecordedHead& head = recording.layers[0].heads[0];
  const std::int64_t count = tokens * generated.dimension;
  std::copy_n(generated.values.data(), count, head.query.values.get());
  std::copy_n(generated.values.data() + count, count, head.key.values.get());
  return DataSetOf(recording);
}

void HeadEmbedding(benchmark::State& state, int method, const char* law)
{
  const auto data = PointsOfHead(state.range(0));
  Measure<vtkHeadEmbedding>(state, law,
    [&](vtkHeadEmbedding* embedding)
    {
      Connect(embedding, 0, data);
      embedding->SetMethod(method);
    });
}

void TokenColors(benchmark::State& state)
{
  const auto data = PointsOfHead(state.range(0));
  vtkNew<vtkHeadEmbedding> embedding;
  embedding->SetInputDataObject(data);
  embedding->SetKeyScaling(vtkHeadEmbedding::SCALING_NONE);
  embedding->Update();
  Measure<vtkTokenColors>(state, "n",
    [&](vtkTokenColors* colors)
    {
      Connect(colors, 0, embedding->GetOutputDataObject(0));
      Connect(colors, 1, data);
      colors->SetBy(vtkTokenColors::POSITION);
    });
}

/// A rotary model of two layers and four heads with this vocabulary, in memory.
class RotaryModel
{
public:
  explicit RotaryModel(std::int64_t words)
  {
    constexpr std::int64_t d = 256;
    constexpr std::int64_t hidden = 512;
    const auto tensors = std::make_shared<atlas::Tensors>();
    const auto add = [&](const std::string& name, atlas::Shape shape)
    { AddTensor(*tensors, name + ".weight", std::move(shape), 0, 0.04); };
    const auto norm = [&](const std::string& name)
    { AddTensor(*tensors, name + ".weight", { d }, 1, 0.1); };
    add("model.embed_tokens", { words, d });
    for (const char* layer : { "model.layers.0.", "model.layers.1." })
    {
      const std::string prefix = layer;
      norm(prefix + "input_layernorm");
      norm(prefix + "post_attention_layernorm");
      for (const char* name : { "q_proj", "k_proj", "v_proj", "o_proj" })
      {
        add(prefix + "self_attn." + name, { d, d });
      }
      add(prefix + "mlp.gate_proj", { hidden, d });
      add(prefix + "mlp.up_proj", { hidden, d });
      add(prefix + "mlp.down_proj", { d, hidden });
    }
    norm("model.norm");
    const std::string config = R"({"model_type": "llama", "hidden_size": 256,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
      "intermediate_size": 512, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
      "hidden_act": "silu", "tie_word_embeddings": true, "vocab_size": )" +
                               std::to_string(words) + "}";
    atlas::ModelInMemory model;
    model.config = atlas::ParseTransformerConfig(config, "config.json");
    model.weights = tensors;
    model.files = std::make_shared<const std::map<std::string, std::string>>();
    static int count = 0;
    const std::string path = "training:benchmark-growth-" + std::to_string(++count);
    this->Kept = atlas::OpenTransformer::Keep(path, model);
    AttentionAtlas::ToDataSet(this->Kept->GetModel(), path, "", false, this->Data);
  }

  vtkMultiBlockDataSet* GetData() const { return this->Data; }

  atlas::Recording Record(std::int64_t tokens, std::int64_t words) const
  {
    atlas::TransformerInput input;
    input.tokens.resize(1);
    for (std::int64_t t = 0; t < tokens; ++t)
    {
      input.tokens[0].push_back(t * t % 997 % words);
    }
    atlas::RecordOptions options;
    options.residual = true;
    return atlas::RecordTransformer(this->Kept->GetModel(), input, options);
  }

private:
  std::shared_ptr<const atlas::OpenTransformer> Kept;
  vtkNew<vtkMultiBlockDataSet> Data;
};

void TransformerRecorder(benchmark::State& state)
{
  const RotaryModel model(1000);
  std::string ids;
  for (std::int64_t t = 0; t < state.range(0); ++t)
  {
    ids += std::to_string(t * t % 997) + ' ';
  }
  Measure<vtkTransformerRecorder>(state, "n^2",
    [&](vtkTransformerRecorder* recorder)
    {
      Connect(recorder, 0, model.GetData());
      recorder->SetTokenIds(ids.c_str());
    });
}

void LogitLens(benchmark::State& state)
{
  constexpr std::int64_t words = 1000;
  const RotaryModel model(words);
  const auto data = DataSetOf(model.Record(state.range(0), words));
  Measure<vtkLogitLens>(state, "n",
    [&](vtkLogitLens* lens)
    {
      Connect(lens, 0, data);
      Connect(lens, 1, model.GetData());
    });
}

void AttentionTokens(benchmark::State& state)
{
  const RotaryModel model(state.range(0));
  const auto data = DataSetOf(model.Record(32, state.range(0)));
  Measure<vtkAttentionTokens>(state, "n",
    [&](vtkAttentionTokens* tokens)
    {
      Connect(tokens, 0, data);
      Connect(tokens, 1, model.GetData());
    });
}

void CorpusStatistics(benchmark::State& state)
{
  vtkNew<vtkTransformerReader> reader;
  reader->SetFileName(ATLAS_DATA_DIR "/models/language-2/config.json");
  reader->Update();
  const std::string file = WriteIds(state.range(0) / SequenceLength, SequenceLength, 1000);
  Measure<vtkCorpusStatistics>(state, "n",
    [&](vtkCorpusStatistics* corpus)
    {
      Connect(corpus, 0, reader->GetOutputDataObject(0));
      corpus->AddFile(file.c_str());
      corpus->SetTokenLimit(0);
    });
  std::filesystem::remove(file);
}

constexpr std::int64_t TokenCount = 10'000;

/// A box of hexahedra of length 1, as many as a power of two.
vtkSmartPointer<vtkUnstructuredGrid> Hexahedra(std::int64_t cells)
{
  std::int64_t size[3] = { 1, 1, 1 };
  for (int axis = 0; cells > 1; cells /= 2)
  {
    size[axis++ % 3] *= 2;
  }
  vtkNew<vtkImageData> cubes;
  cubes->SetDimensions(
    static_cast<int>(size[0]) + 1, static_cast<int>(size[1]) + 1, static_cast<int>(size[2]) + 1);
  vtkNew<vtkAppendFilter> mesh;
  mesh->SetInputData(cubes);
  mesh->Update();
  return vtkUnstructuredGrid::SafeDownCast(mesh->GetOutput());
}

/// A mesh, tokens at random places of it, and random queries and keys of one head.
class BoundMesh
{
public:
  explicit BoundMesh(std::int64_t cells)
    : Mesh(Hexahedra(cells))
    , Recorded(DataSetOf(MakeRecording(TokenCount, 1, TokenCount)))
  {
    const double* bounds = this->Mesh->GetBounds();
    std::mt19937 generator(3);
    std::uniform_real_distribution<double> uniform;
    vtkNew<vtkPoints> points;
    for (std::int64_t i = 0; i < TokenCount; ++i)
    {
      const double x = bounds[1] * uniform(generator);
      const double y = bounds[3] * uniform(generator);
      points->InsertNextPoint(x, y, bounds[5] * uniform(generator));
    }
    this->Tokens->SetPoints(points);
  }

  void Connect(vtkBindTokens* binding) const
  {
    ::Connect(binding, 0, this->Mesh);
    ::Connect(binding, 1, this->Recorded);
    ::Connect(binding, 2, this->Tokens);
    binding->SetMethod(vtkBindTokens::NEAREST);
    binding->SetPlaces(vtkBindTokens::CELLS);
  }

  vtkDataObject* GetRecording() const { return this->Recorded; }

private:
  vtkSmartPointer<vtkUnstructuredGrid> Mesh;
  vtkSmartPointer<vtkMultiBlockDataSet> Recorded;
  vtkNew<vtkPolyData> Tokens;
};

void BindTokens(benchmark::State& state)
{
  const BoundMesh mesh(state.range(0));
  Measure<vtkBindTokens>(state, "n", [&](vtkBindTokens* binding) { mesh.Connect(binding); });
}

void SpatialAttention(benchmark::State& state)
{
  const BoundMesh mesh(state.range(0));
  vtkNew<vtkBindTokens> binding;
  mesh.Connect(binding);
  binding->Update();
  Measure<vtkSpatialAttention>(state, "n",
    [&](vtkSpatialAttention* attention)
    {
      Connect(attention, 0, binding->GetOutputDataObject(0));
      Connect(attention, 1, mesh.GetRecording());
    });
}

/// Sizes from 2^10 to 2^Last, each Step powers after the one before.
template<int Last, int Step = 1>
void Sizes(benchmark::internal::Benchmark* benchmark)
{
  for (int power = 10; power <= Last; power += Step)
  {
    benchmark->Arg(std::int64_t{ 1 } << power);
  }
  benchmark->UseManualTime()->MinTime(0.05)->Unit(benchmark::kMillisecond);
}

}

BENCHMARK(AttentionTorus)->ArgName("points")->Apply(Sizes<24, 2>);
BENCHMARK(TorusDeformation)->ArgName("points")->Apply(Sizes<22, 2>);
BENCHMARK(ClassAreas)->ArgName("points")->Apply(Sizes<26, 2>);
BENCHMARK(TokenPairs)->ArgName("pairs")->Apply(Sizes<20, 2>);
BENCHMARK(AttentionMap)->ArgName("tokens")->Apply(Sizes<16>);
BENCHMARK(AttentionMatrix)->ArgName("tokens")->Apply(Sizes<14>);
BENCHMARK(AttentionSentence)->ArgName("tokens")->Apply(Sizes<14>);
BENCHMARK(AttentionLines)->ArgName("tokens")->Apply(Sizes<14>);
BENCHMARK(PatchAttention)->ArgName("tokens")->Apply(Sizes<14>);
BENCHMARK(HeadScores)->ArgName("tokens")->Apply(Sizes<16>);
BENCHMARK(AttentionFocus)->ArgName("tokens")->Apply(Sizes<16>);
BENCHMARK_CAPTURE(HeadEmbedding, Principal, vtkHeadEmbedding::PCA, "n")
  ->ArgName("points")
  ->Apply(Sizes<17>);
BENCHMARK_CAPTURE(HeadEmbedding, TSne, vtkHeadEmbedding::TSNE, "n log n")
  ->ArgName("points")
  ->Apply(Sizes<18, 2>);
BENCHMARK_CAPTURE(HeadEmbedding, Umap, vtkHeadEmbedding::UMAP, "n log n")
  ->ArgName("points")
  ->Apply(Sizes<18, 2>);
BENCHMARK(TokenColors)->ArgName("points")->Apply(Sizes<18>);
BENCHMARK(AttentionTokens)->ArgName("words")->Apply(Sizes<17>);
BENCHMARK(LogitLens)->ArgName("tokens")->Apply(Sizes<15>);
BENCHMARK(TransformerRecorder)->ArgName("tokens")->Apply(Sizes<14>);
BENCHMARK(CorpusStatistics)->ArgName("tokens")->Apply(Sizes<17>);
BENCHMARK(BindTokens)->ArgName("cells")->Apply(Sizes<20>);
BENCHMARK(SpatialAttention)->ArgName("cells")->Apply(Sizes<20>);
