#include "Weights/Internal/ArchitectureRows.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Weights/Internal/RowExpression.h"
#include "Weights/Internal/TensorNames.h"
#include "Weights/TransformerConfig.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using nlohmann::json;

namespace
{

double Value(const std::string& text)
{
  return EvaluateExpression(text,
    [](const std::string& name)
    {
      const std::map<std::string, double> values = { { "l", 5 }, { "heads", 4 }, { "none", 0 } };
      const auto found = values.find(name);
      return found == values.end() ? throw ModelError("unknown " + name) : found->second;
    });
}

TEST(RowExpression, HasTheOperatorsOfC)
{
  const std::vector<std::pair<std::string, double>> expected = { { "1 + 2 * 3", 7 },
    { "(1 + 2) * 3", 9 }, { "7 - 2 - 1", 4 }, { "8 / 2 / 2", 2 }, { "7 % 4", 3 }, { "-2 * -3", 6 },
    { "2.5e1", 25 }, { "l % 2 == 0", 0 }, { "(l + 1) % 3 == 0", 1 }, { "l >= heads", 1 },
    { "l<5", 0 }, { "!none && l != 4", 1 }, { "none || heads", 1 }, { "true ? 3 : 4", 3 },
    { "none ? 1 : heads ? 2 : 3", 2 }, { "sqrt(16) + floor(2.9)", 6 },
    { "min(l, 3) - max(1, 2)", 1 }, { "1 + 1 == 2 && 3 > 2", 1 } };
  for (const auto& [text, value] : expected)
  {
    EXPECT_EQ(Value(text), value) << text;
  }
}

TEST(RowExpression, AsksForWhatCounts)
{
  EXPECT_EQ(Value("none ? missing : 2"), 2);
  EXPECT_EQ(Value("none && missing"), 0);
  EXPECT_EQ(Value("heads || missing"), 1);
  EXPECT_EQ(MessageOf<ModelError>([] { Value("missing"); }), "unknown missing");
}

TEST(RowExpression, NamesWhatIsWrong)
{
  const auto message = [](const std::string& text)
  { return MessageOf<ModelError>([&] { Value(text); }); };
  EXPECT_EQ(
    message("1 +"), "the expression '1 +': expected a number, a name or '(' at character 4.");
  EXPECT_EQ(message("(1"), "the expression '(1': expected ')' at character 3.");
  EXPECT_EQ(message("1 2"), "the expression '1 2': expected its end at character 3.");
  EXPECT_EQ(message("1 ? 2"), "the expression '1 ? 2': expected ':' at character 6.");
  EXPECT_THAT(message("log(2)"), HasSubstr("expected one of floor, max, min, sqrt, found 'log'"));
  EXPECT_THAT(message("max(2)"), HasSubstr("expected ')' behind 2 arguments"));
  EXPECT_THAT(message(std::string(2000, '-')), HasSubstr("expected at most 1000 characters"));
  EXPECT_THAT(message(std::string(100, '(')), HasSubstr("expected fewer parentheses"));
}

TEST(ArchitectureRows, AreOfModelsThatAreKnown)
{
  std::vector<std::string> names;
  for (const RowName& row : ModelRows())
  {
    names.push_back(row.name);
  }
  EXPECT_THAT(names, IsSupersetOf({ "cohere2", "gpt2", "llama", "openai-gpt", "smollm3" }));
  for (const std::string& name : names)
  {
    EXPECT_THAT(KnownArchitectures(), HasSubstr(name));
  }
  EXPECT_THAT(names, Each(Not(AnyOf(StartsWith("_"), HasSubstr("/")))));
}

/// A model like Llama with a row of its own.
json Fork(const json& row)
{
  json settings = { { "model_type", "slate" }, { "num_hidden_layers", 4 }, { "hidden_size", 24 },
    { "num_attention_heads", 4 }, { "intermediate_size", 40 }, { "vocab_size", 97 },
    { "atlas_architecture", { { "like", "llama" } } } };
  settings["atlas_architecture"].update(row);
  return settings;
}

TransformerConfig Parse(const json& settings)
{
  return ParseTransformerConfig(settings.dump(), "config.json");
}

TEST(OwnRow, ChangesAKnownArchitecture)
{
  json settings = Fork({ { "normPlace", "AfterOutput" }, { "activation", "relu2" },
    { "gated", false }, { "let", { { "every", { { "from", "every" }, { "else", 2 } } } } },
    { "residualScale", { { "from", "depth_scale" }, { "to", "1 / sqrt(x)" } } },
    { "rotatedLayers", "l % every == 0" }, { "rotation", { { "base", 500 } } },
    { "tensors", { { "gate", "" }, { "up", "mlp.wide" } } } });
  settings["depth_scale"] = 4;
  const TransformerConfig config = Parse(settings);
  EXPECT_EQ(config.architecture, "slate");
  EXPECT_EQ(config.layers, 4);
  EXPECT_EQ(config.headDimension, 6);
  EXPECT_EQ(config.normPlace, NormPlace::AfterOutput);
  EXPECT_EQ(config.activation, Activation::SquaredRelu);
  EXPECT_EQ(config.residualScale, 0.5);
  EXPECT_EQ(config.rotaryBase, 500);
  EXPECT_THAT(config.rotatedLayers, ElementsAre(true, false, true, false));
  EXPECT_THAT(config.unknownSettings, IsEmpty());
  EXPECT_EQ(NamesFor(config).up.weight, "mlp.wide.weight");
  EXPECT_EQ(NamesFor(config).gate.weight, "");
  EXPECT_EQ(NamesFor(config).query.weight, "self_attn.q_proj.weight");
}

TEST(OwnRow, IsLeftOutIfAnArchitectureIsChosen)
{
  const TransformerConfig config =
    ParseTransformerConfig(Fork({ { "normPlace", "AfterOutput" } }).dump(), "config.json", "llama");
  EXPECT_EQ(config.normPlace, NormPlace::BeforeSublayer);
  EXPECT_EQ(config.ownTensors, "");
}

TEST(OwnRow, RefusesWhatItDoesNotKnow)
{
  const std::vector<std::pair<json, std::string>> cases = {
    { { { "norm_place", 1 } },
      "atlas_architecture: unknown word 'norm_place', expected a field of Models.md" },
    { { { "like", "lama" } }, "atlas_architecture: unknown 'like' 'lama', expected one of " },
    { { { "like", 3 } }, "atlas_architecture: expected 'like' to be a text, found 3." },
    { { { "normPlace", "Behind" } },
      "atlas_architecture: expected 'normPlace' to be one of BeforeSublayer, AfterSublayer, "
      "BeforeAndAfter, AfterOutput, found \"Behind\"." },
    { { { "normPlace", 2 } }, "expected 'normPlace' to be one of" },
    { { { "layers", { { "from", "depth" } } } }, "config.json: 'depth' is missing." },
    { { { "layers", { { "key", "depth" } } } },
      "expected 'layers' to be a value or an object with 'from'" },
    { { { "layers", "depth" } }, "unknown name 'depth' in an expression" },
    { { { "layers", "heads" }, { "heads", "layers" } }, "'layers' depends on itself" },
    { { { "residualScale", "1 / 0" } }, "expected 'residualScale' to be a number" },
    { { { "headDimension", "modelDimension / 5" } },
      "the number of heads, 4, does not divide the dimension of the model, 24." },
    { { { "keyHeads", 1.5 } }, "expected keyHeads to be an integer, found 1.5" },
    { { { "keyHeads", 0 } }, "expected keyHeads to be at least 1, found 0." },
    { { { "tensors", { { "qwery", "q" } } } }, "found 'qwery'" },
    { { { "tensors", { { "query", 3 } } } },
      "expected the name of the tensor 'query' to be a text" },
    { { { "windows", { { "else", 1e12 } } } },
      "atlas_architecture: expected 'else' of 'windows' "
      "to be an integer of at least 0, found 1000000000000" },
    { { { "convolution", 3 } }, "found 3 tokens" }, // which would read ahead
    { { { "rules", "magic" } }, "unknown rule 'magic', expected one of" },
    { { { "require", { { "vocab_size", 98 } } } }, "expected 'vocab_size' to be 98" },
    { { { "need", "rope_scaling" } }, "'rope_scaling' is missing" },
    { { { "activation", "xielu" } }, "expected an MLP without a gate for the activation xielu" },
  };
  for (const auto& [row, message] : cases)
  {
    EXPECT_THAT(MessageOf<ModelError>([&, one = row] { Parse(Fork(one)); }), HasSubstr(message))
      << row.dump();
  }
}

TEST(OwnRow, RefusesSettingsThatNobodyReads)
{
  json settings = Fork(json::object());
  settings["sliding_window"] = 7;
  EXPECT_THAT(MessageOf<ModelError>([&] { Parse(settings); }), HasSubstr("'sliding_window' is 7"));
  settings = Fork({ { "ignore", "note" } });
  settings["note"] = 1;
  settings["depth_factor"] = 3;
  EXPECT_THAT(Parse(settings).unknownSettings, ElementsAre("depth_factor"));
}

}
