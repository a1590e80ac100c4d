#include "RecipeFile.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "SavedTraining.h"
#include "TemporaryDirectory.h"

#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace
{

/// A recipe each of whose settings differs from every default.
LearningRecipe OtherRecipe()
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::SortedList);
  recipe.task = { TaskKind::SortedList, 11, 12, "some text.txt", 0.25, 13, 9, 0.3, 14 };
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

TEST(RecipeFile, IsReadAsItWasWritten)
{
  const LearningRecipe recipe = OtherRecipe();
  const LearningRecipe found = ParseRecipe(ToJson(recipe), "test");
  EXPECT_EQ(found.task.kind, TaskKind::SortedList);
  EXPECT_EQ(found.task.vocabulary, 11);
  EXPECT_EQ(found.task.context, 12);
  EXPECT_EQ(found.task.text, "some text.txt");
  EXPECT_EQ(found.task.repeats, 0.25);
  EXPECT_EQ(found.task.curriculum, 13);
  EXPECT_EQ(found.task.curriculumVocabulary, 9);
  EXPECT_EQ(found.task.trainShare, 0.3);
  EXPECT_EQ(found.task.seed, 14U);
  EXPECT_EQ(found.architecture.keyHeads, 3);
  EXPECT_EQ(found.architecture.headDimension, 7);
  EXPECT_EQ(found.architecture.positions, PositionKind::Rotary);
  EXPECT_EQ(found.architecture.norm, NormKind::RmsNorm);
  EXPECT_EQ(found.architecture.activation, Activation::Silu);
  EXPECT_TRUE(found.architecture.gated);
  EXPECT_FALSE(found.architecture.biases);
  EXPECT_TRUE(found.architecture.tied);
  EXPECT_EQ(found.optimizer.schedule, RateSchedule::Cosine);
  EXPECT_EQ(found.optimizer.decayRule, DecayRule::Blocks);
  EXPECT_EQ(found.optimizer.epsilon, 1e-5);
  EXPECT_EQ(found.initialization, 0.6);
  EXPECT_EQ(found.seed, recipe.seed);
  // All other settings, too.
  EXPECT_EQ(ToJson(found), ToJson(recipe));
}

TEST(RecipeFile, TokenPairsHasSettingsOfItsOwn)
{
  LearningRecipe recipe = DefaultRecipe(TaskKind::TokenPairs);
  recipe.pairs = { TrainingMode::Boosting, true, true, 0.5, 0.25, "a model", true };
  const LearningRecipe found = ParseRecipe(ToJson(recipe), "test");
  EXPECT_EQ(found.pairs.mode, TrainingMode::Boosting);
  EXPECT_TRUE(found.pairs.gradientDescent);
  EXPECT_TRUE(found.pairs.gaussian);
  EXPECT_EQ(found.pairs.priorDecay, 0.5);
  EXPECT_EQ(found.pairs.specialization, 0.25);
  EXPECT_EQ(found.pairs.model, "a model");
  EXPECT_TRUE(found.pairs.keepsWeights);
  EXPECT_EQ(ToJson(found), ToJson(recipe));
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
  EXPECT_THAT(refusal(R"({"task": "Brackets", "layer": 1})"),
    HasSubstr("unknown setting 'layer', expected one of task, vocabulary"));
  EXPECT_THAT(refusal(R"({"task": "Brackets", "seed": -1})"), HasSubstr("'seed'"));
  EXPECT_THAT(refusal(R"({"task": "Brackets", "rate": 0})"), HasSubstr("'rate'"));
  EXPECT_THAT(
    MessageOf<FormatError>([] { ParseRecipe("[]", "recipe.json"); }), HasSubstr("JSON object"));
  EXPECT_THAT(
    MessageOf<FormatError>([] { ParseRecipe("{", "recipe.json"); }), StartsWith("recipe.json: "));
}

TEST(SavedTraining, NeedsItsStep)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / RecipeFile) << R"({"task": "Brackets", "steps": 10})";
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
