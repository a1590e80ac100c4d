#include "vtkActivationPatching.h"

#include "Core/ReferenceTransformer.h"
#include "Matchers.h"
#include "Run/ActivationPatching.h"
#include "Tables.h"
#include "Transformers.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr const char* Prompt = "1 2 3 4 5 6";
constexpr const char* Other = "5 9 3 2 7 6";

/// A map of a model of the oracle, between token ids.
class Patching : public Warned<vtkActivationPatching>
{
public:
  TransformerReader Model;

  Patching()
  {
    this->Model->SetFileName((TransformerOracle::Folder("gpt2") / "config.json").c_str());
    this->Get()->SetInputConnection(this->Model->GetOutputPort());
    this->Get()->SetPrompt(Prompt);
    this->Get()->SetPatchFrom(Other);
    this->Get()->SetTarget("#3");
    this->Get()->SetAgainst("#8");
  }

  void ExpectError(const std::string& message) { EXPECT_THAT(this->Error(), HasSubstr(message)); }
};

/// The logit difference of tokens 3 and 8 in a reference run, in which rows of a matrix come from
/// the other run.
double Reference(const std::string& place, std::int64_t layer, std::int64_t position)
{
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  const ReferenceTransformer reference(model);
  ReferenceTransformer::Matrix other;
  reference.Logits({ 5, 9, 3, 2, 7, 6 },
    [&](const std::string& where, std::int64_t l, const ReferenceTransformer::Matrix& values)
    { other = where == place && l == layer ? values : other; });
  const ReferenceTransformer::Matrix logits = reference.Logits({ 1, 2, 3, 4, 5, 6 },
    [&](const std::string& where, std::int64_t l, ReferenceTransformer::Matrix& values)
    {
      if (where == place && l == layer)
      {
        values.row(position) = other.row(position);
      }
    });
  return logits(5, 3) - logits(5, 8);
}

TEST(ActivationPatching, HasARowPerHead)
{
  Patching patching;
  EXPECT_EQ(patching.Table()->GetNumberOfRows(), 2 * 4); // layers, heads
  EXPECT_THAT(Names(patching.Table()->GetRowData()),
    ElementsAre("Effect", "Head", "Layer", "Logit Difference"));
  EXPECT_THAT(patching.FieldTexts("Target"), ElementsAre("3"));
  EXPECT_THAT(patching.FieldTexts("Against"), ElementsAre("8"));
  const double prompt = patching.Field("Prompt Logit Difference")[0];
  const double source = patching.Field("Source Logit Difference")[0];
  const std::vector<double> effects = patching.Column("Effect");
  const std::vector<double> differences = patching.Column("Logit Difference");
  for (std::size_t i = 0; i < effects.size(); ++i)
  {
    EXPECT_NEAR(effects[i], (differences[i] - prompt) / (source - prompt), 1e-12);
  }
}

TEST(ActivationPatching, HasARowPerPosition)
{
  Patching patching;
  patching->SetSite(vtkActivationPatching::RESIDUAL);
  EXPECT_THAT(Names(patching.Table()->GetRowData()),
    ElementsAre("Effect", "Layer", "Logit Difference", "Position", "Token"));
  const std::vector<double> differences = patching.Column("Logit Difference");
  ASSERT_THAT(differences, SizeIs(12));
  for (const std::size_t row : { std::size_t{ 0 }, std::size_t{ 4 }, std::size_t{ 7 } })
  {
    const auto i = static_cast<std::int64_t>(row);
    EXPECT_NEAR(differences[row], Reference("residual", i / 6, i % 6), 1e-5) << row;
  }
  EXPECT_EQ(patching.Column("Effect")[2], 0) << "the same token, and nothing before it changes";
  patching->SetSite(vtkActivationPatching::MLP_OUTPUT);
  EXPECT_NEAR(patching.Column("Logit Difference")[10], Reference("hidden", 1, 4), 1e-5);
  patching->SetSite(vtkActivationPatching::ATTENTION_OUTPUT);
  EXPECT_NEAR(patching.Column("Logit Difference")[5], Reference("mixed", 0, 5), 1e-5);
}

TEST(ActivationPatching, DrawsLayersDownward)
{
  Patching patching;
  patching->SetSite(vtkActivationPatching::RESIDUAL);
  vtkImageData* image = patching.Image(1);
  EXPECT_THAT(ExtentOf(image), ElementsAre(0, 5, 0, 1, 0, 0));
  EXPECT_THAT(OriginOf(image), ElementsAre(0, -1, 0));
  EXPECT_STREQ(image->GetPointData()->GetScalars()->GetName(), "Effect");
  EXPECT_THAT(Values(image->GetPointData(), "Layer"),
    ElementsAre(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0)); // from the bottom
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("0", "1"));
  EXPECT_THAT(
    Texts(image->GetFieldData(), "Key Token"), ElementsAre("1/5", "2/9", "3", "4/2", "5/7", "6"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Title"), ElementsAre("Position"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Title"), ElementsAre("Layer"));
  const std::vector<double> column = patching.Column("Effect");
  EXPECT_EQ(Values(patching.Image(1)->GetPointData(), "Effect")[7], column[1]);
  patching->SetSite(vtkActivationPatching::HEAD_OUTPUT);
  EXPECT_THAT(Texts(patching.Image(1)->GetFieldData(), "Key Title"), ElementsAre("Head"));
}

TEST(ActivationPatching, AblatesWithoutASource)
{
  Patching patching;
  patching->SetPatchFrom(nullptr);
  EXPECT_EQ(patching.Table()->GetNumberOfRows(), 0);
  for (const int mode : { vtkActivationPatching::ZERO, vtkActivationPatching::MEAN_OVER_POSITIONS })
  {
    patching->SetMode(mode);
    const double prompt = patching.Field("Prompt Logit Difference")[0];
    EXPECT_FALSE(patching.Table()->GetFieldData()->HasArray("Source Logit Difference"));
    const std::vector<double> effects = patching.Column("Effect");
    const std::vector<double> differences = patching.Column("Logit Difference");
    for (std::size_t i = 0; i < effects.size(); ++i)
    {
      EXPECT_NEAR(effects[i], differences[i] - prompt, 1e-12);
    }
    EXPECT_THAT(patching.TakeErrors(), IsEmpty());
  }
}

TEST(ActivationPatching, AblatesToTheMeanOverReferencePrompts)
{
  Patching patching;
  patching->SetMode(vtkActivationPatching::MEAN_OVER_PROMPTS);
  EXPECT_EQ(patching.Table()->GetNumberOfRows(), 0) << "there are none";
  EXPECT_THAT(patching.TakeErrors(), IsEmpty());
  patching->SetReferencePrompts("4 8 2\n7 7 1 9 3\n");
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  PatchingOptions options;
  options.by = Replacement::MeanOverPrompts;
  options.target = 3;
  options.against = 8;
  options.reference.tokens = { { 4, 8, 2 }, { 7, 7, 1, 9, 3 } };
  TransformerInput prompt;
  prompt.tokens = { { 1, 2, 3, 4, 5, 6 } };
  EXPECT_EQ(patching.Column("Logit Difference"), // TestActivationPatching has an independent run
    MapPatching(model, prompt, {}, options).difference);
  patching->SetReferencePrompts("4 8 2\n7 99999");
  patching.ExpectError("ReferencePrompts: sequence 1, position 1: expected a token id from 0 to");
}

/// A model of the oracle with a tokenizer of its own: a token per letter and per line break.
TEST(ActivationPatching, PromptsMayHaveLineBreaks)
{
  const TemporaryDirectory folder;
  for (const char* name : { "config.json", "model.safetensors" })
  {
    std::filesystem::create_symlink(TransformerOracle::Folder("gpt2") / name, folder / name);
  }
  WriteBytes(folder / "vocab.json", R"({"a": 0, "b": 1, "\u010a": 2})");
  WriteBytes(folder / "merges.txt", "#version: 0.2\n");
  Patching patching;
  vtkActivationPatching* filter = patching.Get();
  patching.Model->SetFileName((folder / "config.json").c_str());
  filter->SetSite(vtkActivationPatching::RESIDUAL);
  filter->SetPrompt("a\nb");
  filter->SetPatchFrom("b\na");
  patching.ExpectError("Prompt: expected one prompt, found 2 lines; set PromptFormat to OneText if "
                       "it has line breaks.");
  filter->SetPromptFormat(vtkActivationPatching::ONE_TEXT);
  const std::vector<double> effects = patching.Column("Effect");
  EXPECT_THAT(effects, SizeIs(6)); // two layers of three tokens
  filter->SetPromptFormat(vtkActivationPatching::JSON_LINES);
  filter->SetPrompt(R"("a\nb")");
  filter->SetPatchFrom(R"({"prompt": "b\na"})");
  EXPECT_EQ(patching.Column("Effect"), effects);
  filter->SetPatchFrom(R"({"prompt": "b\na", "id": 1})");
  patching.ExpectError("PatchFrom: only the text of each line is read, and not its \"id\".");
  filter->SetMode(vtkActivationPatching::MEAN_OVER_PROMPTS);
  filter->SetReferencePrompts(R"("a\n\nb")");
  EXPECT_THAT(patching.Column("Effect"), SizeIs(6));
  filter->SetReferencePrompts("\"a\"\nb");
  patching.ExpectError("ReferencePrompts, line 2: the line is not JSON");
}

TEST(ActivationPatching, StopsWhenAsked)
{
  Patching patching;
  {
    const Canceler canceler(patching.Get());
    EXPECT_EQ(patching.Table()->GetNumberOfRows(), 0);
  }
  EXPECT_GT(patching.Table()->GetNumberOfRows(), 0); // though nothing has changed
}

/// TestHostileInput.py has what else may be wrong.
TEST(ActivationPatching, RefusesBadInput)
{
  Patching patching;
  patching->SetPatchFrom(Prompt);
  patching.ExpectError("found the same difference");
  patching->SetPatchFrom(Other);
  patching->SetAgainst("1 2");
  patching.ExpectError("Against: ");
}

}
