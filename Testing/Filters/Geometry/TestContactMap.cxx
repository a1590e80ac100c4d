#include "vtkBindTokens.h"
#include "vtkContactMap.h"

#include "Matchers.h"
#include "ProteinModel.h"
#include "SpatialRecording.h"
#include "Tables.h"

#include <vtkFloatArray.h>

#include <cmath>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The contacts of the protein of the oracle.
class Contacts : public Warned<vtkContactMap>
{
public:
  ProteinModel Model;
  Observed<vtkMmcifReader> Structure;

  Contacts() { this->Get()->SetInputConnection(this->Model.Recorder->GetOutputPort()); }

  void UseModel() { this->Get()->SetModelConnection(this->Model.Reader->GetOutputPort()); }

  /// Of a structure with these residues.
  void UseStructure(const std::string& letters)
  {
    const std::filesystem::path path = this->Model.Folder / (letters + ".pdb");
    WritePdb(path, letters);
    this->Structure->SetFileName(path.c_str());
    this->Get()->SetStructureConnection(this->Structure->GetOutputPort());
  }
};

TEST(ContactMap, PredictsAsTheOriginal)
{
  Contacts map;
  map.UseModel();
  const std::size_t n = map.Model.Letters.size();
  const std::vector<double> expected = map.Model.Expected.Values("0.contacts");
  ASSERT_EQ(expected.size(), n * n);
  vtkImageData* image = map.Image();
  const int last = static_cast<int>(n) - 1;
  EXPECT_THAT(ExtentOf(image), ElementsAre(0, last, 0, last, 0, 0));
  EXPECT_THAT(OriginOf(image), ElementsAre(0, -last, 0));
  EXPECT_STREQ(image->GetPointData()->GetScalars()->GetName(), "Prediction");
  EXPECT_THAT(
    Names(image->GetPointData()), ElementsAre("Contact Evidence", "Key", "Prediction", "Query"));
  const std::vector<double> found = Values(image->GetPointData(), "Prediction");
  const std::vector<double> queries = Values(image->GetPointData(), "Query");
  const std::vector<double> keys = Values(image->GetPointData(), "Key");
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    const auto row = static_cast<std::size_t>(queries[i]) - 1; // behind <cls>
    const auto column = static_cast<std::size_t>(keys[i]) - 1;
    EXPECT_EQ(column, i % n);
    EXPECT_EQ(row, n - 1 - i / n) << "downward";
    EXPECT_NEAR(found[i], expected[row * n + column], 1e-5) << i;
  }
  const std::vector<std::string> letters = Texts(image->GetFieldData(), "Key Token");
  ASSERT_EQ(letters.size(), n);
  EXPECT_EQ(letters[3], map.Model.Letters.substr(3, 1));
  for (const char* axis : { "Query Title", "Key Title" })
  {
    EXPECT_THAT(Texts(image->GetFieldData(), axis), ElementsAre("Residue"));
  }
  EXPECT_EQ(map.Table(3)->GetNumberOfRows(), 0) << "no structure";
  EXPECT_THAT(ColumnNames(map.Table(2)), ElementsAre("Layer", "Head", "Contact Weight"));
  EXPECT_EQ(map.Table(2)->GetNumberOfRows(), 4 * 6);
}

TEST(ContactMap, ListsTheStrongestPairs)
{
  Contacts map;
  map.UseModel();
  const std::size_t n = map.Model.Letters.size();
  const std::vector<double> expected = map.Model.Expected.Values("0.contacts");
  std::vector<double> sorted;
  for (std::size_t i = 0; i < n; ++i)
  {
    for (std::size_t j = i + 6; j < n; ++j)
    {
      sorted.push_back(expected[i * n + j]);
    }
  }
  std::sort(sorted.rbegin(), sorted.rend());
  vtkTable* pairs = map.Table(1);
  ASSERT_EQ(pairs->GetNumberOfRows(), static_cast<vtkIdType>(n));
  const std::vector<double> found = Column(pairs, "Prediction");
  for (std::size_t i = 0; i < n; ++i)
  {
    EXPECT_NEAR(found[i], sorted[i], 1e-5) << i;
    EXPECT_EQ(Column(pairs, "Separation")[i], Column(pairs, "Key")[i] - Column(pairs, "Query")[i]);
  }
  map->SetPairCount(3);
  EXPECT_EQ(map.Table(1)->GetNumberOfRows(), 3);
  map->SetMinimumSeparation(1);
  EXPECT_THAT(Texts(map.Table(1)->GetRowData(), "Range"), SizeIs(3));
}

/// The evidence of one head, computed anew from the attention of the original.
TEST(ContactMap, CorrectsTheAttentionOfAHead)
{
  Contacts map;
  map->SetLayer(2);
  map->SetHead(1);
  const std::size_t n = map.Model.Letters.size();
  const std::vector<double> attention = map.Model.Expected.Values("0.attention.2");
  const auto both = [&](std::size_t i, std::size_t j)
  {
    const std::size_t tokens = n + 2;
    const std::size_t head = tokens * tokens;
    return attention[head + (i + 1) * tokens + j + 1] + attention[head + (j + 1) * tokens + i + 1];
  };
  std::vector<double> rows(n, 0);
  double all = 0;
  for (std::size_t i = 0; i < n; ++i)
  {
    for (std::size_t j = 0; j < n; ++j)
    {
      rows[i] += both(i, j);
    }
    all += rows[i];
  }
  vtkImageData* image = map.Image();
  EXPECT_STREQ(image->GetPointData()->GetScalars()->GetName(), "Contact Evidence");
  const std::vector<double> found = Values(image->GetPointData(), "Contact Evidence");
  for (std::size_t k = 0; k < found.size(); ++k)
  {
    const std::size_t i = n - 1 - k / n;
    const std::size_t j = k % n;
    EXPECT_NEAR(found[k], both(i, j) - rows[i] * rows[j] / all, 1e-5) << k;
  }
}

TEST(ContactMap, ComparesWithAStructure)
{
  Contacts map;
  map.UseModel();
  map.UseStructure(map.Model.Letters);
  map->SetContactDistance(12);
  const std::size_t n = map.Model.Letters.size();
  vtkImageData* image = map.Image();
  const std::vector<double> contact = Values(image->GetPointData(), "Contact");
  const std::vector<double> distance = Values(image->GetPointData(), "Distance");
  const std::vector<double> prediction = Values(image->GetPointData(), "Prediction");
  for (std::size_t k = 0; k < contact.size(); ++k)
  {
    const auto separation = std::abs(static_cast<int>(n - 1 - k / n) - static_cast<int>(k % n));
    EXPECT_EQ(contact[k], separation >= 6 && distance[k] < 12 ? 1 : 0) << k;
  }
  EXPECT_THAT(map.Field("Residues"), ElementsAre(static_cast<double>(n)));
  EXPECT_THAT(map.Field("Resolved Residues"), ElementsAre(static_cast<double>(n)));
  EXPECT_THAT(map.Field("Sequence Identity"), ElementsAre(1));

  // Precision L of all ranges, counted anew.
  std::vector<std::pair<double, double>> pairs;
  for (std::size_t k = 0; k < contact.size(); ++k)
  {
    if (k % n >= n - 1 - k / n + 6)
    {
      pairs.emplace_back(-prediction[k], contact[k]);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  double hits = 0;
  for (std::size_t i = 0; i < n; ++i)
  {
    hits += pairs[i].second;
  }
  vtkTable* precision = map.Table(3);
  EXPECT_THAT(ColumnNames(precision),
    ElementsAre("Source", "Range", "Top", "Pairs", "Contacts", "Precision"));
  ASSERT_EQ(precision->GetNumberOfRows(), 2 * 4 * 3);
  EXPECT_THAT(Texts(precision->GetRowData(), "Source")[12], "Prediction");
  EXPECT_THAT(Texts(precision->GetRowData(), "Range")[12], "All");
  EXPECT_THAT(Texts(precision->GetRowData(), "Top")[12], "L");
  EXPECT_EQ(Column(precision, "Pairs")[12], n);
  EXPECT_EQ(Column(precision, "Contacts")[12], hits);
  EXPECT_EQ(Column(precision, "Precision")[12], hits / static_cast<double>(n));

  EXPECT_THAT(ColumnNames(map.Table(2)),
    ElementsAre("Layer", "Head", "Contact Weight", "Attended Pairs", "Contact Share",
      "Attention Share", "Precision L", "Precision L/2", "Precision L/5"));
  vtkPolyData* lines = map.Geometry(4);
  EXPECT_EQ(lines->GetNumberOfLines(), static_cast<vtkIdType>(n));
  EXPECT_EQ(std::accumulate(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(n), 0.0,
              [](double sum, const auto& pair) { return sum + pair.second; }),
    hits);
  for (const char* const name : { "Position", "sequence" }) // behind the first special token
  {
    const std::vector<double> places = Values(lines->GetFieldData(), name);
    ASSERT_EQ(places.size(), n);
    EXPECT_EQ(places.front(), 1);
    EXPECT_EQ(places.back(), n);
  }
  const std::vector<double> marks = Values(lines->GetCellData(), "MarkColor");
  EXPECT_EQ(std::count(marks.begin(), marks.end(), 159), static_cast<double>(n) - hits); // orange
}

/// The attention of the original to residues 2, 3 and 8, counted anew.
TEST(ContactMap, MeasuresAttentionToSites)
{
  Contacts map;
  map->SetSites("2-3 8");
  map->SetThreshold(0.05);
  const std::size_t n = map.Model.Letters.size();
  const std::size_t tokens = n + 2;
  const std::vector<double> attention = map.Model.Expected.Values("0.attention.2");
  vtkTable* heads = map.Table(2);
  EXPECT_THAT(
    ColumnNames(heads), ElementsAre("Layer", "Head", "Site Share", "Site Attention Share"));
  EXPECT_THAT(map.Field("Site Residues"), ElementsAre(3));
  EXPECT_THAT(map.Field("Residues"), ElementsAre(static_cast<double>(n)));
  const auto isSite = [](std::size_t j) { return j == 1 || j == 2 || j == 7; };
  for (std::size_t h = 0; h < 6; ++h)
  {
    double all = 0;
    double toSites = 0;
    double attended = 0;
    double attendedSites = 0;
    for (std::size_t i = 0; i < n; ++i)
    {
      for (std::size_t j = 0; j < n; ++j)
      {
        const double weight = attention[(h * tokens + i + 1) * tokens + j + 1];
        all += weight;
        toSites += isSite(j) ? weight : 0;
        attended += weight > 0.05 ? 1 : 0;
        attendedSites += weight > 0.05 && isSite(j) ? 1 : 0;
      }
    }
    EXPECT_NEAR(Column(heads, "Site Attention Share")[12 + h], toSites / all, 1e-5) << h;
    EXPECT_NEAR(Column(heads, "Site Share")[12 + h], attendedSites / attended, 1e-12) << h;
  }
  // The map of heads says the same, layer 0 above.
  vtkImageData* shown = map.Image(5);
  EXPECT_THAT(ExtentOf(shown), ElementsAre(0, 5, 0, 3, 0, 0));
  EXPECT_STREQ(shown->GetPointData()->GetScalars()->GetName(), "Site Attention Share");
  const std::vector<double> layers = Values(shown->GetPointData(), "Layer");
  const std::vector<double> numbers = Values(shown->GetPointData(), "Head");
  const std::vector<double> shares = Values(shown->GetPointData(), "Site Attention Share");
  ASSERT_EQ(shares.size(), 24U);
  for (std::size_t k = 0; k < shares.size(); ++k)
  {
    EXPECT_EQ(layers[k], 3 - k / 6);
    EXPECT_EQ(numbers[k], k % 6);
    EXPECT_EQ(shares[k],
      Column(heads, "Site Attention Share")[static_cast<std::size_t>(layers[k]) * 6 + k % 6]);
  }
  EXPECT_EQ(Texts(shown->GetFieldData(), "Query Token")[3], "3");
  map->SetSites("2-99");
  EXPECT_THAT(map.Error(), HasSubstr("Sites: expected numbers of residues from 1 to"));
  map->SetSites("");
  EXPECT_THAT(ColumnNames(map.Table(2)), ElementsAre("Layer", "Head"));
}

/// Sites may be marked on the structure instead.
TEST(ContactMap, SitesMayBeMarkedOnTheStructure)
{
  Contacts map;
  map.UseStructure(map.Model.Letters);
  map->SetSites("3 5");
  const std::vector<double> typed = Column(map.Table(2), "Site Attention Share");
  map->SetSites("3");
  map.Structure->Update();
  vtkNew<vtkPolyData> marked;
  marked->ShallowCopy(map.Structure->GetOutput());
  vtkNew<vtkFloatArray> marks;
  marks->SetName("binds");
  const std::vector<double> places = Values(marked->GetPointData(), "sequence");
  for (const double place : places)
  {
    marks->InsertNextValue(place == 5 ? 0.5F : 0);
  }
  marked->GetPointData()->AddArray(marks);
  Connect(map.Get(), 2, marked);
  map->SetSiteArray("binds");
  EXPECT_EQ(Column(map.Table(2), "Site Attention Share"), typed);
  EXPECT_THAT(map.Field("Site Residues"), ElementsAre(2));
  map->SetSiteArray("other");
  EXPECT_THAT(map.Error(),
    HasSubstr("SiteArray: expected a point array of numbers of the structure, found 'other'."));
  map->SetStructureConnection(nullptr);
  EXPECT_THAT(map.Error(), HasSubstr("SiteArray: expected a structure with this array"));
}

/// A line's middle is away from the center by a part of its length, at a right angle.
TEST(ContactMap, LinesAreBentOutward)
{
  Contacts map;
  map.UseStructure(map.Model.Letters);
  map->SetBend(0.25);
  vtkPolyData* lines = map.Geometry(4);
  ASSERT_GT(lines->GetNumberOfLines(), 0);
  ASSERT_EQ(lines->GetNumberOfPoints(), 17 * lines->GetNumberOfLines());
  for (vtkIdType i = 0; i < lines->GetNumberOfLines(); ++i)
  {
    std::array<double, 3> from = {};
    std::array<double, 3> middle = {};
    std::array<double, 3> to = {};
    lines->GetPoint(17 * i, from.data());
    lines->GetPoint(17 * i + 8, middle.data());
    lines->GetPoint(17 * i + 16, to.data());
    double length = 0;
    double away = 0;
    double along = 0;
    for (int axis = 0; axis < 3; ++axis)
    {
      const double bent = middle[axis] - (from[axis] + to[axis]) / 2;
      length += std::pow(to[axis] - from[axis], 2);
      away += bent * bent;
      along += bent * (to[axis] - from[axis]);
    }
    EXPECT_NEAR(std::sqrt(away / length), 0.25, 1e-9);
    EXPECT_NEAR(along, 0, 1e-9 * length);
  }
  map->SetBend(0);
  EXPECT_EQ(map.Geometry(4)->GetNumberOfPoints(), 2 * map.Geometry(4)->GetNumberOfLines());
  map->SetBend(2);
  EXPECT_THAT(map.Error(), HasSubstr("Bend: expected a number from 0 to 1, found 2"));
}

TEST(ContactMap, ResiduesMayBeUnresolved)
{
  Contacts map;
  std::string letters = map.Model.Letters;
  letters[4] = letters[5] = ' ';
  map.UseStructure(letters);
  EXPECT_THAT(
    map.Field("Resolved Residues"), ElementsAre(static_cast<double>(map.Model.Letters.size() - 2)));
  EXPECT_THAT(map.TakeWarnings(), IsEmpty());
}

TEST(ContactMap, BoundStructuresAreTaken)
{
  Contacts map;
  map.UseStructure(map.Model.Letters);
  const std::vector<double> aligned = map.Points("Distance");
  Warned<vtkBindTokens> bound;
  bound->SetInputConnection(0, map.Structure->GetOutputPort());
  bound->SetRecordingConnection(map.Model.Recorder->GetOutputPort());
  bound->SetMethod(vtkBindTokens::RESIDUES);
  bound->SetFirstToken(1);
  map->SetStructureConnection(bound->GetOutputPort());
  EXPECT_EQ(map.Points("Distance"), aligned);
  bound->SetFirstToken(0); // all residues are one off
  EXPECT_THAT(map.Error(), HasSubstr("expected the same protein"));
  EXPECT_THAT(bound.TakeWarnings(), Not(IsEmpty()));
}

TEST(ContactMap, AnotherProteinIsRefusedOrTold)
{
  Contacts map;
  std::string letters = map.Model.Letters;
  letters[7] = letters[7] == 'A' ? 'C' : 'A';
  map.UseStructure(letters);
  const std::size_t n = letters.size();
  EXPECT_THAT(map.Field("Sequence Identity")[0], DoubleNear(1 - 1 / static_cast<double>(n), 1e-12));
  EXPECT_THAT(map.TakeWarnings(),
    Contains(AllOf(HasSubstr("only " + std::to_string(n - 1) + " of " + std::to_string(n) + " ("),
      HasSubstr(" %) are the same"))));
  map.UseStructure(std::string(n, 'W'));
  EXPECT_THAT(map.Error(), HasSubstr("at least 90 % of the residues are the same, found"));
  map->SetMinimumIdentity(0);
  EXPECT_EQ(map.Points("Contact").size(), n * n);
  EXPECT_THAT(map.TakeWarnings(), SizeIs(1));
}

TEST(ContactMap, NamesWhatIsWrong)
{
  Contacts map;
  map->SetLayer(8);
  EXPECT_THAT(map.Error(), HasSubstr("8"));
  map->SetLayer(-1);
  map->SetContactDistance(0);
  EXPECT_THAT(map.Error(), HasSubstr("ContactDistance: expected a distance above 0, found 0"));
  map->SetContactDistance(8);
  map->SetThreshold(1.5);
  EXPECT_THAT(map.Error(), HasSubstr("Threshold: expected a number from 0 to 1, found 1.5"));
  map->SetThreshold(0.3);
  map->SetMinimumSeparation(0);
  EXPECT_THAT(map.Error(), HasSubstr("MinimumSeparation: expected a number of at least 1"));
  map->SetMinimumSeparation(6);
  map->Update();
  map->SetPairCount(-1); // of which nothing is computed again
  EXPECT_THAT(map.Error(), HasSubstr("PairCount: expected a number of at least 0, found -1"));
  map->SetPairCount(0);
  map.UseStructure(map.Model.Letters);
  map->SetChain("Q");
  EXPECT_THAT(map.Error(), HasSubstr("Chain: expected one of the structure's, 'A', found 'Q'."));
  vtkNew<vtkPolyData> points;
  vtkNew<vtkPoints> one;
  one->InsertNextPoint(0, 0, 0);
  points->SetPoints(one);
  Connect(map.Get(), 2, points);
  EXPECT_THAT(map.Error(), HasSubstr("expected the point array 'atom_types'"));
}

TEST(ContactMap, ProteinsAreReadFromFasta)
{
  Contacts map;
  const std::vector<double> typed = map.Points("Contact Evidence");
  std::ofstream(map.Model.Folder / "protein.fasta") << ">name\n"
                                                    << map.Model.Letters.substr(0, 9) << '\n'
                                                    << map.Model.Letters.substr(9) << '\n';
  map.Model.Recorder->SetPrompts("");
  map.Model.Recorder->SetPromptFile((map.Model.Folder / "protein.fasta").c_str());
  EXPECT_EQ(map.Points("Contact Evidence"), typed);
  std::ofstream(map.Model.Folder / "stop.fa") << ">name\nMKV*\n";
  map.Model.Recorder->SetPromptFile((map.Model.Folder / "stop.fa").c_str());
  ErrorLog errors(map.Model.Recorder.Get());
  map->Update();
  EXPECT_THAT(errors.Take(), Contains(HasSubstr("sequence 'name': expected residues")));
  map.Model.Recorder.TakeErrors();
}

/// Only a contact head must be of the model that was recorded.
TEST(ContactMap, OtherModelsMatterWithAContactHeadAlone)
{
  Contacts map;
  OracleModel other("gpt2");
  map->SetModelConnection(other.Port());
  EXPECT_THAT(Names(map.Image()->GetPointData()), ElementsAre("Contact Evidence", "Key", "Query"));
  On<vtkContactMap> of(DataSetOf(SpatialRecording()));
  of->SetModelConnection(map.Model.Reader->GetOutputPort());
  EXPECT_THAT(of.Error(), HasSubstr("the contact head needs the model that was recorded"));
}

/// Letters that nobody knows accept no structure.
TEST(ContactMap, StructuresNeedKnownResidues)
{
  Contacts map;
  map.UseStructure(map.Model.Letters);
  On<vtkContactMap> of(DataSetOf(SpatialRecording()));
  of->SetStructureConnection(map.Structure->GetOutputPort());
  EXPECT_THAT(of.Error(), HasSubstr("expected residues whose letters can be compared"));
}

/// Tokens that are no letters are residues that nobody knows.
TEST(ContactMap, TokensNeedTexts)
{
  Recording recording = SpatialRecording();
  On<vtkContactMap> map(DataSetOf(recording));
  EXPECT_EQ(map.Points("Contact Evidence").size(), 16U);
  recording.tokens.text.clear();
  On<vtkContactMap> without(DataSetOf(recording));
  EXPECT_THAT(without.Error(), HasSubstr("expected a recording with the texts of its tokens"));
}

}
