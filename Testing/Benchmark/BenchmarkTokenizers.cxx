// Speed of SentencePiece's models in tokens per second, beside the library sentencepiece if it was
// found. Needs the models beside the expected values (ATLAS_ORACLE_DIR). Text: the words of the
// models' test texts in random order.

#include "Text/TokenizerFile.h"

#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include <benchmark/benchmark.h>
#include <nlohmann/json.hpp>

#ifdef ATLAS_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif

namespace
{

const std::string Folder = ATLAS_ORACLE_DIR "/models/tokenizers/";

std::string Read(const std::string& path)
{
  std::ifstream stream(path, std::ios::binary);
  return { std::istreambuf_iterator<char>(stream), {} };
}

/// 100 kB of ASCII words.
std::string Text(const std::string& name)
{
  std::vector<std::string> words;
  const nlohmann::json file = nlohmann::json::parse(Read(Folder + name + "/cases.json"));
  for (const nlohmann::json& item : file.at("cases"))
  {
    std::istringstream stream(item.at("text").get<std::string>());
    for (std::string word; stream >> word;)
    {
      if (word.size() < 20 &&
          word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,'!?") ==
            std::string::npos)
      {
        words.push_back(word);
      }
    }
  }
  std::mt19937 random(1);
  std::string text;
  while (text.size() < 100'000)
  {
    // Four random letters, so that not every word is a known one.
    text += words[random() % words.size()];
    for (int i = random() % 4 == 0 ? 4 : 0; i > 0; --i)
    {
      text += static_cast<char>('a' + random() % 26);
    }
    text += ' ';
  }
  return text;
}

template<class Encode>
void Run(benchmark::State& state, const std::string& name, const Encode& encode)
{
  const std::string text = Text(name);
  std::size_t tokens = 0;
  for (auto _ : state)
  {
    tokens += encode(text);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(tokens));
}

void Own(benchmark::State& state, const std::string& name, bool isModel)
{
  if (Read(Folder + name + "/cases.json").empty())
  {
    state.SkipWithError("no models: " ATLAS_ORACLE_DIR " is absent");
    return;
  }
  const std::filesystem::path folder =
    std::filesystem::temp_directory_path() / ("atlas-benchmark-" + name);
  std::filesystem::create_directories(folder);
  std::filesystem::copy(Folder + name + (isModel ? "/tokenizer.model" : "/tokenizer.json"), folder,
    std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy(Folder + name + "/tokenizer_config.json", folder,
    std::filesystem::copy_options::overwrite_existing);
  const atlas::Tokenizer tokenizer = atlas::ReadTokenizer(folder);
  std::filesystem::remove_all(folder);
  Run(
    state, name, [&](const std::string& text) { return tokenizer.Encode(text, false).ids.size(); });
}

#ifdef ATLAS_SENTENCEPIECE
void Library(benchmark::State& state, const std::string& name)
{
  sentencepiece::SentencePieceProcessor processor;
  if (!processor.Load(Folder + name + "/tokenizer.model").ok())
  {
    state.SkipWithError("no models: " ATLAS_ORACLE_DIR " is absent");
    return;
  }
  Run(state, name,
    [&](const std::string& text)
    {
      std::vector<int> ids;
      return processor.Encode(text, &ids).ok() ? ids.size() : 0;
    });
}

BENCHMARK_CAPTURE(Library, BytePairs, "spm-llama")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Library, Unigram, "spm-t5")->Unit(benchmark::kMillisecond);
#endif

BENCHMARK_CAPTURE(Own, BytePairsOfModel, "spm-llama", true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Own, BytePairsOfJson, "spm-llama", false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Own, UnigramOfModel, "spm-t5", true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Own, UnigramOfJson, "spm-t5", false)->Unit(benchmark::kMillisecond);

}
