#include "RecipeFile.h"

#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <type_traits>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The names of an enumeration.
template<class Value>
constexpr auto NamesFor = nullptr;
template<>
constexpr auto NamesFor<TrainingMode> = TrainingModes;
template<>
constexpr std::array<Named<PositionKind>, 5> NamesFor<PositionKind> = { {
  { "Learned", PositionKind::Learned },
  { "Shortformer", PositionKind::Shortformer },
  { "ALiBi", PositionKind::Alibi },
  { "Rotary", PositionKind::Rotary },
  { "None", PositionKind::None },
} };
template<>
constexpr std::array<Named<NormKind>, 3> NamesFor<NormKind> = { {
  { "LayerNorm", NormKind::LayerNorm },
  { "RMS", NormKind::RmsNorm },
  { "None", NormKind::None },
} };
template<>
constexpr std::array<Named<Activation>, 4> NamesFor<Activation> = { {
  { "GELU", Activation::Gelu },
  { "GELUTanh", Activation::GeluTanh },
  { "ReLU", Activation::Relu },
  { "SiLU", Activation::Silu },
} };
template<>
constexpr std::array<Named<RateSchedule>, 2> NamesFor<RateSchedule> = { {
  { "Constant", RateSchedule::Constant },
  { "Cosine", RateSchedule::Cosine },
} };
template<>
constexpr std::array<Named<DecayRule>, 3> NamesFor<DecayRule> = { {
  { "Matrices", DecayRule::Matrices },
  { "Blocks", DecayRule::Blocks },
  { "All", DecayRule::All },
} };

/// The least value of a number: 0, or 1 for an integer and any positive one for another.
enum class Least
{
  Zero,
  Positive
};

/// The settings that only TokenPairs has.
template<class Recipe, class Visit>
void ForEachPairSetting(Recipe& recipe, const Visit& visit)
{
  constexpr Least zero = Least::Zero;
  auto& pairs = recipe.pairs;
  visit("mode", pairs.mode, zero, "TokenPairs: Joint, Boosting or BoostingOutputOnly");
  visit("gradient_descent", pairs.gradientDescent, zero,
    "TokenPairs: whether to take gradient descent in place of Adam (true, false)");
  visit("gaussian", pairs.gaussian, zero,
    "TokenPairs: whether first weights are normal, not as published (true, false)");
  visit("prior_decay", pairs.priorDecay, Least::Positive,
    "TokenPairs: weight of the pair (t1, t2) is this to the power t1 + t2");
  visit("specialization", pairs.specialization, zero,
    "TokenPairs: weight of the penalty that lets heads share the work");
  visit("model", pairs.model, zero, "TokenPairs: file of a model whose task is trained");
  visit("keep_weights", pairs.keepsWeights, zero,
    "TokenPairs: whether to start from the weights of that model (true, false)");
}

/// Calls visit(name, value, least, description) for each setting of a transformer except the task.
/// This and ForEachPairSetting are the places that list them.
template<class Recipe, class Visit>
void ForEachTransformerSetting(Recipe& recipe, const Visit& visit)
{
  constexpr Least zero = Least::Zero;
  constexpr Least positive = Least::Positive;
  auto& task = recipe.task;
  visit("vocabulary", task.vocabulary, zero,
    "tokens; p of ModularAddition, states of StatisticalInduction");
  visit("context", task.context, zero, "tokens of a sequence");
  visit("text", task.text, zero, "a UTF-8 text file, for Text and MaskedText");
  visit("repeats", task.repeats, zero,
    "Text, MaskedText: share of sequences that repeat a stretch, 0 to 1");
  visit("curriculum", task.curriculum, zero,
    "Text, MaskedText: first steps on repeated random tokens alone");
  visit("curriculum_vocabulary", task.curriculumVocabulary, zero,
    "Text: tokens of the first of these steps, which grow to all; 0: all");
  visit(
    "train_share", task.trainShare, zero, "ModularAddition: share of pairs that are trained on");
  visit("data_seed", task.seed, zero, "seed of the data");
  auto& model = recipe.architecture;
  visit("layers", model.layers, positive, "layers");
  visit("heads", model.heads, positive, "attention heads of a layer");
  visit("key_heads", model.keyHeads, zero, "heads of keys and values; 0: as many as heads");
  visit("model_dimension", model.modelDimension, positive, "dimension of the residual stream");
  visit("head_dimension", model.headDimension, zero,
    "dimension of queries, keys and values; 0: model dimension / heads");
  visit("mlp_dimension", model.mlpDimension, zero, "neurons of the MLP; 0: attention only");
  visit("positions", model.positions, zero, "Learned, Shortformer, ALiBi, Rotary or None");
  visit("normalization", model.norm, zero, "LayerNorm, RMS or None");
  visit("activation", model.activation, zero, "of the MLP: GELU, GELUTanh, ReLU or SiLU");
  visit("gated", model.gated, zero, "whether the MLP has a gate (true, false)");
  visit("biases", model.biases, zero, "whether attention and MLP have biases (true, false)");
  visit("tied", model.tied, zero,
    "whether the unembedding is the transpose of the embedding (true, false)");
  visit("batch_size", recipe.batchSize, zero,
    "sequences of a step; ModularAddition: 0 for all training pairs");
  visit("steps", recipe.steps, positive, "steps in all");
  auto& optimizer = recipe.optimizer;
  visit("rate", optimizer.rate, positive, "learning rate of AdamW");
  visit("final_rate", optimizer.finalRate, zero, "learning rate at the end, with Cosine");
  visit("schedule", optimizer.schedule, zero, "Constant or Cosine");
  visit("warmup", optimizer.warmup, zero, "steps in which the rate rises from 0");
  visit("beta1", optimizer.beta1, zero, "decay of the first moment");
  visit("beta2", optimizer.beta2, zero, "decay of the second moment");
  visit("epsilon", optimizer.epsilon, positive, "added to the root of the second moment");
  visit("weight_decay", optimizer.weightDecay, zero, "decoupled weight decay");
  visit("decay_rule", optimizer.decayRule, zero, "what decays: Matrices, Blocks or All");
  visit("clip", optimizer.clip, zero, "largest norm of the gradient; 0: no limit");
  visit("initialization", recipe.initialization, positive,
    "standard deviation of the first weights, times 1 / sqrt(inputs)");
  visit("seed", recipe.seed, zero, "seed of the first weights");
}

/// The settings of transformers that TokenPairs has as well.
bool IsOfPairs(std::string_view setting)
{
  constexpr std::array<std::string_view, 7> shared = { "vocabulary", "heads", "head_dimension",
    "batch_size", "steps", "rate", "seed" };
  return std::find(shared.begin(), shared.end(), setting) != shared.end();
}

/// Calls visit(name, value, least, description) for each setting that the recipe's task has, except
/// the task.
template<class Recipe, class Visit>
void ForEachSetting(Recipe& recipe, const Visit& visit)
{
  const bool isOfPairs = recipe.task.kind == TaskKind::TokenPairs;
  ForEachTransformerSetting(recipe,
    [&](const char* name, auto& value, Least least, const char* description)
    {
      if (!isOfPairs || IsOfPairs(name))
      {
        visit(name, value, least, description);
      }
    });
  if (isOfPairs)
  {
    ForEachPairSetting(recipe, visit);
  }
}

/// Reads settings that are there; the others keep their values. Throws ModelError for others.
void Read(LearningRecipe& recipe, const json& object, const Settings& settings)
{
  std::vector<RecipeSetting> known = { { "task", "" } };
  ForEachSetting(recipe, [&](const char* name, const auto&, Least, const char* description)
    { known.push_back({ name, description }); });
  for (const auto& [name, value] : object.items())
  {
    if (FindNamed(known, name) == nullptr)
    {
      settings.Fail(
        "unknown setting '" + name.substr(0, 80) + "', expected one of " + NamesOf(known) + ".");
    }
  }
  const auto read = [&](const char* name, auto& value, Least least, const char* /*description*/)
  {
    using Value = std::decay_t<decltype(value)>;
    const bool isPositive = least == Least::Positive;
    if constexpr (std::is_same_v<Value, bool>)
    {
      value = settings.Flag({ name }, value);
    }
    else if constexpr (std::is_integral_v<Value>)
    {
      value = static_cast<Value>(settings.Integer({ name }, static_cast<std::uint64_t>(value),
        isPositive ? 1 : 0, static_cast<std::uint64_t>(std::numeric_limits<Value>::max())));
    }
    else if constexpr (std::is_same_v<Value, double>)
    {
      value = settings.Number({ name }, value, !isPositive);
    }
    else if constexpr (std::is_enum_v<Value>)
    {
      value = settings.Choice({ name }, NameOf(NamesFor<Value>, value), NamesFor<Value>);
    }
    else
    {
      value = settings.Text({ name }, value.string());
    }
  };
  ForEachSetting(recipe, read);
}

/// Whether a setting is text in JSON, by name.
bool IsText(const LearningRecipe& recipe, const std::string& setting)
{
  bool isText = false;
  ForEachSetting(recipe,
    [&](const char* name, const auto& value, Least, const char*)
    {
      using Value = std::decay_t<decltype(value)>;
      isText = isText || (name == setting && !std::is_arithmetic_v<Value>);
    });
  return isText;
}

}

const std::vector<RecipeSetting>& RecipeSettings()
{
  static const std::vector<RecipeSetting> all = []()
  {
    std::vector<RecipeSetting> list = { { "task", "" } };
    const LearningRecipe recipe;
    const auto add = [&](const char* name, const auto&, Least, const char* description)
    { list.push_back({ name, description }); };
    ForEachTransformerSetting(recipe, add);
    ForEachPairSetting(recipe, add);
    return list;
  }();
  return all;
}

void SetRecipe(LearningRecipe& recipe, const std::string& setting, const std::string& value,
  const std::string& source)
{
  json parsed = IsText(recipe, setting) ? json(value) : json::parse(value, nullptr, false);
  if (parsed.is_discarded() || parsed.is_null())
  {
    parsed = value;
  }
  const json object = { { setting, parsed } };
  const Settings settings(object, source);
  Read(recipe, object, settings);
}

std::string ToJson(const LearningRecipe& recipe)
{
  nlohmann::ordered_json object;
  object["task"] = NameOf(recipe.task.kind);
  ForEachSetting(recipe,
    [&](const char* name, const auto& value, Least, const char*)
    {
      using Value = std::decay_t<decltype(value)>;
      if constexpr (std::is_enum_v<Value>)
      {
        object[name] = NameOf(NamesFor<Value>, value);
      }
      else if constexpr (std::is_arithmetic_v<Value>)
      {
        object[name] = value;
      }
      else
      {
        object[name] = value.string();
      }
    });
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

LearningRecipe ParseRecipe(std::string_view text, const std::string& source)
{
  const json object = ParseJson(text, source, "the recipe");
  ThrowIf<FormatError>(!object.is_object(), source,
    ": expected the recipe to be a JSON object, found ", object.type_name(), ".");
  const Settings settings(object, source);
  LearningRecipe recipe;
  try
  {
    recipe = DefaultRecipe(ParseTask(settings.Text({ "task" }, "")));
  }
  catch (const OptionError& e)
  {
    settings.Fail(e.what());
  }
  Read(recipe, object, settings);
  return recipe;
}

LearningRecipe ReadRecipe(const std::filesystem::path& path)
{
  LearningRecipe recipe = ParseRecipe(ReadFile(path), path.string());
  for (std::filesystem::path* named : { &recipe.task.text, &recipe.pairs.model })
  {
    const std::filesystem::path beside = path.parent_path() / *named;
    std::error_code absent; // which opening the file reports
    if (named->is_relative() && !named->empty() && std::filesystem::exists(beside, absent))
    {
      *named = beside;
    }
  }
  return recipe;
}

}
