#include "Base/Error.h"
#include "Corpus/CorpusText.h"
#include "ErrorMessage.h"
#include "TemporaryDirectory.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
namespace fs = std::filesystem;

namespace
{

struct CorpusTextTest : testing::Test
{
  TemporaryDirectory folder;
  std::shared_ptr<const OpenTransformer> model =
    OpenTransformer::Open(fs::path(ATLAS_DATA_DIR) / "models" / "language-2", "");

  std::string Write(const std::string& name, const std::string& content) const
  {
    const fs::path path = this->folder.Path() / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  /// A .npy file of little-endian integers.
  std::string WriteIds(const std::string& shape, const std::vector<std::int64_t>& ids) const
  {
    std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize(117, ' ');
    header += '\n';
    std::string content("\x93NUMPY\x01\x00", 8);
    content += static_cast<char>(header.size());
    content += '\0';
    content += header;
    content.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int64_t));
    return this->Write("ids.npy", content);
  }

  std::vector<CorpusWindow> Read(
    const std::vector<std::string>& files, const CorpusTextOptions& options = {}) const
  {
    CorpusText text(*this->model, files, options);
    std::vector<CorpusWindow> windows;
    while (auto window = text.Next())
    {
      windows.push_back(*window);
    }
    EXPECT_EQ(text.Done(), 1);
    return windows;
  }

  std::string TextOf(const CorpusWindow& window) const
  {
    return this->model->GetTokenizer().Decode(window.tokens);
  }

  std::vector<std::string> TextsOf(const std::vector<CorpusWindow>& windows) const
  {
    std::vector<std::string> texts;
    for (const CorpusWindow& window : windows)
    {
      texts.push_back(this->TextOf(window));
    }
    return texts;
  }
};

}

TEST_F(CorpusTextTest, SplitsTextIntoDocuments)
{
  const std::string file = this->Write("a.txt", "one\r\ntwo\n\n \nthree\nfour");
  EXPECT_THAT(this->TextsOf(this->Read({ file })), ElementsAre("one", "two", "three", "four"));
  CorpusTextOptions options;
  options.split = DocumentSplit::Paragraphs;
  EXPECT_THAT(
    this->TextsOf(this->Read({ file }, options)), ElementsAre("one\r\ntwo\n", "three\nfour"));
  options.split = DocumentSplit::Files;
  EXPECT_THAT(this->TextsOf(this->Read({ file, file }, options)),
    ElementsAre("one\r\ntwo\n\n \nthree\nfour", "one\r\ntwo\n\n \nthree\nfour"));
}

TEST_F(CorpusTextTest, ReadsJsonAndIds)
{
  const std::string json = this->Write("a.jsonl",
    "{\"text\": \"one\\ntwo\"}\n\n{\"meta\": 1, \"tokens\": [3, 4]}\n{\"input_ids\": [5]}");
  const std::vector<CorpusWindow> windows = this->Read({ json });
  ASSERT_EQ(windows.size(), 3);
  EXPECT_EQ(this->TextOf(windows[0]), "one\ntwo");
  EXPECT_THAT(windows[1].tokens, ElementsAre(3, 4));
  EXPECT_THAT(windows[2].tokens, ElementsAre(5));
  EXPECT_EQ(windows[2].document, 2);
  const std::vector<CorpusWindow> rows = this->Read({ this->WriteIds("2, 2", { 1, 2, 3, 4 }) });
  ASSERT_EQ(rows.size(), 2);
  EXPECT_THAT(rows[1].tokens, ElementsAre(3, 4));
  EXPECT_EQ(this->Read({ this->WriteIds("3,", { 1, 2, 3 }) }).size(), 1);
}

TEST_F(CorpusTextTest, WindowsOverlap)
{
  CorpusTextOptions options;
  options.window = 5;
  options.overlap = 2;
  const std::vector<CorpusWindow> windows =
    this->Read({ this->WriteIds("10,", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }) }, options);
  ASSERT_EQ(windows.size(), 3);
  EXPECT_THAT(windows[0].tokens, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(windows[1].tokens, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(windows[2].tokens, ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(windows[0].firstQuery, 0);
  EXPECT_EQ(windows[1].firstQuery, 2);
  EXPECT_EQ(windows[2].begin, 6);
}

TEST_F(CorpusTextTest, GoesOnAtAPosition)
{
  const std::string file = this->Write("a.txt", "In the beginning God created\nthe heaven\n");
  CorpusTextOptions options;
  options.window = 3;
  const std::vector<CorpusWindow> all = this->Read({ file, file }, options);
  ASSERT_GT(all.size(), 6);
  for (std::size_t first = 0; first <= all.size(); ++first)
  {
    CorpusText text(*this->model, { file, file }, options);
    for (std::size_t i = 0; i < first; ++i)
    {
      text.Next();
    }
    CorpusText rest(*this->model, { file, file }, options, text.Position());
    for (std::size_t i = first; i < all.size(); ++i)
    {
      const auto window = rest.Next();
      ASSERT_TRUE(window);
      EXPECT_EQ(window->tokens, all[i].tokens);
      EXPECT_EQ(window->document, all[i].document);
      EXPECT_EQ(window->begin, all[i].begin);
    }
    EXPECT_FALSE(rest.Next());
  }
}

/// The tokenizer says what is around each window of a text: this one has no token for "a", nor for
/// any letter.
TEST_F(CorpusTextTest, SpecialTokensAreThoseOfTheTokenizer)
{
  ModelInMemory digits;
  digits.config = this->model->GetModel().GetConfig();
  Tensors tensors;
  for (const auto& [name, view] : this->model->GetModel().GetFiles().GetTensors())
  {
    tensors[name] = { view.dtype, view.shape, { view.data, view.data + view.Bytes() } };
  }
  digits.weights = std::make_shared<const Tensors>(std::move(tensors));
  const std::string tokenizer = R"({"added_tokens": [], "normalizer": {"type": "Replace",
    "pattern": {"Regex": "[a-z]+"}, "content": ""}, "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]},
        "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}},
    "decoder": null, "model": {"type": "WordLevel", "unk_token": "<s>",
      "vocab": {"0": 0, "<s>": 1, "</s>": 2, "7": 7}}})";
  digits.files = std::make_shared<const std::map<std::string, std::string>>(
    std::map<std::string, std::string>{ { "tokenizer.json", tokenizer } });
  const auto opened = OpenTransformer::Keep("training:test-corpus-digits", digits);
  CorpusTextOptions options;
  options.window = 4;
  CorpusText text(*opened, { this->Write("a.txt", "7 0 7") }, options);
  const CorpusWindow first = text.Next().value();
  EXPECT_THAT(first.tokens, ElementsAre(1, 7, 0, 2));
  EXPECT_EQ(first.special, 1);
  EXPECT_EQ(first.count, 2); // without those two
  EXPECT_THAT(text.Next()->tokens, ElementsAre(1, 7, 2));
}

/// A run can stop behind a window, which is longer than what the next one repeats.
TEST_F(CorpusTextTest, GoesOnWhereAWindowEndedAlone)
{
  CorpusTextOptions options;
  options.window = 5;
  options.overlap = 2;
  const std::string file = this->WriteIds("10,", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 });
  for (const std::int64_t token : { -1, 1, 2 })
  {
    CorpusPosition position;
    position.token = token;
    EXPECT_THAT(
      MessageOf<OptionError>([&] { CorpusText(*this->model, { file }, options, position); }),
      HasSubstr("token " + std::to_string(token) + " of document 0 with an overlap of 2"));
  }
  CorpusPosition position;
  position.token = 3;
  CorpusText text(*this->model, { file }, options, position);
  EXPECT_THAT(text.Next()->tokens, ElementsAre(1, 2, 3, 4, 5));
}

/// Parts of long texts end at lines, words or characters, and leave nothing out.
TEST(CorpusParts, EndAtLinesWordsOrCharacters)
{
  const auto partsOf = [](const std::string& text, std::size_t most)
  {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < text.size();)
    {
      const std::size_t end = EndOfPart(text, begin, text.size(), most);
      parts.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    return parts;
  };
  EXPECT_THAT(partsOf("one\ntwo\nthree", 99), ElementsAre("one\ntwo\nthree"));
  EXPECT_THAT(partsOf("one\ntwo\nthree", 9), ElementsAre("one\ntwo\n", "three"));
  EXPECT_THAT(partsOf("one two three", 9), ElementsAre("one two", " three"));
  EXPECT_THAT(partsOf("abcdefghij", 4), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(partsOf("\u20ac\u20ac\u20ac", 5), ElementsAre("\u20ac", "\u20ac", "\u20ac"));
  EXPECT_EQ(EndOfPart("one two three", 4, 9, 9), 9); // of a text that ends before
}

TEST_F(CorpusTextTest, RefusesWhatIsNoText)
{
  struct Bad
  {
    const char* name;
    std::string content;
    const char* message;
  };
  const std::vector<Bad> texts = { { "a.txt", "one\nt\xffwo\n", "a.txt, line 2: " },
    { "a.txt", std::string("\0\1", 2), "zero byte" },
    { "a.jsonl", "{\"text\": 3}", "a.jsonl, line 1: expected a text as" },
    { "a.jsonl", "[1]", "expected a JSON object" },
    { "a.jsonl", "{\"text\": \"x\"}\n{\"te", "a.jsonl, line 2: " },
    { "a.jsonl", "{\"tokens\": [1000000]}", "found 1000000" } };
  const auto refusal = [&](const std::string& file, const CorpusTextOptions& options = {})
  { return MessageOf<Error>([&] { this->Read({ file }, options); }); };
  for (const Bad& bad : texts)
  {
    EXPECT_THAT(refusal(this->Write(bad.name, bad.content)), HasSubstr(bad.message));
  }
  EXPECT_THAT(
    refusal(this->WriteIds("1, 1, 1", { 1 })), HasSubstr("expected integers [documents, tokens]"));
  EXPECT_THAT(refusal(this->WriteIds("1,", { -1 })), HasSubstr("row 0: expected token ids"));
  EXPECT_THAT(MessageOf<OptionError>([&] { this->Read({}); }), HasSubstr("at least one file"));
  EXPECT_THAT(
    MessageOf<FileError>([&] { this->Read({ "/no/such.txt" }); }), HasSubstr("/no/such.txt"));
  CorpusTextOptions options;
  options.window = 1;
  EXPECT_THAT(refusal("x", options), HasSubstr("Window"));
  options.window = 8;
  options.overlap = 4;
  EXPECT_THAT(refusal(this->Write("a.txt", "a"), options), HasSubstr("Overlap: expected 0 to 3"));
  EXPECT_TRUE(this->Read({ this->Write("a.txt", "") }).empty());
}

TEST(CorpusWindow, DecodersBesideEncodersAreRefused)
{
  TransformerConfig config;
  config.architecture = "t5";
  config.encoder = std::make_shared<const TransformerConfig>();
  EXPECT_THAT(MessageOf<OptionError>([&] { WindowOf({}, config); }), HasSubstr("t5"));
  config.encoder = nullptr;
  config.architecture = "llava";
  config.vision = std::make_shared<const VisionConfig>();
  EXPECT_THAT(MessageOf<OptionError>([&] { WindowOf({}, config); }), HasSubstr("llava"));
}
