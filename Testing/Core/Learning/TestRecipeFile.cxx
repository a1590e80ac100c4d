#include "Learning/RecipeFile.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Learning/SavedTraining.h"
#include "TemporaryDirectory.h"

#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace
{

/// A recipe each of whose settings differs from every default.
LearningRecipe OtherRecipe()
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::BeliefStates);
  recipe.task = { TaskKind::BeliefStates, 11, 12, "some text.txt", 0.25, 13, 9, 0.3, 14 };
  recipe.architecture = { 5, 6, 3, 24, 7, 8, PositionKind::Rotary, NormKind::RmsNorm,
    Activation::Silu, true, false, true };
  recipe.optimizer = { 0.1, 0.2, RateSchedule::Cosine, 15, 0.7, 0.8, 1e-5, 0.4, DecayRule::Blocks,
    2.5 };
  recipe.steps = 16;
  recipe.batchSize = 17;
  recipe.initialization = 0.6;
  recipe.seed = 18446744073709551615U;
  return recipe;
}

/// Expects a recipe to be written as this text, and to be read from it.
void ExpectText(const LearningRecipe& recipe, const char* text)
{
  EXPECT_EQ(nlohmann::json::parse(ToJson(recipe)), nlohmann::json::parse(text));
  EXPECT_EQ(ToJson(ParseRecipe(text, "test")), ToJson(recipe));
}

TEST(RecipeFile, IsReadAsItWasWritten)
{
  ExpectText(OtherRecipe(), R"({ "task": "BeliefStates", "vocabulary": 11, "context": 12,
    "text": "some text.txt", "repeats": 0.25, "curriculum": 13, "curriculum_vocabulary": 9,
    "train_share": 0.3, "data_seed": 14, "layers": 5, "heads": 6, "key_heads": 3,
    "model_dimension": 24, "head_dimension": 7, "mlp_dimension": 8, "positions": "Rotary",
    "normalization": "RMS", "activation": "SiLU", "gated": true, "biases": false, "tied": true,
    "batch_size": 17, "steps": 16, "rate": 0.1, "final_rate": 0.2, "schedule": "Cosine",
    "warmup": 15, "beta1": 0.7, "beta2": 0.8, "epsilon": 1e-5, "weight_decay": 0.4,
    "decay_rule": "Blocks", "clip": 2.5, "initialization": 0.6, "seed": 18446744073709551615 })");
}

TEST(RecipeFile, TokenPairsHasSettingsOfItsOwn)
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::TokenPairs);
  recipe.pairs = { TrainingMode::Boosting, true, true, 0.5, 0.25, "a model", true };
  ExpectText(recipe, R"({ "task": "TokenPairs", "vocabulary": 5, "heads": 3, "head_dimension": 3,
    "batch_size": 0, "steps": 3500, "rate": 0.01, "seed": 0, "mode": "Boosting",
    "gradient_descent": true, "gaussian": true, "prior_decay": 0.5, "specialization": 0.25,
    "model": "a model", "keep_weights": true })");
  for (const char* text :
    { R"({"task": "TokenPairs", "layers": 2})", R"({"task": "Text", "mode": "Joint"})" })
  {
    EXPECT_THAT(MessageOf<ModelError>([&] { ParseRecipe(text, "test"); }),
      StartsWith("test: unknown setting '"));
  }
}

TEST(RecipeFile, EachTaskIsReadAsItWasWritten)
{
  for (const std::string& name : TaskNames())
  {
    const LearningRecipe recipe = DefaultRecipe(ParseTask(name));
    EXPECT_EQ(ToJson(ParseRecipe(ToJson(recipe), name)), ToJson(recipe)) << name;
  }
}

TEST(RecipeFile, WhatIsLeftOutIsThatOfTheTask)
{
  const LearningRecipe found = ParseRecipe(R"({"task": "ModularAddition", "layers": 2})", "test");
  LearningRecipe expected = DefaultRecipe(TaskKind::ModularAddition);
  expected.architecture.layers = 2;
  EXPECT_EQ(ToJson(found), ToJson(expected));
}

TEST(RecipeFile, ATextBesideItIsFoundFromAnywhere)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / "book.txt") << "text";
  std::ofstream(folder / RecipeFile) << R"({"task": "Text", "text": "book.txt"})";
  EXPECT_EQ(ReadRecipe(folder / RecipeFile).task.text, folder / "book.txt");
  std::ofstream(folder / RecipeFile) << R"({"task": "Text", "text": "another.txt"})";
  EXPECT_EQ(ReadRecipe(folder / RecipeFile).task.text, "another.txt");
}

TEST(RecipeFile, SettingsHaveNamesOfTheirOwn)
{
  std::set<std::string> names;
  for (const RecipeSetting& setting : RecipeSettings())
  {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_EQ(setting.description.empty(), setting.name == "task") << setting.name;
    EXPECT_THAT(ToJson({}) + ToJson(DefaultRecipe(TaskKind::TokenPairs)),
      HasSubstr("\"" + setting.name + "\": "));
  }
}

TEST(RecipeFile, OneIsSetFromText)
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::RepeatedTokens);
  SetRecipe(recipe, "layers", "3", "--layers");
  SetRecipe(recipe, "rate", "0.5", "--rate");
  SetRecipe(recipe, "tied", "true", "--tied");
  SetRecipe(recipe, "positions", "None", "--positions");
  SetRecipe(recipe, "text", "7", "--text");
  EXPECT_EQ(recipe.architecture.layers, 3);
  EXPECT_EQ(recipe.optimizer.rate, 0.5);
  EXPECT_TRUE(recipe.architecture.tied);
  EXPECT_EQ(recipe.architecture.positions, PositionKind::None);
  EXPECT_EQ(recipe.task.text, "7") << "a file may have this name";
  const auto refusal = [&](const std::string& name, const std::string& value)
  { return MessageOf<ModelError>([&] { SetRecipe(recipe, name, value, "--" + name); }); };
  EXPECT_EQ(refusal("layers", "0"),
    "--layers: expected 'layers' to be an integer from 1 to 9223372036854775807, found 0.");
  EXPECT_THAT(refusal("layers", "x"), HasSubstr("found \"x\""));
  EXPECT_THAT(refusal("layers", "null"), HasSubstr("found \"null\""));
  EXPECT_THAT(refusal("rate", "-1"), HasSubstr("a positive number, found -1"));
  EXPECT_THAT(refusal("tied", "1"), HasSubstr("true or false, found 1"));
  EXPECT_THAT(refusal("positions", "Sinus"),
    HasSubstr(
      "unknown positions 'Sinus', expected one of Learned, Shortformer, ALiBi, Rotary, None"));
}

TEST(RecipeFile, SaysWhatIsWrong)
{
  const auto refusal = [](const std::string& text)
  { return MessageOf<ModelError>([&] { ParseRecipe(text, "recipe.json"); }); };
  EXPECT_THAT(refusal("{}"), StartsWith("recipe.json: "));
  EXPECT_THAT(refusal(R"({"task": "Chess"})"), HasSubstr("RepeatedTokens"));
  EXPECT_THAT(refusal(R"({"task": "BeliefStates", "layer": 1})"),
    HasSubstr("unknown setting 'layer', expected one of task, vocabulary"));
  EXPECT_THAT(refusal(R"({"task": "BeliefStates", "seed": -1})"), HasSubstr("'seed'"));
  EXPECT_THAT(refusal(R"({"task": "BeliefStates", "rate": 0})"), HasSubstr("'rate'"));
  EXPECT_THAT(
    MessageOf<FormatError>([] { ParseRecipe("[]", "recipe.json"); }), HasSubstr("JSON object"));
  EXPECT_THAT(
    MessageOf<FormatError>([] { ParseRecipe("{", "recipe.json"); }), StartsWith("recipe.json: "));
}

TEST(SavedTraining, NeedsItsStep)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / RecipeFile) << R"({"task": "BeliefStates", "steps": 10})";
  WriteSafetensors(folder / TrainingStateFile, {}, {});
  EXPECT_THAT(
    MessageOf<ModelError>([&] { SavedTraining{ folder.Path() }; }), HasSubstr("with its 'step'"));
  WriteSafetensors(
    folder / TrainingStateFile, { { "step", Tensor::FromInteger({ 1 }, { 9 }) } }, {});
  const SavedTraining saved(folder.Path());
  EXPECT_EQ(saved.step, 9);
  saved.RequireMoreSteps(saved.recipe);
  LearningRecipe fewer = saved.recipe;
  fewer.steps = 9;
  EXPECT_EQ(MessageOf<OptionError>([&] { saved.RequireMoreSteps(fewer); }),
    "Steps: expected more than the 9 that are done, found 9.");
}

}
