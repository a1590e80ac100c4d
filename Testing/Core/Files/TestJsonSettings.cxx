#include "Files/JsonSettings.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using nlohmann::json;
using namespace testing;

namespace
{

/// Settings of a text, with all that they refer to.
struct Given
{
  explicit Given(const char* text)
    : object(json::parse(text))
  {
  }
  json object;
  std::string source = "config.json";
  Settings settings{ object, source };
};

template<class Call>
std::string Refusal(const char* text, const Call& call)
{
  const Given given(text);
  return MessageOf<ModelError>([&] { call(given.settings); });
}

TEST(JsonSettings, TheFirstKeyThatIsThereCounts)
{
  const Given given(R"({"n_layer": null, "layers": 3, "depth": 4})");
  EXPECT_EQ(given.settings.Size({ "n_layer", "layers", "depth" }), 3);
  EXPECT_EQ(given.settings.Size({ "depth", "layers" }), 4);
  EXPECT_FALSE(given.settings.Has({ "n_layer" }));
  EXPECT_TRUE(given.settings.Has({ "n_layer", "depth" }));
}

TEST(JsonSettings, WhatIsLeftOutHasItsDefault)
{
  const Given given(R"({"null": null})");
  for (const char* key : { "missing", "null" })
  {
    EXPECT_EQ(given.settings.Size({ key }, 7), 7);
    EXPECT_EQ(given.settings.Number({ key }, 0.5), 0.5);
    EXPECT_THAT(given.settings.Numbers({ key }, 2, 0.5), ElementsAre(0.5, 0.5));
    EXPECT_TRUE(given.settings.Flag({ key }, true));
    EXPECT_EQ(given.settings.Text({ key }, "gelu"), "gelu");
    EXPECT_THAT(given.settings.Extent({ key }, 224), Pair(224, 224));
    EXPECT_FALSE(given.settings.IsNested({ key }));
    EXPECT_FALSE(given.settings.Nested({ key }));
  }
}

TEST(JsonSettings, SizesArePositiveIntegersOf31Bits)
{
  EXPECT_EQ(Given(R"({"n": 2147483647})").settings.Size({ "n" }), 2147483647);
  const auto size = [](const Settings& settings) { settings.Size({ "n" }); };
  for (const char* text : { R"({"n": 0})", R"({"n": -1})", R"({"n": 2147483648})", R"({"n": 1.5})",
         R"({"n": "1"})", R"({"n": true})", R"({"n": [1]})", R"({"n": 18446744073709551616})" })
  {
    EXPECT_THAT(Refusal(text, size), HasSubstr("'n' to be an integer from 1 to 2147483647, found"));
  }
  EXPECT_THAT(Refusal("{}", size), StartsWith("config.json: 'n' is missing"));
}

TEST(JsonSettings, NumbersAreFinite)
{
  EXPECT_EQ(Given(R"({"x": 2})").settings.Number({ "x" }, 1), 2);
  EXPECT_EQ(Given(R"({"x": 0})").settings.Number({ "x" }, 1, true), 0);
  const auto number = [](const Settings& settings) { settings.Number({ "x" }, 1); };
  EXPECT_THAT(Refusal(R"({"x": 0})", number), HasSubstr("a positive number, found 0"));
  EXPECT_THAT(Refusal(R"({"x": "1"})", number), HasSubstr("a positive number, found \"1\""));
  EXPECT_THAT(Refusal(R"({"x": -1})", [](const Settings& s) { s.Number({ "x" }, 1, true); }),
    HasSubstr("not negative, found -1"));
}

TEST(JsonSettings, ListsMayBeGivenAsOneNumber)
{
  EXPECT_THAT(
    Given(R"({"x": 0.25})").settings.Numbers({ "x" }, 3, 1), ElementsAre(0.25, 0.25, 0.25));
  EXPECT_THAT(Given(R"({"x": [1, -2]})").settings.Numbers({ "x" }, 2, 1), ElementsAre(1, -2));
  for (const char* text : { R"({"x": [1]})", R"({"x": [1, 2, 3]})", R"({"x": [1, "2"]})",
         R"({"x": []})", R"({"x": "1"})", R"({"x": {"a": 1, "b": 2}})" })
  {
    EXPECT_THAT(Refusal(text, [](const Settings& s) { s.Numbers({ "x" }, 2, 1); }),
      HasSubstr("'x' to be a number or a list of 2, found "))
      << text;
  }
}

TEST(JsonSettings, ExtentsAreHeightAndWidth)
{
  EXPECT_THAT(Given(R"({"x": 8})").settings.Extent({ "x" }, 1), Pair(8, 8));
  EXPECT_THAT(Given(R"({"x": [8, 9]})").settings.Extent({ "x" }, 1), Pair(8, 9));
  const auto extent = [](const Settings& settings) { settings.Extent({ "x" }, 1); };
  EXPECT_THAT(Refusal(R"({"x": [8, 9, 3]})", extent), HasSubstr("an integer or two, found array"));
  EXPECT_THAT(Refusal(R"({"x": [8, 0]})", extent), HasSubstr("from 1 to 2147483647, found 0"));
}

TEST(JsonSettings, OtherTypesAreRefused)
{
  EXPECT_THAT(Refusal(R"({"x": 1})", [](const Settings& s) { s.Flag({ "x" }, true); }),
    HasSubstr("'x' to be true or false, found 1"));
  EXPECT_THAT(Refusal(R"({"x": 1})", [](const Settings& s) { s.Text({ "x" }, ""); }),
    HasSubstr("'x' to be a string, found 1"));
  EXPECT_THAT(Refusal(R"({"x": 1})", [](const Settings& s) { s.Nested({ "x" }); }),
    HasSubstr("'x' to be an object, found 1"));
}

TEST(JsonSettings, NestedObjectsAreSettings)
{
  const Given given(R"({"rope": {"factor": 8}, "list": [1]})");
  EXPECT_TRUE(given.settings.IsNested({ "rope" }));
  EXPECT_FALSE(given.settings.IsNested({ "list" }));
  EXPECT_EQ(given.settings.Nested({ "rope" })->Number({ "factor" }, 1), 8);
  EXPECT_EQ(Refusal(R"({"rope": {"factor": -8}})",
              [](const Settings& s) { s.Nested({ "rope" })->Number({ "factor" }, 1); }),
    "config.json: expected 'factor' to be a positive number, found -8.");
}

TEST(JsonSettings, WhatWasNotReadIsKnown)
{
  const Given given(R"({"a": 1, "b": 2, "c": {"d": 3, "e": {"f": 4}}, "g": {"h": 5}, "i": 6,
    "j": null, "k": [1], "l": {"m": 7}})");
  const auto unread = [&]
  {
    std::vector<std::string> names;
    for (const Settings::Unread& one : given.settings.FindUnread())
    {
      names.push_back(one.place + one.key);
    }
    return names;
  };
  EXPECT_THAT(unread(), ElementsAre("a", "b", "c", "g", "i", "j", "k", "l"));
  given.settings.Size({ "b", "a" }); // also the older name
  given.settings.Ignore({ "i", "l" });
  given.settings.IsNull("j");
  given.settings.RefuseVariants({ "missing", "j" });
  given.settings.Value({ "k" });
  EXPECT_THAT(unread(), ElementsAre("c", "g"));
  const Settings nested = *given.settings.Nested({ "c" });
  EXPECT_THAT(unread(), ElementsAre("c.d", "c.e", "g"));
  nested.Size({ "d" });
  const Settings copy = nested.NestedOrEmpty({ "e" });
  EXPECT_THAT(unread(), ElementsAre("c.e.f", "g"));
  copy.Size({ "f" });
  given.settings.IsNested({ "g" }); // read as a whole
  EXPECT_THAT(unread(), IsEmpty());
  EXPECT_EQ(given.settings.NestedOrEmpty({ "none" }).Size({ "x" }, 8), 8);
  const Given part(R"({"a": 1, "b": {"c": 2, "d": 3}, "e": {"f": 4}})");
  part.settings.Nested({ "b" })->Size({ "c" });
  part.settings.IgnoreAll();
  ASSERT_EQ(part.settings.FindUnread().size(), 1U);
  EXPECT_EQ(part.settings.FindUnread()[0].key, "d");
}

TEST(JsonSettings, ChoicesHaveNames)
{
  constexpr std::array<Named<int>, 2> choices = { { { "relu", 1 }, { "gelu", 2 } } };
  EXPECT_EQ(NamesOf(choices), "relu, gelu");
  EXPECT_EQ(Given(R"({"act": "gelu"})").settings.Choice({ "act" }, "relu", choices), 2);
  EXPECT_EQ(Given("{}").settings.Choice({ "act" }, "relu", choices), 1);
  EXPECT_EQ(
    Refusal(R"({"act": "sin"})", [&](const Settings& s) { s.Choice({ "act" }, "relu", choices); }),
    "config.json: unknown act 'sin', expected one of relu, gelu.");
}

TEST(JsonSettings, VariantsMustBeOff)
{
  for (const char* off : { "null", "false", "0", "-1", "0.0", "\"\"", "\"none\"", "[]", "{}" })
  {
    const Given given((R"({"window": )" + std::string(off) + "}").c_str());
    EXPECT_NO_THROW(given.settings.RefuseVariants({ "other", "window" })) << off;
  }
  for (const char* on : { "true", "1", "0.5", "\"local\"", "[0]", R"({"a": null})" })
  {
    const std::string text = R"({"window": )" + std::string(on) + "}";
    EXPECT_THAT(
      Refusal(text.c_str(), [](const Settings& s) { s.RefuseVariants({ "window" }, "a mask"); }),
      testing::AllOf(testing::StartsWith("config.json: 'window' is "),
        testing::EndsWith(", a mask that is not known; expected it to be off.")))
      << on;
  }
}

}
