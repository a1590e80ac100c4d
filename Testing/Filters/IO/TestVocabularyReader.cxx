#include "Matchers.h"
#include "vtkVocabularyReader.h"

#include "Core/GgufBytes.h"
#include "Files/MappedFile.h"
#include "Tables.h"
#include "TemporaryDirectory.h"

#include <sstream>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The reader of a file, with its errors.
class FileVocabulary : public Observed<vtkVocabularyReader>
{
public:
  explicit FileVocabulary(const std::filesystem::path& path)
  {
    this->Get()->SetFileName(path.c_str());
  }

  vtkTable* Read() { return Updated<vtkTable>(this->Get()); }

  std::vector<std::string> Tokens() { return Texts(this->Read()->GetRowData(), "Token"); }
};

/// The vocabulary of TinyGguf, without its model.
std::string VocabularyAlone()
{
  GgufBytes file;
  file.AddText("general.architecture", "llama");
  file.AddText("tokenizer.ggml.model", "gpt2");
  file.AddTexts("tokenizer.ggml.tokens", { "a", "b", "\xC4\xA0ho", "ab", "<|endoftext|>" });
  file.AddTexts("tokenizer.ggml.merges", { "a b" });
  return file.File();
}

bool CanRead(const std::filesystem::path& path)
{
  const vtkNew<vtkVocabularyReader> vocabularies;
  const vtkNew<vtkTransformerReader> models;
  const bool can = vocabularies->CanReadFile(path.c_str()) != 0;
  EXPECT_NE(can, models->CanReadFile(path.c_str()) != 0) << "one of both opens " << path;
  return can;
}

TEST(VocabularyReader, ShowsTheTokensOfAGgufFileWithoutAModel)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "vocabulary.gguf", VocabularyAlone());
  FileVocabulary reader(folder / "vocabulary.gguf");
  EXPECT_THAT(reader.Tokens(), ElementsAre("a", "b", " ho", "ab", "<|endoftext|>"));
  EXPECT_THAT(Values(reader.Read()->GetRowData(), "TokenId"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Texts(reader.Read()->GetFieldData(), "Tokenizer"), ElementsAre("byte-level BPE"));
  EXPECT_THAT(reader.TakeErrors(), IsEmpty());

  WriteBytes(folder / "model.gguf", TinyGguf().File());
  EXPECT_THAT(FileVocabulary(folder / "model.gguf").Tokens(),
    ElementsAre("a", "b", "c", "ab", "<|endoftext|>"));
}

TEST(VocabularyReader, ShowsTheTokensOfATokenizer)
{
  const std::filesystem::path original =
    std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / "tokenizers" / "bert-vocab.txt";
  const TemporaryDirectory folder;
  std::filesystem::copy_file(original, folder / "vocab.txt");
  std::vector<std::string> lines;
  std::istringstream text(ReadFile(original));
  for (std::string line; std::getline(text, line);)
  {
    lines.push_back(line);
  }
  EXPECT_EQ(FileVocabulary(folder / "vocab.txt").Tokens(), lines);
}

TEST(VocabularyReader, OpensWhatIsNoModel)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "vocabulary.gguf", VocabularyAlone());
  WriteBytes(folder / "model.gguf", TinyGguf().File());
  WriteBytes(folder / "damaged.gguf", TinyGguf().File().substr(0, 300));
  EXPECT_TRUE(CanRead(folder / "vocabulary.gguf"));
  EXPECT_TRUE(CanRead(folder / "tokenizer.json"));
  EXPECT_TRUE(CanRead(folder / "tokenizer.model"));
  EXPECT_FALSE(CanRead(folder / "model.gguf"));
  EXPECT_FALSE(CanRead(folder / "damaged.gguf"));
  EXPECT_FALSE(CanRead(folder / "config.json"));
}

TEST(VocabularyReader, ReadsACorrectedFileAtTheNextUpdate)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "tokens.gguf", "GGUF");
  FileVocabulary reader(folder / "tokens.gguf");
  EXPECT_THAT(reader.Error(), HasSubstr("tokens.gguf"));
  EXPECT_EQ(reader.Read()->GetNumberOfRows(), 0);
  EXPECT_THAT(reader.TakeErrors(), IsEmpty()) << "the file is the same";
  WriteBytes(folder / "tokens.gguf", VocabularyAlone());
  EXPECT_THAT(reader.Tokens(), ElementsAre("a", "b", " ho", "ab", "<|endoftext|>"));
}

TEST(VocabularyReader, RefusesBadFiles)
{
  const TemporaryDirectory folder;
  const auto expect = [](const std::filesystem::path& path, const std::string& message)
  {
    FileVocabulary reader(path);
    EXPECT_THAT(reader.Error(), HasSubstr(message));
  };
  expect(folder / "missing.gguf", "missing.gguf");
  WriteBytes(folder / "short.gguf", VocabularyAlone().substr(0, 100));
  expect(folder / "short.gguf", "short.gguf");
  GgufBytes none;
  none.AddText("general.architecture", "llama");
  WriteBytes(folder / "none.gguf", none.File());
  expect(folder / "none.gguf", "tokenizer.ggml.model");
  WriteBytes(folder / "tokenizer.json", "{");
  expect(folder / "tokenizer.json", "tokenizer.json");
}

}
