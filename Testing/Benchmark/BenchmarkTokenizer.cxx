// Speed of tokenizers on English-like text: words of BERT's vocabulary as often as their rank makes
// likely (Zipf's law), with capitals and punctuation. Needs the vocabularies beside the expected
// values (ATLAS_ORACLE_DIR).

#include "TokenizerFile.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include <benchmark/benchmark.h>

namespace
{

const std::string Folder = ATLAS_ORACLE_DIR "/transformers/tokenizers/";

std::string Read(const std::string& name)
{
  std::ifstream stream(Folder + name, std::ios::binary);
  return { std::istreambuf_iterator<char>(stream), {} };
}

std::vector<std::string> Words()
{
  std::vector<std::string> words;
  std::istringstream stream(Read("bert-vocab.txt"));
  for (std::string line; std::getline(stream, line);)
  {
    if (line.size() > 1 && line.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == line.npos)
    {
      words.push_back(line);
    }
  }
  return words;
}

std::string EnglishLikeText(std::size_t bytes, unsigned seed)
{
  const std::vector<std::string> words = Words();
  std::string text;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  bool capital = true;
  while (!words.empty() && text.size() < bytes)
  {
    // A rank of density 1 / rank, between 1 and the number of words.
    const double rank = std::pow(static_cast<double>(words.size()), uniform(random));
    std::string word = words[static_cast<std::size_t>(rank) - 1];
    if (capital)
    {
      word[0] = static_cast<char>(word[0] - 'a' + 'A');
    }
    const double sign = uniform(random);
    capital = sign < 0.07;
    text += word + (capital ? ". " : sign < 0.13 ? ", " : sign < 0.14 ? "'s " : " ");
  }
  return text;
}

void Encode(benchmark::State& state, const atlas::Tokenizer& tokenizer)
{
  const std::string text = EnglishLikeText(state.range(0), 1);
  std::size_t tokens = 0;
  for (auto _ : state)
  {
    tokens += tokenizer.Encode(text, true).ids.size();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(tokens));
}

bool IsAbsent(benchmark::State& state)
{
  const bool absent = Read("bert-vocab.txt").empty();
  if (absent)
  {
    state.SkipWithError("no vocabularies: " ATLAS_ORACLE_DIR " is absent");
  }
  return absent;
}

atlas::Tokenizer Gpt2()
{
  return atlas::ParseBytePairTokenizer(
    Read("gpt2-vocab.json"), "vocab.json", Read("gpt2-merges.txt"), "merges.txt");
}

atlas::Tokenizer Bert()
{
  return atlas::ParseWordPieceTokenizer(Read("bert-vocab.txt"), "vocab.txt");
}

void BytePairs(benchmark::State& state)
{
  if (!IsAbsent(state))
  {
    Encode(state, Gpt2());
  }
}

void WordPieces(benchmark::State& state)
{
  if (!IsAbsent(state))
  {
    Encode(state, Bert());
  }
}

/// A text whose words were not seen before: nothing comes from the cache but its own repetitions.
void BytePairsOfNewText(benchmark::State& state)
{
  if (IsAbsent(state))
  {
    return;
  }
  const std::string text = EnglishLikeText(state.range(0), 2);
  for (auto _ : state)
  {
    state.PauseTiming();
    const atlas::Tokenizer tokenizer = Gpt2();
    state.ResumeTiming();
    benchmark::DoNotOptimize(tokenizer.Encode(text, true).ids.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

void LoadBytePairs(benchmark::State& state)
{
  if (!IsAbsent(state))
  {
    for (auto _ : state)
    {
      benchmark::DoNotOptimize(Gpt2().VocabularySize());
    }
  }
}

}

BENCHMARK(BytePairs)->ArgName("bytes")->Arg(1'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(WordPieces)->ArgName("bytes")->Arg(1'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);
BENCHMARK(BytePairsOfNewText)
  ->ArgName("bytes")
  ->Arg(1'000'000)
  ->Iterations(3)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(LoadBytePairs)->Unit(benchmark::kMillisecond);
