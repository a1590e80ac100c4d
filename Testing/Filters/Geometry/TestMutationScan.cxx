#include "vtkBindTokens.h"
#include "vtkMutationScan.h"

#include "Core/TransformerOracle.h"
#include "Matchers.h"
#include "ProteinModel.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

const std::string AminoAcids = "ACDEFGHIKLMNPQRSTVWY";

class Mutations : public Warned<vtkMutationScan>
{
public:
  ProteinModel Model;
  std::vector<std::string> Vocabulary;

  Mutations()
  {
    this->Get()->SetInputConnection(this->Model.Reader->GetOutputPort());
    this->Get()->SetProtein(this->Model.Letters.c_str());
    std::istringstream words(EsmVocabulary);
    for (std::string word; words >> word;)
    {
      this->Vocabulary.push_back(word);
    }
  }

  /// The logarithm of the probability of a letter at a masked place, by the original.
  double Masked(std::size_t place, char letter) const
  {
    const auto found =
      std::find(this->Vocabulary.begin(), this->Vocabulary.end(), std::string(1, letter));
    return this->All[place * this->Vocabulary.size() +
                     static_cast<std::size_t>(found - this->Vocabulary.begin())];
  }

private:
  const std::vector<double> All = this->Model.Expected.Values("0.masked");
};

TEST(MutationScan, HasTheEffectsOfTheOriginal)
{
  Mutations scan;
  const std::string& letters = scan.Model.Letters;
  vtkTable* table = scan.Table();
  EXPECT_THAT(ColumnNames(table),
    ElementsAre("Position", "Token", "Amino Acid", "Mutation Effect", "Log Probability"));
  ASSERT_EQ(table->GetNumberOfRows(), static_cast<vtkIdType>(letters.size() * 20));
  const std::vector<double> effects = Column(table, "Mutation Effect");
  for (std::size_t i = 0; i < effects.size(); ++i)
  {
    const std::size_t place = i / 20;
    EXPECT_NEAR(
      effects[i], scan.Masked(place, AminoAcids[i % 20]) - scan.Masked(place, letters[place]), 4e-5)
      << i;
    EXPECT_EQ(Column(table, "Position")[i], static_cast<double>(place + 1)); // behind <cls>
    EXPECT_EQ(Texts(table->GetRowData(), "Amino Acid")[i][0], AminoAcids[i % 20]);
  }
  vtkImageData* image = scan.Image(1);
  const int last = static_cast<int>(letters.size()) - 1;
  EXPECT_THAT(ExtentOf(image), ElementsAre(0, last, 0, 19, 0, 0));
  EXPECT_STREQ(image->GetPointData()->GetScalars()->GetName(), "Mutation Effect");
  const std::vector<double> shown = Values(image->GetPointData(), "Mutation Effect");
  for (std::size_t i = 0; i < shown.size(); ++i)
  {
    const std::size_t place = i % letters.size();
    const std::size_t a = 19 - i / letters.size(); // bottom: Y
    if (AminoAcids[a] == letters[place])
    {
      EXPECT_EQ(effects[place * 20 + a], 0) << i;
      EXPECT_TRUE(std::isnan(shown[i])) << i;
    }
    else
    {
      EXPECT_EQ(shown[i], effects[place * 20 + a]) << i;
    }
  }
  EXPECT_EQ(Texts(image->GetFieldData(), "Signs")[0], "Gray: the residue's own amino acid.");
  EXPECT_EQ(Texts(image->GetFieldData(), "Query Token")[19], "Y");
  EXPECT_EQ(Texts(image->GetFieldData(), "Key Token")[2], letters.substr(2, 1));
}

TEST(MutationScan, HasTheMeanOfEachPlace)
{
  Mutations scan;
  const std::string& letters = scan.Model.Letters;
  const std::vector<double> means = Column(scan.Table(2), "Mean Effect");
  ASSERT_EQ(means.size(), letters.size());
  for (std::size_t place = 0; place < letters.size(); ++place)
  {
    double sum = 0;
    int count = 0;
    for (const char letter : AminoAcids)
    {
      sum += scan.Masked(place, letter) - scan.Masked(place, letters[place]);
      count += letter == letters[place] ? 0 : 1;
    }
    EXPECT_NEAR(means[place], sum / count, 4e-5) << place;
  }
}

TEST(MutationScan, ColorsTheStructure)
{
  Mutations scan;
  const std::filesystem::path path = scan.Model.Folder / "protein.pdb";
  WritePdb(path, scan.Model.Letters);
  Observed<vtkMmcifReader> reader;
  reader->SetFileName(path.c_str());
  Warned<vtkBindTokens> bound;
  bound->SetInputConnection(0, reader->GetOutputPort());
  bound->SetRecordingConnection(scan.Model.Recorder->GetOutputPort());
  bound->SetMethod(vtkBindTokens::RESIDUES);
  bound->SetFirstToken(1);
  scan->SetStructureConnection(bound->GetOutputPort());
  const std::vector<double> means = Column(scan.Table(2), "Mean Effect");
  vtkPolyData* structure = scan.Geometry(3);
  const std::vector<double> places = Values(structure->GetPointData(), "sequence");
  const std::vector<double> effects = Values(structure->GetPointData(), "Mean Effect");
  ASSERT_FALSE(places.empty());
  for (std::size_t i = 0; i < places.size(); ++i)
  {
    EXPECT_EQ(effects[i], static_cast<float>(means[static_cast<std::size_t>(places[i]) - 1]));
  }
  std::string half = scan.Model.Letters;
  std::fill(half.begin(), half.begin() + static_cast<std::ptrdiff_t>(half.size() / 2), 'W');
  WritePdb(scan.Model.Folder / "other.pdb", half);
  reader->SetFileName((scan.Model.Folder / "other.pdb").c_str());
  EXPECT_THAT(scan.Error(), HasSubstr("expected the same protein, of which at least "
                                      "90 % of the residues are the same"));
  bound.TakeWarnings();
  scan->SetStructureConnection(reader->GetOutputPort());
  EXPECT_THAT(scan.Error(), HasSubstr("expected points with the array 'Bound Token'"));
}

TEST(MutationScan, TakesFasta)
{
  Mutations scan;
  const std::vector<double> effects = Column(scan.Table(), "Mutation Effect");
  scan->SetProtein(
    (">name\n" + scan.Model.Letters.substr(0, 5) + "\n" + scan.Model.Letters.substr(5) + "\n")
      .c_str());
  EXPECT_EQ(Column(scan.Table(), "Mutation Effect"), effects);
}

TEST(MutationScan, CanBeCanceled)
{
  Mutations scan;
  {
    const Canceler canceler(scan.Get());
    scan->Update();
    EXPECT_EQ(scan.Get()->GetOutputDataObject(0)->GetNumberOfElements(vtkDataObject::ROW), 0);
  }
  EXPECT_GT(scan.Table()->GetNumberOfRows(), 0);
}

TEST(MutationScan, NamesWhatIsWrong)
{
  Mutations scan;
  for (const auto& [protein, message] :
    std::vector<std::pair<std::string, std::string>>{
      { "MKV*", "Protein: sequence 1: expected residues, letters from A to Z, found '*', a stop" },
      { "mkv", "found 'm', a lower-case letter" },
      { "MJK",
        "Protein: expected residues that are tokens of the model, found 'J' after 1 residue." },
      { ">a\nMK\n>b\nMK", "Protein: expected one protein, found 2." } })
  {
    scan->SetProtein(protein.c_str());
    EXPECT_THAT(scan.Error(), HasSubstr(message)) << protein;
  }
  scan->SetProtein("");
  EXPECT_EQ(scan.Table()->GetNumberOfRows(), 0);
  OracleModel other("gpt2");
  scan->SetInputConnection(other.Port());
  scan->SetProtein("MK");
  EXPECT_THAT(scan.Error(), Not(IsEmpty()));
}

/// The letters and a mask are in models of texts, too.
TEST(MutationScan, ModelsOfTextsAreRefused)
{
  Mutations scan;
  std::ofstream file(scan.Model.Folder / "vocab.txt", std::ios::app);
  for (int i = 0; i < 40; ++i)
  {
    file << "word" << i << '\n';
  }
  file.close();
  scan.Model.Reader->Modified();
  EXPECT_THAT(scan.Error(),
    HasSubstr("Input: expected a model of proteins, with at most 64 tokens, found one of "));
}

}
