// Trains small transformers without ParaView and writes them as folders that the plugin, Hugging
// Face and TransformerLens read; or trains many seeds and summarizes what they learn.

#include "Base/Error.h"
#include "Base/System.h"
#include "Base/SystemLimits.h"
#include "Commands.h"
#include "Files/AtomicFile.h"
#include "Learning/CheckpointFiles.h"
#include "Learning/LearningTask.h"
#include "Learning/PairTrainingRuns.h"
#include "Learning/RecipeFile.h"
#include "Learning/SavedTraining.h"
#include "ProgramOptions.h"
#include "ProgressBar.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace atlas::programs
{
namespace
{

namespace fs = std::filesystem;

cxxopts::Options Arguments()
{
  using cxxopts::value;
  cxxopts::Options arguments("attention-atlas learn",
    "Trains small transformers on tasks that show known phenomena. Settings that are not given "
    "are\n"
    "those of the recipe of the task. Ctrl+C keeps what was reached.\n");
  auto add = arguments.add_options();
  add("task", Joined(TaskNames(), [](const std::string& name) { return name; }),
    value<std::string>());
  add("o,output", "folder for the model, its checkpoints, curves.csv and recipe.json",
    value<std::string>());
  add("recipe", "JSON file of settings, such as the recipe.json of a model", value<std::string>());
  add("continue", "folder of a model whose training goes on", value<std::string>());
  add("seeds", "number of seeds to train, starting at --seed; summarizes their measures",
    value<int>());
  add("table", "CSV file with a row per seed, for --seeds", value<std::string>());
  AddNumber(
    add, "checkpoint-every", "steps between checkpoints; 0: about 30, denser at the beginning");
  AddNumber(add, "measure-every", "steps between rows of curves.csv; 0: about 100 rows");
  add("print-recipe", "print all settings as JSON, without training");
  add("f16", "write weights as 16-bit floating-point numbers");
  AddThreads(add);
  auto addSetting = arguments.add_options("Settings of the recipe");
  for (const RecipeSetting& setting : RecipeSettings())
  {
    if (setting.name != "task")
    {
      addSetting(OptionOf(setting.name), setting.description, value<std::string>());
    }
  }
  return arguments;
}

/// Takes the sizes that are not given, by options or a recipe, from the model whose task is
/// trained. Its vocabulary cannot be another one, nor its heads if its weights are kept.
void TakeSizes(LearningRecipe& recipe, const cxxopts::ParseResult& parsed)
{
  const AttentionOnlyModel model = ReadAttentionOnlyModel(recipe.pairs.model);
  const auto take = [&](const char* option, std::int64_t& size, std::int64_t found, bool isFixed)
  {
    if (parsed.count(option) == 0 && parsed.count("recipe") == 0)
    {
      size = found;
    }
    ThrowIf<OptionError>(isFixed && size != found, "--", option, ": expected that of the model, ",
      found, ", found ", size, ".");
  };
  const bool keeps = recipe.pairs.keepsWeights;
  take("vocabulary", recipe.task.vocabulary, model.VocabularySize(), true);
  take("heads", recipe.architecture.heads, model.HeadCount(), keeps);
  take("head-dimension", recipe.architecture.headDimension, model.HeadDimension(), keeps);
}

/// The recipe of the task, or of a file, with the settings that are given.
LearningRecipe ToRecipe(
  const cxxopts::ParseResult& parsed, const std::optional<SavedTraining>& saved)
{
  LearningRecipe recipe;
  const bool hasFile = parsed.count("recipe") != 0;
  if (saved)
  {
    recipe = saved->recipe;
  }
  else if (hasFile)
  {
    recipe = ReadRecipe(parsed["recipe"].as<std::string>());
  }
  ThrowIf<OptionError>(
    (saved ? 1 : 0) + (hasFile ? 1 : 0) + (parsed.count("task") != 0 ? 1 : 0) != 1,
    "expected one of --task, --recipe and --continue; --help shows them.");
  if (parsed.count("task") != 0)
  {
    recipe = DefaultRecipe(ParseTask(parsed["task"].as<std::string>()));
  }
  for (const RecipeSetting& setting : RecipeSettings())
  {
    const std::string option = OptionOf(setting.name);
    if (setting.name != "task" && parsed.count(option) != 0)
    {
      SetRecipe(recipe, setting.name, parsed[option].as<std::string>(), "--" + option);
    }
  }
  if (!recipe.pairs.model.empty())
  {
    TakeSizes(recipe, parsed);
  }
  if (parsed.count("seed") != 0 && parsed.count("data-seed") == 0)
  {
    recipe.task.seed = recipe.seed;
  }
  return recipe;
}

/// The folder of a trained model, written as the training goes.
class ModelFolder
{
public:
  ModelFolder(fs::path folder, const LearningRecipe& recipe, DType dtype)
    : Folder(std::move(folder))
    , Recipe(ToJson(recipe))
    , Steps(recipe.steps)
    , Type(dtype)
    , Labels(LabelsOf(recipe.task))
  {
  }

  /// Writes a checkpoint. The first one, with which the training is known to be possible, replaces
  /// what another training left in the folder.
  void WriteStep(const LearningCheckpoint& checkpoint, const Tensors& state)
  {
    if (!this->Lock)
    {
      std::error_code error;
      fs::create_directories(this->Folder, error);
      if (error)
      {
        throw FileError(this->Folder.string() + ": " + error.message() + ".");
      }
      this->Lock.emplace(this->Folder);
      ThrowIf<FileError>(this->Lock->IsTaken(), this->Folder.string(),
        ": expected a folder that no other training writes to, found one that does.");
      this->Begin(checkpoint.step);
    }
    if (checkpoint.pairs != nullptr)
    {
      WriteAttentionOnlyModel(
        this->Folder / PairCheckpointName(checkpoint.step, this->Steps), *checkpoint.pairs);
      return;
    }
    WriteCheckpoint(this->Folder / ("checkpoint-" + std::to_string(checkpoint.step)),
      *checkpoint.model, {}, this->Type, this->Labels);
    WriteSafetensors(this->Folder / TrainingStateFile, state, {});
  }

  void WriteLast(const LearningResult& result) const
  {
    if (const auto& model = result.checkpoints.back().model)
    {
      WriteCheckpoint(this->Folder, *model, result.files, this->Type, this->Labels);
    }
    const fs::path curves = this->Folder / "curves.csv";
    const bool hasEarlier = result.checkpoints.front().step > 0;
    WriteCurves(curves, hasEarlier ? WithEarlierRows(curves, result.curves) : result.curves);
  }

private:
  fs::path Folder;
  std::string Recipe;
  std::int64_t Steps;
  DType Type;
  std::vector<std::string> Labels;
  std::optional<system::FolderLock> Lock;

  /// Writes the recipe and removes checkpoints that a training from this step on does not reach.
  void Begin(std::int64_t first) const
  {
    for (const auto& [step, path] : FindCheckpoints(this->Folder))
    {
      if (first == 0 || step > first)
      {
        fs::remove_all(path);
      }
    }
    for (const fs::path& path : FindPairCheckpoints(this->Folder))
    {
      fs::remove(path);
    }
    AtomicFile file(this->Folder / RecipeFile);
    file.Write(this->Recipe.data(), this->Recipe.size());
    file.Commit();
  }
};

/// Throws as RequireMemory does if a training does not fit into memory.
void RequireTrainingMemory(const LearningRecipe& recipe, std::int64_t checkpointEvery)
{
  const auto checkpoints =
    static_cast<std::int64_t>(CheckpointSteps(0, recipe.steps, checkpointEvery).size());
  RequireMemory(TrainingBytes(recipe, checkpoints), "the training",
    "choose smaller sizes or a larger --checkpoint-every.");
}

/// What is the same for all trainings of a run of the program.
struct Setup
{
  LearningOptions options;
  TensorViews state;
  DType dtype = DType::F32;
};

LearningResult Train(
  const LearningRecipe& recipe, Setup setup, const std::optional<fs::path>& output)
{
  RequireTrainingMemory(recipe, setup.options.checkpointEvery);
  std::optional<ModelFolder> folder;
  if (output)
  {
    folder.emplace(*output, recipe, setup.dtype);
    setup.options.checkpoint = [&](const LearningCheckpoint& checkpoint, const Tensors& state)
    { folder->WriteStep(checkpoint, state); };
  }
  LearningResult result;
  {
    ProgressBar bar("training");
    setup.options.progress = [&](double done, double loss)
    {
      bar.Show(done,
        [&]
        {
          std::array<char, 80> text;
          std::snprintf(text.data(), text.size(), "step %.0f of %lld, loss %.4f",
            std::round(done * static_cast<double>(recipe.steps)),
            static_cast<long long>(recipe.steps), loss);
          return std::string(text.data());
        });
      return !WasInterrupted();
    };
    result = Learn(recipe, setup.options, setup.state);
  }
  if (!result.divergence.empty())
  {
    std::cerr << "attention-atlas learn: " << result.divergence << "\n";
  }
  if (folder)
  {
    folder->WriteLast(result);
  }
  return result;
}

/// The values of the last row that is a number in each column.
std::vector<double> LastValues(const LearningCurves& curves)
{
  std::vector<double> last(curves.names.size(), std::nan(""));
  for (const std::vector<double>& row : curves.rows)
  {
    for (std::size_t c = 0; c < row.size(); ++c)
    {
      last[c] = std::isnan(row[c]) ? last[c] : row[c];
    }
  }
  return last;
}

std::string Text(double value)
{
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

void PrintRow(const std::string& name, const std::vector<std::string>& values)
{
  std::printf("%-28s", name.c_str());
  for (const std::string& value : values)
  {
    std::printf(" %12s", value.c_str());
  }
  std::printf("\n");
}

/// Trains once and prints the measures of the last step.
int TrainOne(
  const LearningRecipe& recipe, const Setup& setup, const std::optional<fs::path>& output)
{
  const LearningResult result = Train(recipe, setup, output);
  const std::vector<double> last = LastValues(result.curves);
  for (std::size_t c = 0; c < last.size(); ++c)
  {
    PrintRow(result.curves.names[c], { Text(last[c]) });
  }
  return result.divergence.empty() ? 0 : 1;
}

/// Prints mean, least and largest value of each measure, over the seeds that have it; `seeds` has a
/// row per seed. Its first column, Seed, is left out.
void PrintSummary(const LearningCurves& seeds)
{
  PrintRow(std::to_string(seeds.rows.size()) + " seeds", { "mean", "min", "max" });
  for (std::size_t c = 1; c < seeds.names.size(); ++c)
  {
    double sum = 0;
    double count = 0;
    double least = std::nan("");
    double most = least;
    for (const std::vector<double>& values : seeds.rows)
    {
      if (!std::isnan(values[c]))
      {
        sum += values[c];
        ++count;
        least = std::fmin(least, values[c]);
        most = std::fmax(most, values[c]);
      }
    }
    PrintRow(seeds.names[c], { Text(sum / count), Text(least), Text(most) });
  }
}

/// A row per seed of TokenPairs, which are trained beside each other. Nothing is written of each.
LearningCurves TrainPairs(const LearningRecipe& recipe, int seeds, int threads, bool& diverged)
{
  RequireTrainingMemory(recipe, recipe.steps); // no checkpoints
  std::optional<AttentionOnlyModel> model;
  if (!recipe.pairs.model.empty())
  {
    model = ReadAttentionOnlyModel(recipe.pairs.model);
  }
  const std::vector<TrainingRun> runs =
    RunTrainings(SweepOptions(ToPairTraining(recipe), seeds, { recipe.pairs.mode }),
      { model ? &*model : nullptr, recipe.pairs.keepsWeights }, threads,
      [](double /*done*/) { return !WasInterrupted(); });
  LearningCurves table;
  table.names = { "Seed", "Loss", "Accuracy", "Steps to Learn" };
  const std::size_t heads = runs.empty() ? 0 : runs.front().heads.alone.size();
  for (std::size_t head = 0; head < heads; ++head)
  {
    table.names.push_back("Accuracy Head " + std::to_string(head));
  }
  table.names.emplace_back("Union");
  for (const TrainingRun& run : runs)
  {
    std::vector<double> row = { static_cast<double>(run.options.seed), run.last.loss,
      run.last.accuracy, run.learned < 0 ? std::nan("") : run.learned };
    for (const std::int64_t correct : run.heads.alone)
    {
      row.push_back(run.heads.Share(correct));
    }
    row.push_back(run.heads.Share(run.heads.any));
    diverged = diverged || std::isnan(run.last.loss);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// A row per seed with the last measures of its training.
LearningCurves TrainSeeds(LearningRecipe recipe, const Setup& setup,
  const std::optional<fs::path>& output, int seeds, bool& diverged)
{
  LearningCurves table;
  for (int i = 0; i < seeds && !WasInterrupted(); ++i)
  {
    std::cerr << "seed " << recipe.seed << "\n";
    const std::optional<fs::path> folder =
      output ? std::optional(*output / ("seed-" + std::to_string(recipe.seed))) : std::nullopt;
    const LearningResult result = Train(recipe, setup, folder);
    table.names = result.curves.names;
    table.names.insert(table.names.begin(), "Seed");
    table.rows.push_back(LastValues(result.curves));
    table.rows.back().insert(table.rows.back().begin(), static_cast<double>(recipe.seed));
    diverged = diverged || !result.divergence.empty();
    ++recipe.seed;
    ++recipe.task.seed;
  }
  return table;
}

/// Trains many seeds, writes a table of them and prints its summary.
int TrainMany(const cxxopts::ParseResult& parsed, const LearningRecipe& recipe, const Setup& setup,
  const std::optional<fs::path>& output)
{
  const int seeds = AtLeast(parsed, "seeds", 1);
  const bool isOfPairs = recipe.task.kind == TaskKind::TokenPairs;
  ThrowIf<OptionError>(isOfPairs && output.has_value(),
    "--output: expected none with --seeds of TokenPairs, found one.");
  bool diverged = false;
  const LearningCurves table = isOfPairs
                                 ? TrainPairs(recipe, seeds, setup.options.threads, diverged)
                                 : TrainSeeds(recipe, setup, output, seeds, diverged);
  if (parsed.count("table") != 0)
  {
    WriteCurves(parsed["table"].as<std::string>(), table);
  }
  PrintSummary(table);
  return diverged ? 1 : 0;
}

int Run(const cxxopts::ParseResult& parsed)
{
  std::optional<SavedTraining> saved;
  if (parsed.count("continue") != 0)
  {
    saved.emplace(parsed["continue"].as<std::string>());
  }
  const LearningRecipe recipe = ToRecipe(parsed, saved);
  if (parsed.count("print-recipe") != 0)
  {
    std::cout << ToJson(recipe);
    return 0;
  }
  Setup setup;
  if (saved)
  {
    saved->RequireMoreSteps(recipe);
    setup.state = saved->state.GetTensors();
  }
  setup.options.checkpointEvery = AtLeast<std::int64_t>(parsed, "checkpoint-every", 0);
  setup.options.measureEvery = AtLeast<std::int64_t>(parsed, "measure-every", 0);
  setup.options.threads = AtLeast(parsed, "threads", 0);
  setup.dtype = parsed.count("f16") != 0 ? DType::F16 : DType::F32;
  std::optional<fs::path> output;
  if (parsed.count("output") != 0)
  {
    output = parsed["output"].as<std::string>();
  }
  ThrowIf<OptionError>(setup.dtype == DType::F16 && recipe.task.kind == TaskKind::TokenPairs,
    "--f16: expected none with TokenPairs, whose weights have 64 bits.");
  if (parsed.count("seeds") != 0)
  {
    ThrowIf<OptionError>(
      saved.has_value(), "--seeds: expected none with --continue, whose seed is given.");
    return TrainMany(parsed, recipe, setup, output);
  }
  ThrowIf<OptionError>(
    parsed.count("table") != 0, "--table: expected none without --seeds, found one.");
  ThrowIf<OptionError>(
    !output.has_value(), "expected --output or --seeds, found neither; --help shows them.");
  return TrainOne(recipe, setup, output);
}

}

int Learn(const std::vector<std::string>& arguments)
{
  const auto parsed = Parse(
    Arguments(), arguments, { "--task RepeatedTokens -o run", "--task BeliefStates --seeds 5" });
  if (!parsed)
  {
    return 0;
  }
  if (!parsed->unmatched().empty())
  {
    throw OptionError("expected only options, found '" + parsed->unmatched().front() + "'.");
  }
  CatchInterrupt();
  return Run(*parsed);
}

}
