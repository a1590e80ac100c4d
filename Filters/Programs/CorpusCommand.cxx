// Runs a transformer on texts and writes what its heads did, as the Corpus Statistics of the plugin
// with the Corpus Writer does.

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/SystemLimits.h"
#include "Commands.h"
#include "Corpus/CorpusFile.h"
#include "Corpus/CorpusRun.h"
#include "ProgramOptions.h"
#include "ProgressBar.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace atlas::programs
{
namespace
{

namespace fs = std::filesystem;

cxxopts::Options CorpusArguments(const std::string& name)
{
  using cxxopts::value;
  const CorpusOptions defaults;
  cxxopts::Options arguments(name, "Runs a transformer on texts of any length and writes "
                                   "statistics of its heads, for Corpus Reader\n"
                                   "and atlas.open. MODEL is the folder of a model, its "
                                   "config.json or a .gguf file. FILE is text in\n"
                                   "UTF-8, .jsonl (\"text\", \"tokens\" or \"input_ids\" in each "
                                   "line) or .npy (token ids, a document\n"
                                   "a row). Ctrl+C writes what was measured until then.\n");
  auto add = arguments.add_options();
  add("model", "a model", value<std::string>());
  add("files", "texts", value<std::vector<std::string>>());
  add("o,output", "the statistics to write, a .safetensors file", value<std::string>());
  add("documents", "what a document of a text file is: " + NamesOf(DocumentSplits),
    value<std::string>()->default_value("Lines"));
  AddNumber(
    add, "tokens", "stop after this number of tokens; 0: at the end of the texts", "100000");
  AddNumber(add, "window",
    "tokens that are run as a sequence; 0: 256, or all positions of the model if fewer");
  AddNumber(
    add, "overlap", "tokens of a document that a window repeats of the one before, as context");
  add("layers", "layers to measure, such as 0,4,5; all if not given", value<std::string>());
  AddNumber(add, "contexts", "strongest contexts of a head, kept for each head and measure",
    std::to_string(defaults.contexts));
  AddNumber(add, "samples", "tokens whose queries and keys are kept, for the parts of scores",
    std::to_string(defaults.samples));
  add("sample-values", "keep their values, too, for the parts of what heads write");
  add("dictionary",
    "a sparse dictionary of SAELens, whose features are measured, too: its file or folder",
    value<std::string>());
  AddNumber<double>(add, "sink-threshold",
    "a query is at a sink if its weight of the first token is above this", "0.3");
  add("no-agreement", "do not compare the attention of all heads");
  add("no-special-tokens", "leave out tokens such as [CLS], which the model was trained with");
  AddNumber(add, "batch", "batch size in tokens", std::to_string(defaults.batch));
  add("continue-from",
    "statistics of this model and these texts with the same options, which go on",
    value<std::string>());
  AddModelOptions(add);
  AddThreads(add);
  arguments.parse_positional({ "model", "files" });
  arguments.positional_help("MODEL FILE...");
  return arguments;
}

CorpusOptions CorpusOptionsOf(const cxxopts::ParseResult& parsed)
{
  const auto count = [&](const char* option, std::int64_t least)
  { return AtLeast<std::int64_t>(parsed, option, least); };
  CorpusOptions options;
  options.split =
    ParseNamed<OptionError>(DocumentSplits, parsed["documents"].as<std::string>(), "--documents");
  options.addSpecialTokens = parsed.count("no-special-tokens") == 0;
  options.window = count("window", 0);
  options.overlap = count("overlap", 0);
  options.layers = LayersOf(parsed);
  options.contexts = count("contexts", 0);
  options.samples = count("samples", 0);
  options.sampleValues = parsed.count("sample-values") != 0;
  options.dictionary = Given(parsed, "dictionary");
  options.sinkThreshold = Checked<double>(parsed, "sink-threshold", "0 to 1",
    [](double threshold) { return threshold >= 0 && threshold <= 1; });
  options.agreement = parsed.count("no-agreement") == 0;
  options.batch = count("batch", 1);
  return options;
}

CorpusRunOptions RunOf(const cxxopts::ParseResult& parsed)
{
  CorpusRunOptions run;
  run.files = Given<std::vector<std::string>>(parsed, "files");
  ThrowIf<OptionError>(
    run.files.empty(), "expected files with text, found none; --help shows how.");
  run.tokenLimit = AtLeast<std::int64_t>(parsed, "tokens", 0);
  run.threads = AtLeast(parsed, "threads", 0);
  return run;
}

/// Empty statistics, or those of --continue-from.
CorpusStatistics BeginOrGoOn(const cxxopts::ParseResult& parsed, const OpenTransformer& model,
  const fs::path& path, const CorpusRunOptions& run)
{
  const Progress goesOn = [](double) { ThrowIfInterrupted(); };
  CorpusStatistics begun =
    BeginCorpus(model, fs::absolute(path).string(), CorpusOptionsOf(parsed), run.threads, goesOn);
  const auto source = Given(parsed, "continue-from");
  return source.empty()
           ? begun
           : ContinueCorpus(model, ReadCorpus(source), begun, run.files, source, goesOn);
}

/// Says how much memory is needed, and throws unless there is as much for the first batch.
void RequireCorpusMemory(const std::string& name, const OpenTransformer& model,
  const CorpusStatistics& statistics, const CorpusRunOptions& run)
{
  const auto bytes = [&](std::int64_t kinds)
  { return static_cast<double>(EstimateCorpusMemory(model, statistics.options, kinds).Total()); };
  const double least = bytes(KindsAfterBatch(model, statistics));
  RequireMemory(least, "the statistics of all heads", "choose --layers, or --no-agreement.");
  const std::int64_t tokens =
    run.tokenLimit > 0 ? run.tokenLimit : std::numeric_limits<std::int64_t>::max();
  const double most = std::max(least, bytes(KindsAfter(model, statistics, tokens)));
  std::cerr << name << ": " << statistics.heads.size() << " heads, at most "
            << std::ceil(most / 1e6) << " MB beside the weights\n";
}

int MeasureFiles(const cxxopts::ParseResult& parsed, const std::string& name)
{
  fs::path path = ModelOf(parsed);
  const fs::path output = OutputOf(parsed, "the statistics to write");
  CorpusRunOptions run = RunOf(parsed);
  path = fs::is_directory(path) ? ModelFile(path) : path; // as a Transformer Reader has it
  const std::shared_ptr<const OpenTransformer> model = OpenModel(parsed, name, path);
  CorpusStatistics statistics = BeginOrGoOn(parsed, *model, path, run);
  {
    // Files that cannot be read are found before anything is said.
    const CorpusText text(*model, run.files, statistics.options, statistics.next);
    RequireCorpusMemory(name, *model, statistics, run);
  }
  std::string shortage;
  {
    ProgressBar bar("measuring");
    run.goesOn = [&](double done)
    {
      bar.Show(done, [&] { return std::to_string(statistics.next.queries) + " tokens"; });
      shortage = FindShortage(*model, statistics);
      return !WasInterrupted() && shortage.empty();
    };
    MeasureCorpus(*model, run, statistics);
  }
  if (statistics.next.queries == 0)
  {
    throw Canceled();
  }
  const std::int64_t tokens = statistics.next.queries;
  WriteCorpus(output, statistics);
  std::cout << output.string() << "\n";
  if (shortage.empty() && !WasInterrupted())
  {
    return 0;
  }
  std::cerr << name << ": stopped after " << tokens << " tokens"
            << (shortage.empty()
                   ? ". To go on, add to the command: --continue-from '" + output.string() + "'"
                   : ": " + shortage)
            << "\n";
  return shortage.empty() ? 130 : 1; // 130: as a shell tells of SIGINT
}

}

int Corpus(const std::vector<std::string>& arguments)
{
  const std::string& name = arguments.front();
  const auto parsed = Parse(CorpusArguments(name), arguments,
    { "gpt2 book.txt --documents Paragraphs -o book.safetensors",
      "gpt2/config.json part-1.jsonl part-2.jsonl --tokens 0 -o web.safetensors",
      "gpt2 book.txt --documents Paragraphs --tokens 1000000 --continue-from book.safetensors "
      "-o book.safetensors" });
  if (!parsed)
  {
    return 0;
  }
  CatchInterrupt();
  return MeasureFiles(*parsed, name);
}

}
