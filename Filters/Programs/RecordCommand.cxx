// Runs a transformer on prompts or pictures and writes what its heads computed, as the Transformer
// Recorder of the plugin with the Recording Writer does.

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Commands.h"
#include "Preprocessing/SoundProcessor.h"
#include "ProgramOptions.h"
#include "ProgressBar.h"
#include "Recorder/GeneratedText.h"
#include "Recorder/RecordInput.h"
#include "Recording/RecordingFile.h"
#include "Text/Prompts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace atlas::programs
{
namespace
{

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

std::string NameOf(const RecordedQuantity& quantity)
{
  return quantity.name;
}

/// The list of --record without that option.
std::string RecordedByDefault()
{
  std::vector<RecordedQuantity> chosen;
  std::copy_if(RecordedQuantities.begin(), RecordedQuantities.end(), std::back_inserter(chosen),
    [](const RecordedQuantity& quantity) { return quantity.byDefault; });
  return Joined(chosen, NameOf, ",");
}

cxxopts::Options Arguments(const std::string& name)
{
  using cxxopts::value;
  cxxopts::Options arguments(name,
    "Runs a transformer and writes a recording of its heads, for the views and figures of\n"
    "Attention Atlas. MODEL is the folder of a model, its config.json or a .gguf file. INPUT is\n"
    "prompts, each in quotes, with its line breaks; the PNG and JPEG files of pictures for a "
    "model\n"
    "of images; or sound files for one that reads sound. For a model of pictures among words, "
    "INPUT\n"
    "is prompts in which <image> stands for the next picture of --images, and <video> for the "
    "next\n"
    "video. A prompt that begins with a dash follows --.\n");
  auto add = arguments.add_options();
  add("model", "a model", value<std::string>());
  add("input", "prompts, pictures or sounds", value<Texts>());
  add("o,output", "the recording to write, a .safetensors file", value<std::string>());
  add("prompts",
    "file of prompts, one on each line; or .jsonl, with a JSON string on each line or an object "
    "that "
    "has one as \"text\" or \"prompt\"; or of proteins, .fasta, .fas, .fa, .faa or .a3m",
    value<std::string>());
  add("images",
    "file of a picture, or of pixel values; INPUT is then pictures too, unless the model reads "
    "pictures among words",
    value<Texts>());
  add("pixels", "whose arithmetic makes pixels of pictures: " + NamesOf(PixelMakers),
    value<std::string>()->default_value(std::string(Name(PixelMaker::Pillow))));
  AddNumber(add, "frames-per-film",
    "number of consecutive --images that make up a video; 0: each is a picture");
  AddNumber<double>(add, "frames-per-second", "of videos", "2");
  add("token-ids", "token ids instead of prompts, such as \"15496 995\"", value<std::string>());
  add("target",
    "what the decoder reads beside a prompt, which is then what the encoder reads; one of each "
    "prompt",
    value<Texts>());
  add("layers", "layers to record, such as 0,4,5; all if not given", value<std::string>());
  add("record",
    "what to record, separated by commas, or all that the model has: " +
      Joined(RecordedQuantities, NameOf),
    value<std::string>()->default_value(RecordedByDefault()));
  AddNumber(add, "generate", "number of tokens that the model adds to each prompt");
  AddNumber<double>(add, "temperature", "of the choice of these tokens; 0: the most probable one");
  AddNumber(add, "top-k", "choose from this number of most probable tokens; 0: from all");
  AddNumber(add, "seed", "of the choice");
  AddNumber(add, "max-length", "cut longer prompts to this number of tokens; 0: no limit");
  add("no-special-tokens", "leave out tokens such as [CLS], which the model was trained with");
  add("no-pictures", "record the names of pictures, not their pixels");
  AddModelOptions(add);
  add("process-weights", "process weights as TransformerLens does");
  AddThreads(add);
  arguments.parse_positional({ "model", "input" });
  arguments.positional_help("MODEL [INPUT...]");
  return arguments;
}

/// Chooses what --record lists.
void Choose(const std::string& list, RecordChoice& choice)
{
  for (const RecordedQuantity& quantity : RecordedQuantities)
  {
    choice.*quantity.option = list == "all";
  }
  std::istringstream words(list == "all" ? "" : list + ","); // a last word may be empty, too
  for (std::string word; std::getline(words, word, ',');)
  {
    bool isKnown = false;
    for (const RecordedQuantity& quantity : RecordedQuantities)
    {
      choice.*quantity.option = choice.*quantity.option || word == quantity.name;
      isKnown = isKnown || word == quantity.name;
    }
    ThrowIf<OptionError>(!isKnown, "--record: expected all or some of ",
      Joined(RecordedQuantities, NameOf), ", found '", word, "'.");
  }
}

/// What the model is run on.
RecorderSources SourcesOf(const cxxopts::ParseResult& parsed, const OpenTransformer& model)
{
  RecorderSources sources;
  sources.promptFile = Given(parsed, "prompts");
  sources.tokenIds = Given(parsed, "token-ids");
  sources.imageFiles = Given<Texts>(parsed, "images");
  const auto input = Given<Texts>(parsed, "input");
  const TransformerConfig& config = model.GetModel().GetConfig();
  if (ReadsSound(config))
  {
    sources.soundFiles = input;
  }
  else if (config.vision == nullptr &&
           (parsed.count("images") != 0 || config.input == InputKind::Images))
  {
    sources.imageFiles.insert(sources.imageFiles.end(), input.begin(), input.end());
  }
  else
  {
    sources.prompts = WritePrompts(input, "prompt");
  }
  sources.targets = WritePrompts(Given<Texts>(parsed, "target"), "--target");
  sources.promptFormat = PromptFormat::JsonLines;
  sources.addSpecialTokens = parsed.count("no-special-tokens") == 0;
  sources.maximumLength = AtLeast<std::int64_t>(parsed, "max-length", 0);
  sources.pixels =
    ParseNamed<OptionError>(PixelMakers, parsed["pixels"].as<std::string>(), "--pixels");
  sources.framesPerVideo = AtLeast<std::int64_t>(parsed, "frames-per-film", 0);
  sources.framesPerSecond = Checked<double>(parsed, "frames-per-second", "a positive number",
    [](double number) { return std::isfinite(number) && number > 0; });
  return sources;
}

/// Lets the model go on with its prompts, if that is asked for.
void Generate(const cxxopts::ParseResult& parsed,
  const std::shared_ptr<const OpenTransformer>& model, const RecordOptions& recorded,
  RecorderInput& input)
{
  GenerationOptions options;
  options.count = Checked<std::int64_t>(parsed, "generate", "0 to 100000 tokens",
    [](std::int64_t count) { return count >= 0 && count <= 100000; });
  options.temperature = Checked<double>(parsed, "temperature", "a number, at least 0",
    [](double number) { return std::isfinite(number) && number >= 0; });
  options.topK = AtLeast<std::int64_t>(parsed, "top-k", 0);
  options.seed = static_cast<std::uint64_t>(AtLeast<std::int64_t>(parsed, "seed", 0));
  if (options.count == 0)
  {
    return;
  }
  options.ends = model->GetModel().GetConfig().endTokens;
  options.threads = recorded.threads;
  ProgressBar bar("generating");
  options.progress = bar.Report();
  TextSteps steps(input, options.count);
  GeneratedText().Extend(model, options, recorded, input, steps);
}

void Run(const cxxopts::ParseResult& parsed, const std::string& name)
{
  const fs::path path = ModelOf(parsed);
  const fs::path output = OutputOf(parsed, "the recording to write");
  RecordOptions options;
  Choose(parsed["record"].as<std::string>(), options);
  options.layers = LayersOf(parsed);
  options.threads = AtLeast(parsed, "threads", 0);
  const std::shared_ptr<const OpenTransformer> model =
    OpenModel(parsed, name, path, parsed.count("process-weights") != 0);
  LeaveOutMissing(model->GetModel(), options);
  RecorderInput input = GatherInput(SourcesOf(parsed, *model), *model);
  constexpr std::size_t shown = 5;
  const std::size_t count = input.warnings.size();
  for (std::size_t i = 0; i < std::min(count, shown); ++i)
  {
    Warn(name, input.warnings[i]);
  }
  Warn(name, count > shown ? std::to_string(count - shown) + " more of these." : "");
  ThrowIf<OptionError>(
    input.IsEmpty(), "expected prompts, --prompts, --token-ids or pictures, found none.");
  CheckInput(model->GetModel(), input.input, options);
  Generate(parsed, model, options, input);
  RequireRecordingMemory(model->GetModel(), input.input, options);
  std::string warning;
  Recording recording;
  {
    ProgressBar bar("recording");
    options.progress = bar.Report();
    recording = RecordInput(*model, input, options, parsed.count("no-pictures") == 0, warning);
  }
  Warn(name, warning);
  {
    ProgressBar bar("writing");
    WriteRecording(output, recording, bar.Report());
  }
  std::cout << output.string() << "\n";
}

}

int Record(const std::vector<std::string>& arguments)
{
  const std::string& name = arguments.front();
  const auto parsed = Parse(Arguments(name), arguments,
    { "gpt2 \"Data visualization empowers users to\" -o run.safetensors",
      "gpt2/config.json --prompts prompts.txt --record all -o run.safetensors",
      "gpt2 \"Once upon a time\" --generate 20 --temperature 0.8 -o story.safetensors",
      "vit cat.png dog.png -o pictures.safetensors",
      "llava \"What is this? <image>\" --images cat.png -o cat.safetensors" });
  if (!parsed)
  {
    return 0;
  }
  CatchInterrupt();
  Run(*parsed, name);
  return 0;
}

}
