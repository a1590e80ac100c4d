// Trains small attention-only transformers without ParaView: one, whose checkpoints it writes as
// safetensors files that the plugin reads as time steps; or many seeds, as a table.

#include "AtomicFile.h"
#include "Error.h"
#include "ToolOptions.h"
#include "TrainingRuns.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>

#include <cxxopts.hpp>

namespace
{

namespace fs = std::filesystem;
using namespace std::string_literals;
using atlas::TrainingOptions;
using atlas::tools::AtLeast;
using atlas::tools::Checked;

cxxopts::Options Arguments()
{
  using cxxopts::value;
  cxxopts::Options arguments("attention-atlas-train",
    "Trains small attention-only transformers (embedding dimension 3).\n"
    "With --output it writes the checkpoints of one training and training.csv to a folder; with\n"
    "--runs it writes a table of many seeds to standard output.\n");
  auto add = arguments.add_options();
  add("tokens", "size of the vocabulary", value<int>()->default_value("5"));
  add("heads", "attention heads", value<int>()->default_value("3"));
  add("head-dimension", "dimension of queries, keys and values", value<int>()->default_value("3"));
  add("steps", "optimizer steps, in Boosting in total for all heads",
    value<int>()->default_value("3500"));
  add("rate", "learning rate", value<double>()->default_value("0.01"));
  add("batch", "token pairs per step, 0 for all", value<int>()->default_value("0"));
  add("mode", "Joint, Boosting, BoostingOutputOnly, or with --runs a list of them",
    value<std::vector<std::string>>()->default_value("Joint"));
  add("gradient-descent", "use gradient descent instead of Adam");
  add("gaussian", "use normal initial parameters instead of those of the published code");
  add("prior-decay", "weight of the pair (t1, t2): this to the power t1 + t2",
    value<double>()->default_value("1"));
  add("specialization", "weight of the penalty that lets heads share the work",
    value<double>()->default_value("0"));
  add("seed", "seed of all random numbers", value<std::uint64_t>()->default_value("0"));
  add("model", "file of a model whose task is trained", value<std::string>());
  add("continue", "start from the parameters of --model");
  add("every", "steps between checkpoints", value<int>()->default_value("50"));
  add("o,output", "folder for the checkpoints", value<std::string>());
  add("runs", "number of seeds to train, starting at --seed", value<int>());
  add("threads", "number of threads for --runs; 0: one per processor that the process may use",
    value<int>()->default_value("0"));
  add("h,help", "show this");
  return arguments;
}

TrainingOptions ToOptions(const cxxopts::ParseResult& parsed)
{
  TrainingOptions options;
  options.vocabularySize = AtLeast(parsed, "tokens", 1);
  options.heads = AtLeast(parsed, "heads", 1);
  options.headDimension = AtLeast(parsed, "head-dimension", 1);
  options.steps = AtLeast(parsed, "steps", 0);
  options.learningRate =
    Checked<double>(parsed, "rate", "a positive number", [](double rate) { return rate > 0; });
  options.batchSize = AtLeast(parsed, "batch", 0);
  options.optimizer = parsed.count("gradient-descent") != 0 ? atlas::Optimizer::GradientDescent
                                                            : atlas::Optimizer::Adam;
  options.initialization = parsed.count("gaussian") != 0 ? atlas::Initialization::Gaussian
                                                         : atlas::Initialization::Published;
  options.priorDecay = Checked<double>(parsed, "prior-decay", "a number in (0, 1]",
    [](double decay) { return decay > 0 && decay <= 1; });
  options.specialization = AtLeast(parsed, "specialization", 0.0);
  options.seed = parsed["seed"].as<std::uint64_t>();
  return options;
}

/// The number as text that reads back exactly.
std::string Text(double value)
{
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

/// The names of the head columns, each after a comma.
std::string HeadColumns(int heads)
{
  std::string columns;
  for (int h = 0; h < heads; ++h)
  {
    columns += ",Accuracy Head " + std::to_string(h);
  }
  return columns;
}

std::string HeadValues(const atlas::HeadAccuracies& heads)
{
  std::string values;
  for (const Eigen::Index correct : heads.alone)
  {
    values += "," + Text(heads.Share(correct));
  }
  return values;
}

void WriteText(const fs::path& path, const std::string& text)
{
  atlas::AtomicFile file(path);
  file.Write(text.data(), text.size());
  file.Commit();
}

/// Trains once and writes checkpoints and training.csv to `folder`.
void TrainOnce(const TrainingOptions& options, const atlas::TrainingStart& start, int every,
  const fs::path& folder)
{
  atlas::Trainer trainer(options, start);
  fs::create_directories(folder);
  std::ostringstream table;
  table << "Step,Loss,Accuracy,Phase" << HeadColumns(trainer.GetOptions().heads) << "\n";
  const auto digits = static_cast<int>(std::to_string(options.steps).size());
  while (true)
  {
    const atlas::AttentionOnlyModel model = trainer.GetModel();
    std::string step = std::to_string(trainer.GetStep());
    step.insert(0, static_cast<std::size_t>(digits) - step.size(), '0');
    atlas::WriteAttentionOnlyModel(folder / ("step-" + step + ".safetensors"), model);
    const atlas::TrainingState state = trainer.Measure();
    table << state.step << "," << Text(state.loss) << "," << Text(state.accuracy) << ","
          << trainer.GetPhase()
          << HeadValues(atlas::CountCorrect(model, atlas::Residual::EmbeddingPosition)) << "\n";
    if (trainer.IsFinished())
    {
      WriteText(folder / "training.csv", table.str());
      std::cout << "step " << state.step << ": loss " << state.loss << ", accuracy "
                << state.accuracy << "\n";
      return;
    }
    for (int i = 0; i < every && !trainer.IsFinished(); ++i)
    {
      trainer.Step();
    }
  }
}

/// Trains many seeds in these modes and writes one table row for each.
void TrainMany(const TrainingOptions& options, const atlas::TrainingStart& start, int runs,
  const std::vector<std::string>& modeNames, int threads)
{
  std::vector<atlas::TrainingMode> modes;
  modes.reserve(modeNames.size());
  for (const std::string& name : modeNames)
  {
    modes.push_back(atlas::ModeOfName(name));
  }
  const std::vector<atlas::TrainingRun> done =
    atlas::RunTrainings(atlas::SweepOptions(options, runs, modes), start, threads);
  const std::size_t heads = done.empty() ? 0 : done.front().heads.alone.size();
  std::cout
    << "Mode,Steps,Learning Rate,Batch Size,Specialization,Seed,Loss,Accuracy,Steps to Learn"
    << HeadColumns(static_cast<int>(heads)) << ",Union\n";
  for (const atlas::TrainingRun& run : done)
  {
    std::cout << atlas::ModeName(run.options.mode) << "," << run.options.steps << ","
              << Text(run.options.learningRate) << "," << run.options.batchSize << ","
              << Text(run.options.specialization) << "," << run.options.seed << ","
              << Text(run.last.loss) << "," << Text(run.last.accuracy) << "," << run.learned
              << HeadValues(run.heads) << "," << Text(run.heads.Share(run.heads.any)) << "\n";
  }
}

int Run(const cxxopts::ParseResult& parsed)
{
  const bool isSweep = parsed.count("runs") != 0;
  if (isSweep == (parsed.count("output") != 0))
  {
    throw atlas::OptionError("expected --output or --runs, found "s +
                             (isSweep ? "both" : "neither") + "; --help shows them.");
  }
  TrainingOptions options = ToOptions(parsed);
  const int threads = AtLeast(parsed, "threads", 0);
  std::optional<atlas::AttentionOnlyModel> model;
  atlas::TrainingStart start;
  if (parsed.count("model") != 0)
  {
    model = atlas::ReadAttentionOnlyModel(parsed["model"].as<std::string>());
    start = { &*model, parsed.count("continue") != 0 };
    // Options that are not given are as in the model.
    options.heads =
      parsed.count("heads") != 0 ? options.heads : static_cast<int>(model->HeadCount());
    options.headDimension = parsed.count("head-dimension") != 0
                              ? options.headDimension
                              : static_cast<int>(model->HeadDimension());
  }
  else if (parsed.count("continue") != 0)
  {
    throw atlas::OptionError("--continue: expected a --model to continue, found none.");
  }
  const auto modes = parsed["mode"].as<std::vector<std::string>>();
  if (isSweep)
  {
    TrainMany(options, start, AtLeast(parsed, "runs", 0), modes, threads);
    return 0;
  }
  if (modes.size() != 1)
  {
    throw atlas::OptionError(
      "--mode: expected one mode with --output, found " + std::to_string(modes.size()) + ".");
  }
  options.mode = atlas::ModeOfName(modes.front());
  TrainOnce(options, start, AtLeast(parsed, "every", 1), parsed["output"].as<std::string>());
  return 0;
}

}

int main(int argc, char** argv)
{
  try
  {
    cxxopts::Options arguments = Arguments();
    const cxxopts::ParseResult parsed = arguments.parse(argc, argv);
    if (parsed.count("help") != 0)
    {
      std::cout << arguments.help();
      return 0;
    }
    if (!parsed.unmatched().empty())
    {
      throw atlas::OptionError(
        "expected only options, found '" + parsed.unmatched().front() + "'.");
    }
    return Run(parsed);
  }
  catch (const std::exception& e) // includes those of cxxopts
  {
    std::cerr << "attention-atlas-train: " << e.what() << "\n";
    return 1;
  }
}
