// Speed of what a user does again and again: editing the prompt of a recorder, whose model has
// GPT-2's tokenizer and small random weights; going through the heads of a recording with an
// attention map; and evaluating an attention-only model, which begins with its conversion. Needs
// GPT-2's vocabulary beside the expected values (ATLAS_ORACLE_DIR).

#include "ModelConversion.h"
#include "RecordingConversion.h"
#include "Safetensors.h"
#include "vtkAttentionMap.h"
#include "vtkTransformerReader.h"
#include "vtkTransformerRecorder.h"

#include <fstream>
#include <random>
#include <string>

#include <unistd.h>

#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkSmartPointer.h>
#include <vtkTrivialProducer.h>

#include <benchmark/benchmark.h>

namespace
{

namespace fs = std::filesystem;

const fs::path Tokenizer = ATLAS_ORACLE_DIR "/transformers/tokenizers";

constexpr const char* Config = R"({"model_type": "gpt2", "n_embd": 16, "n_head": 2, "n_layer": 2,
  "n_positions": 64, "vocab_size": 50257})";

/// A model folder of the process's own, removed at the end of its scope.
class ModelFolder
{
public:
  ModelFolder()
    : Path(fs::temp_directory_path() / ("atlas-model-" + std::to_string(::getpid())))
  {
    fs::create_directory(this->Path);
    std::ofstream(this->Path / "config.json") << Config;
    fs::copy_file(Tokenizer / "gpt2-vocab.json", this->Path / "vocab.json");
    fs::copy_file(Tokenizer / "gpt2-merges.txt", this->Path / "merges.txt");
    this->WriteWeights();
  }
  ~ModelFolder()
  {
    std::error_code ignored;
    fs::remove_all(this->Path, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  const fs::path Path;

private:
  atlas::Tensors Weights;
  std::mt19937 Random{ 1 };

  void Add(const std::string& name, const atlas::Shape& shape)
  {
    std::vector<double> values(atlas::ElementCount(shape).value());
    for (double& value : values)
    {
      value = static_cast<double>(this->Random() % 2001) / 2000 - 0.5;
    }
    this->Weights[name] = atlas::Tensor::FromDouble(atlas::DType::F32, shape, values);
  }

  void AddPair(const std::string& name, const atlas::Shape& shape)
  {
    this->Add(name + ".weight", shape);
    this->Add(name + ".bias", { shape.back() });
  }

  void WriteWeights()
  {
    this->Add("wte.weight", { 50257, 16 });
    this->Add("wpe.weight", { 64, 16 });
    for (const std::string layer : { "h.0.", "h.1." })
    {
      this->AddPair(layer + "ln_1", { 16 });
      this->AddPair(layer + "attn.c_attn", { 16, 48 });
      this->AddPair(layer + "attn.c_proj", { 16, 16 });
      this->AddPair(layer + "ln_2", { 16 });
      this->AddPair(layer + "mlp.c_fc", { 16, 64 });
      this->AddPair(layer + "mlp.c_proj", { 64, 16 });
    }
    this->AddPair("ln_f", { 16 });
    atlas::WriteSafetensors(this->Path / "model.safetensors", this->Weights, {});
  }
};

/// The time from an edited prompt to its recording.
void EditPrompt(benchmark::State& state)
{
  if (!fs::exists(Tokenizer))
  {
    state.SkipWithError("the vocabulary of GPT-2 is absent");
    return;
  }
  const ModelFolder folder;
  vtkNew<vtkTransformerReader> reader;
  vtkNew<vtkTransformerRecorder> recorder;
  reader->SetFileName((folder.Path / "config.json").c_str());
  recorder->SetInputConnection(reader->GetOutputPort());
  recorder->SetPrompts("Attention");
  recorder->Update();
  std::string prompt = "The cat sat on the ";
  for (auto _ : state)
  {
    prompt.back() = prompt.back() == 'a' ? 'b' : 'a';
    recorder->SetPrompts(prompt.c_str());
    recorder->Update();
  }
  if (vtkMultiBlockDataSet::SafeDownCast(recorder->GetOutput())->GetNumberOfBlocks() == 0)
  {
    state.SkipWithError("nothing was recorded");
  }
}

vtkSmartPointer<vtkMultiBlockDataSet> Recorded(
  std::int32_t layers, std::size_t heads, std::int32_t sequences)
{
  constexpr std::int32_t length = 32;
  const std::int32_t tokens = sequences * length;
  atlas::Recording recording;
  recording.layerCount = layers;
  recording.sequenceOffsets = { 0 };
  for (std::int32_t t = 0; t < tokens; ++t)
  {
    if (t % length == length - 1)
    {
      recording.sequenceOffsets.push_back(t + 1);
    }
    recording.tokens.sequence.push_back(t / length);
    recording.tokens.position.push_back(t % length);
    recording.tokens.id.push_back(t);
    recording.tokens.text.push_back("token " + std::to_string(t));
  }
  for (std::int32_t l = 0; l < layers; ++l)
  {
    atlas::RecordedLayer layer;
    layer.index = l;
    for (std::size_t h = 0; h < heads; ++h)
    {
      atlas::RecordedHead& head = layer.heads.emplace_back();
      head.query = atlas::SharedMatrix::Zero(tokens, 8);
      head.key = atlas::SharedMatrix::Zero(tokens, 8);
    }
    recording.layers.push_back(layer);
  }
  auto data = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(recording, data);
  return data;
}

/// The time from one head to the map of the next, of sequences of 32 tokens.
void NextHead(benchmark::State& state)
{
  const auto layers = static_cast<std::int32_t>(state.range(0));
  const auto heads = static_cast<int>(state.range(1));
  const auto sequences = static_cast<std::int32_t>(state.range(2));
  vtkNew<vtkTrivialProducer> producer;
  producer->SetOutput(Recorded(layers, heads, sequences));
  vtkNew<vtkAttentionMap> map;
  map->SetInputConnection(producer->GetOutputPort());
  map->SetLayer(layers / 2);
  int head = 0;
  for (auto _ : state)
  {
    map->SetHead(head++ % heads);
    map->Update();
  }
}

/// What each filter of an attention-only model does first: the shipped model from its data object.
void ConvertModel(benchmark::State& state)
{
  vtkNew<vtkMultiBlockDataSet> data;
  AttentionAtlas::ToDataSet(
    atlas::ReadAttentionOnlyModel(ATLAS_DATA_DIR "/trained-n5-h3.safetensors"), data);
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(AttentionAtlas::ToModel(data));
  }
}

}

BENCHMARK(ConvertModel)->Unit(benchmark::kMicrosecond);
BENCHMARK(EditPrompt)->Unit(benchmark::kMillisecond);
BENCHMARK(NextHead)
  ->ArgNames({ "layers", "heads", "sequences" })
  ->Args({ 12, 12, 1 })
  ->Args({ 48, 25, 1 })
  ->Args({ 126, 128, 1 })
  ->Args({ 12, 12, 3000 })
  ->Unit(benchmark::kMillisecond);
