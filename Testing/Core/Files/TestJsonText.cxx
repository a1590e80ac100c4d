#include "Files/JsonText.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

namespace
{

std::string JsonRefusal(const std::string& text)
{
  return MessageOf<FormatError>([&] { ParseJson(text, "file", "the header"); });
}

TEST(JsonText, IsParsed)
{
  const json object = ParseJson(R"({"a": [1, -2.5, null], "b": {"a": "\u00e9"}})", "file");
  EXPECT_EQ(object["a"][0], 1);
  EXPECT_EQ(object["a"][1], -2.5);
  EXPECT_TRUE(object["a"][2].is_null());
  EXPECT_EQ(object["b"]["a"], "\xC3\xA9");
}

TEST(JsonText, ANameTwiceInOneObjectIsRefused)
{
  EXPECT_EQ(JsonRefusal(R"({"a": 1, "b": 2, "a": 1})"), "file: the header has the name 'a' twice.");
  EXPECT_EQ(
    JsonRefusal(R"([{"x": {"b": 1, "\u0062": 2}}])"), "file: the header has the name 'b' twice.");
  EXPECT_NO_THROW(ParseJson(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})", "file"));
}

TEST(JsonText, IsStrict)
{
  for (const char* text : { "", "{", "[1,]", "{} {}", "{a: 1}", "[1] // no", "/* no */ 1", "NaN",
         "\"\xFF\"", "'a'", "[01]" })
  {
    EXPECT_THAT(JsonRefusal(text), StartsWith("file: the header is not JSON: ")) << text;
  }
  EXPECT_THAT(MessageOf<FormatError>([] { ParseJson("{", "file"); }),
    StartsWith("file: the file is not JSON: "));
  EXPECT_EQ(JsonRefusal("version https://git-lfs.github.com/spec/v1\n"),
    "file: the header is not JSON: found the pointer of Git LFS to a file that was not "
    "downloaded.");
}

/// As Python's json writes them, and as release 5 of transformers does.
TEST(JsonText, NumbersThatAreNotFiniteAreTagged)
{
  EXPECT_EQ(WithTaggedNumbers(R"({"a": [0.0, Infinity,-Infinity], "b":NaN})"),
    R"({"a": [0.0, {"__float__": "Infinity"},{"__float__": "-Infinity"}], "b":)"
    R"({"__float__": "NaN"}})");
  for (const char* text :
    { R"({"NaN": "a Infinity", "b\\": "\" -Infinity"})", "", R"("Infinity)", R"("NaN\)" })
  {
    EXPECT_EQ(WithTaggedNumbers(text), text);
  }
}

TEST(JsonText, DeepNestingIsNoTrouble)
{
  EXPECT_THAT(JsonRefusal(std::string(1'000'000, '[')), HasSubstr("is not JSON"));
}

TEST(JsonText, ValuesAreDescribedInShort)
{
  EXPECT_EQ(Describe(json(3)), "3");
  EXPECT_EQ(Describe(json("a\n")), R"("a\n")");
  EXPECT_EQ(Describe(json(nullptr)), "null");
  EXPECT_EQ(Describe(json::array({ 1, 2 })), "array");
  EXPECT_EQ(Describe(json::object()), "object");
  EXPECT_EQ(Describe(json(std::string(1000, 'x'))), "\"" + std::string(79, 'x'));
  EXPECT_EQ(Describe(json("\xFF")), "\"\xEF\xBF\xBD\"");
}

}
