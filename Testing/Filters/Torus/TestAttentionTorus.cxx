#include "Fields.h"
#include "Matchers.h"
#include "Torus.h"

#include <vtkStructuredGrid.h>
#include <vtkUnstructuredGrid.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

std::vector<Evaluation> EvaluateAt(
  const Angles& angles, const AttentionOnlyModel& model, const EvaluationOptions& options)
{
  const ReferenceEvaluator evaluator(model, options);
  std::vector<Evaluation> evaluations;
  for (std::size_t i = 0; i < angles.Count(); ++i)
  {
    evaluations.push_back(evaluator.AtAngles(angles.theta1[i], angles.theta2[i]));
  }
  return evaluations;
}

TEST(AttentionTorusImage, SpansTheTorusWithBothEnds)
{
  Torus torus(HandModel{});
  torus->SetResolution(5, 9);
  auto* image = vtkImageData::SafeDownCast(torus.Update());
  ASSERT_NE(image, nullptr);
  EXPECT_THAT(ExtentOf(image), ElementsAre(0, 4, 0, 8, 0, 0));
  EXPECT_DOUBLE_EQ(image->GetOrigin()[0], -Pi);
  EXPECT_DOUBLE_EQ(image->GetOrigin()[1], -Pi);
  EXPECT_DOUBLE_EQ(image->GetOrigin()[2], 0);
  EXPECT_DOUBLE_EQ(image->GetSpacing()[0], Pi / 2);
  EXPECT_DOUBLE_EQ(image->GetSpacing()[1], Pi / 4);
  EXPECT_NEAR(image->GetBounds()[1], Pi, 1e-15);
  EXPECT_NEAR(image->GetBounds()[3], Pi, 1e-15);
}

TEST(AttentionTorusImage, HasTheDimensionsOfTheModel)
{
  Torus torus(TrainedModel());
  torus->SetResolution(2, 2);
  vtkFieldData* fields = torus.Update()->GetFieldData();
  EXPECT_THAT(Values(fields, "VocabularySize"), ElementsAre(5));
  EXPECT_THAT(Values(fields, "Heads"), ElementsAre(3));
  EXPECT_THAT(Values(fields, "HeadDimension"), ElementsAre(3));
  EXPECT_THAT(Values(fields, "EmbeddingDimension"), ElementsAre(3));
}

TEST(AttentionTorusQuantities, AreTheClassMapByDefault)
{
  Torus torus(HandModel{});
  torus->SetResolution(3, 3);
  vtkPointData* data = torus.Update()->GetPointData();
  EXPECT_THAT(
    TypesOf(data), ElementsAre("Class int", "ClassColor unsigned char 3", "Probability float"));
  EXPECT_STREQ(data->GetScalars()->GetName(), "Class"); // of one component, for contours
}

TEST(AttentionTorusQuantities, AreAllOfTheInterface)
{
  Torus torus(HandModel{}); // 2 heads, 2 classes
  torus->SetResolution(3, 3);
  torus.ChooseAll();
  std::set<std::string> expected = { "Class int", "Probability float", "ClassColor unsigned char 3",
    "Logits float 2", "Output float 3" };
  for (const std::string head : { "0", "1" })
  {
    expected.insert({ "Score " + head + " float", "Attention " + head + " float",
      "Word Mix " + head + " float 3", "Position Mix " + head + " float 3",
      "Mix " + head + " float 3", "Head Output " + head + " float 3" });
  }
  EXPECT_EQ(TypesOf(torus.Update()->GetPointData()), expected);
}

TEST(AttentionTorusQuantities, CanBeOfASingleHead)
{
  Torus torus(HandModel{});
  torus->SetResolution(4, 4);
  torus.Choose({ "Attention" });
  vtkNew<vtkImageData> all;
  all->ShallowCopy(torus.Update());
  torus.Choose({ "Attention 1" });
  vtkPointData* data = torus.Update()->GetPointData();
  EXPECT_THAT(Names(data), ElementsAre("Attention 1"));
  EXPECT_TRUE(IsSame(data->GetArray(0), all->GetPointData()->GetArray("Attention 1")));
  EXPECT_STREQ(data->GetScalars()->GetName(), "Attention 1");
}

TEST(AttentionTorusQuantities, CanBeNone)
{
  Torus torus(HandModel{});
  torus->SetResolution(4, 4);
  torus.Choose({});
  EXPECT_EQ(torus.Update()->GetNumberOfPoints(), 16);
  EXPECT_EQ(torus.GetOutput()->GetPointData()->GetNumberOfArrays(), 0);
}

TEST(AttentionTorusQuantities, AreListed)
{
  Torus torus(HandModel{});
  std::vector<std::string> names;
  for (int i = 0; i < torus->GetNumberOfQuantityArrays(); ++i)
  {
    names.emplace_back(torus->GetQuantityArrayName(i));
  }
  EXPECT_THAT(names, ElementsAre("Class", "Probability", "ClassColor", "Logits", "Score",
                       "Attention", "Word Mix", "Position Mix", "Mix", "Head Output", "Output"));
  EXPECT_EQ(torus->GetQuantityArrayStatus("ClassColor"), 1);
  EXPECT_EQ(torus->GetQuantityArrayStatus("Logits"), 0);
}

TEST(AttentionTorusQuantities, ForgetNamesThatAreNone)
{
  Torus torus(HandModel{});
  torus->SetQuantityArrayStatus("Attn", 1);
  torus->DisableAllQuantities();
  torus->SetQuantityArrayStatus("Class", 1);
  EXPECT_EQ(torus->GetNumberOfQuantityArrays(), 11);
  EXPECT_EQ(torus.Update()->GetPointData()->GetNumberOfArrays(), 1);
}

/// The image at its grid and Points at the oracle's points, for each oracle model.
using AttentionTorusValues = OracleTest;
INSTANTIATE_TEST_SUITE_P(, AttentionTorusValues, OracleTest::Models(), OracleTest::Name);

TEST_P(AttentionTorusValues, InTheImageAreThoseAtItsAngles)
{
  const Oracle& oracle = GetOracle();
  Torus torus(oracle.GetModel());
  torus.ChooseAll();
  torus->SetResolution(70, 33); // a full block of columns and a part of one
  ExpectFields(
    torus.Update()->GetPointData(), FieldsOf(EvaluateAt(Grid(70, 33), oracle.GetModel(), {}),
                                      static_cast<int>(oracle.GetModel().VocabularySize())));
}

/// A change of the filter and the options that it amounts to.
struct Change
{
  std::string name;
  std::function<void(vtkAttentionTorus*)> apply;
  std::function<void(EvaluationOptions&)> mean;
  friend void PrintTo(const Change& change, std::ostream* stream) { *stream << change.name; }
};

void SetWeights(vtkAttentionTorus* torus)
{
  torus->SetNumberOfHeadWeights(3);
  torus->SetHeadWeight(1, 0);
  torus->SetHeadWeight(2, -0.5);
}

class AttentionTorusOption : public testing::TestWithParam<Change>
{
public:
  static std::vector<Change> Changes()
  {
    using Filter = vtkAttentionTorus;
    using Options = EvaluationOptions;
    return {
      { "HeadWeights", SetWeights, [](Options& o) { o.headWeights = { 1, 0, -0.5 }; } },
      { "Hardmax", [](Filter* f) { f->SetPattern(Filter::HARDMAX); },
        [](Options& o) { o.pattern = Pattern::Hardmax; } },
      { "Embedding", [](Filter* f) { f->SetResidual(Filter::EMBEDDING); },
        [](Options& o) { o.residual = Residual::Embedding; } },
      { "NoResidual", [](Filter* f) { f->SetResidual(Filter::NONE); },
        [](Options& o) { o.residual = Residual::None; } },
      { "Skewed", [](Filter* f) { f->SetAngles(Filter::SKEWED); },
        [](Options& o) { o.angles = AngleMap::Skewed; } },
      { "NoWordInPattern", [](Filter* f) { f->WordInPatternOff(); },
        [](Options& o) { o.wordInPattern = false; } },
      { "NoPositionInPattern", [](Filter* f) { f->PositionInPatternOff(); },
        [](Options& o) { o.positionInPattern = false; } },
      { "NoWordInValues", [](Filter* f) { f->WordInValuesOff(); },
        [](Options& o) { o.wordInValues = false; } },
      { "NoPositionInValues", [](Filter* f) { f->PositionInValuesOff(); },
        [](Options& o) { o.positionInValues = false; } },
    };
  }

protected:
  /// Points at which no head is near the decision boundary of the hardmax.
  static Angles ClearPoints(const AttentionOnlyModel& model, const EvaluationOptions& options)
  {
    const Angles all = Lattice(1000);
    const std::vector<Evaluation> evaluations = EvaluateAt(all, model, options);
    Angles clear;
    for (std::size_t i = 0; i < all.Count(); ++i)
    {
      const std::vector<HeadEvaluation>& heads = evaluations[i].heads;
      if (std::all_of(heads.begin(), heads.end(),
            [](const HeadEvaluation& head) { return std::abs(head.score) > 1e-3; }))
      {
        clear.Add(all.theta1[i], all.theta2[i]);
      }
    }
    EXPECT_GT(clear.Count(), all.Count() / 2);
    return clear;
  }
};

INSTANTIATE_TEST_SUITE_P(, AttentionTorusOption, testing::ValuesIn(AttentionTorusOption::Changes()),
  [](const auto& change) { return change.param.name; });

TEST_P(AttentionTorusOption, ChangesTheOutput)
{
  const AttentionOnlyModel model = TrainedModel();
  EvaluationOptions options;
  GetParam().mean(options);
  const Angles points = ClearPoints(model, options);

  Torus torus(model);
  torus.ChooseAll();
  torus.SetPoints(points.AsPoints());
  torus.Update();
  GetParam().apply(torus.Get());
  ExpectFields(torus.Update()->GetPointData(), FieldsOf(EvaluateAt(points, model, options), 5));
}

vtkSmartPointer<vtkDataSet> ImageOfAngles()
{
  auto image = vtkSmartPointer<vtkImageData>::New();
  image->SetDimensions(7, 5, 2);
  image->SetOrigin(-2, -1, 4);
  image->SetSpacing(0.5, 0.25, 1);
  return image;
}

vtkSmartPointer<vtkDataSet> TrianglesOfAngles()
{
  auto grid = vtkSmartPointer<vtkUnstructuredGrid>::New();
  const Angles lattice = Lattice(70);
  grid->SetPoints(lattice.AsPoints()->GetPoints());
  for (vtkIdType i = 0; i + 2 < grid->GetNumberOfPoints(); ++i)
  {
    const vtkIdType corners[3] = { i, i + 1, i + 2 };
    grid->InsertNextCell(VTK_TRIANGLE, 3, corners);
  }
  return grid;
}

vtkSmartPointer<vtkDataSet> CurvedGridOfAngles()
{
  auto grid = vtkSmartPointer<vtkStructuredGrid>::New();
  grid->SetDimensions(10, 7, 1);
  grid->SetPoints(Lattice(70).AsPoints()->GetPoints());
  return grid;
}

vtkSmartPointer<vtkDataSet> VerticesAtAngles()
{
  return Lattice(70).AsPoints();
}

using MakePoints = vtkSmartPointer<vtkDataSet> (*)();

using AttentionTorusPoints = testing::TestWithParam<MakePoints>;

INSTANTIATE_TEST_SUITE_P(, AttentionTorusPoints,
  testing::Values(&VerticesAtAngles, &ImageOfAngles, &TrianglesOfAngles, &CurvedGridOfAngles),
  [](const auto& make) { return std::string(make.param()->GetClassName()); });

TEST_P(AttentionTorusPoints, KeepTheirStructureAndArrays)
{
  const vtkSmartPointer<vtkDataSet> points = GetParam()();
  const auto zeros = [](vtkIdType count) { return std::vector<float>(count); };
  AddArray<vtkFloatArray>(points->GetPointData(), "Mine", zeros(points->GetNumberOfPoints()));
  AddArray<vtkFloatArray>(points->GetCellData(), "My Cells", zeros(points->GetNumberOfCells()));
  AddArray<vtkFloatArray>(points->GetFieldData(), "My Field", zeros(3));
  Torus torus(TrainedModel());
  torus.SetPoints(points);
  vtkDataSet* output = torus.Update();

  ASSERT_STREQ(output->GetClassName(), points->GetClassName());
  ASSERT_EQ(output->GetNumberOfPoints(), points->GetNumberOfPoints());
  ASSERT_EQ(output->GetNumberOfCells(), points->GetNumberOfCells());
  EXPECT_EQ(output->GetCellType(0), points->GetCellType(0));
  EXPECT_THAT(BoundsOf(output), ElementsAreArray(points->GetBounds(), 6));
  EXPECT_EQ(output->GetPointData()->GetArray("Mine"), points->GetPointData()->GetArray("Mine"));
  EXPECT_EQ(
    output->GetCellData()->GetArray("My Cells"), points->GetCellData()->GetArray("My Cells"));
  EXPECT_EQ(
    output->GetFieldData()->GetArray("My Field"), points->GetFieldData()->GetArray("My Field"));
  EXPECT_THAT(
    Names(output->GetPointData()), ElementsAre("Class", "ClassColor", "Mine", "Probability"));

  EXPECT_THAT(Names(points->GetPointData()), ElementsAre("Mine"));
  EXPECT_THAT(Names(points->GetFieldData()), ElementsAre("My Field"));
}

TEST_P(AttentionTorusPoints, AreReadAsAngles)
{
  const vtkSmartPointer<vtkDataSet> points = GetParam()();
  Angles angles;
  for (vtkIdType i = 0; i < points->GetNumberOfPoints(); ++i)
  {
    angles.Add(points->GetPoint(i)[0], points->GetPoint(i)[1]);
  }
  Torus torus(TrainedModel());
  torus.SetPoints(points);
  torus.ChooseAll();
  ExpectFields(torus.Update()->GetPointData(), FieldsOf(EvaluateAt(angles, TrainedModel(), {}), 5));
}

TEST(AttentionTorusInput, TakeThePlaceOfTheImageAndGiveItBack)
{
  Torus torus(HandModel{});
  EXPECT_STREQ(torus.Update()->GetClassName(), "vtkImageData");
  torus.SetPoints(VerticesAtAngles());
  EXPECT_STREQ(torus.Update()->GetClassName(), "vtkPolyData");
  EXPECT_EQ(torus.GetOutput()->GetNumberOfPoints(), 70);
  torus.SetPoints(ImageOfAngles());
  EXPECT_STREQ(torus.Update()->GetClassName(), "vtkImageData");
  EXPECT_EQ(torus.GetOutput()->GetNumberOfPoints(), 70);
  torus->SetPointsConnection(nullptr);
  EXPECT_STREQ(torus.Update()->GetClassName(), "vtkImageData");
  EXPECT_EQ(torus.GetOutput()->GetNumberOfPoints(), 512 * 512);
}

TEST(AttentionTorusInput, BeyondPiAreReadModuloATurn)
{
  Torus torus(TrainedModel());
  torus.Choose({ "Output" });
  torus.SetPoints(PointsAt({ 1, 1 + 2 * Pi, 1 - 20 * Pi }, { -2, -2 + 4 * Pi, -2 - 2 * Pi }));
  const std::vector<double> output = Values(torus.Update()->GetPointData(), "Output");
  for (std::size_t i = 3; i < output.size(); ++i)
  {
    EXPECT_NEAR(output[i], output[i % 3], 1e-4);
  }
}

/// TestHostileInput.py has what else may be wrong.
TEST(AttentionTorusErrors, AreOfTheModelAndItsWeights)
{
  Torus torus(HandModel{});
  const auto expect = [&torus](const char* message)
  { EXPECT_THAT(torus.Error(), HasSubstr(message)); };
  torus->SetResidual(vtkAttentionTorus::RAW_EMBEDDING);
  expect("Residual: RawEmbedding is defined at token pairs only.");
  torus->SetResidual(vtkAttentionTorus::NONE);
  HandModel model;
  model.unembedding *= 1e40;
  Connect(torus.Get(), 0, DataSetOf(model));
  expect("the model's weights are too large to be evaluated in single precision");
  vtkNew<vtkMultiBlockDataSet> other;
  other->SetBlock(0, vtkNew<vtkPolyData>());
  Connect(torus.Get(), 0, other);
  expect("input model: tensor 'word_embedding' is missing");
}

TEST(AttentionTorusErrors, AreForgottenOnceCorrected)
{
  Torus torus(HandModel{});
  torus->SetResolution(16, 1);
  torus.Update();
  EXPECT_EQ(torus.TakeErrors().size(), 1U);
  torus->SetResolution(16, 2);
  EXPECT_EQ(torus.Update()->GetNumberOfPoints(), 32);
  torus->SetNumberOfHeadWeights(7);
  EXPECT_EQ(torus.Update()->GetNumberOfPoints(), 0);
  EXPECT_EQ(torus.TakeErrors().size(), 1U);
  torus->SetNumberOfHeadWeights(0);
  EXPECT_EQ(torus.Update()->GetNumberOfPoints(), 32);
}

TEST(AttentionTorusErrors, AreNotThoseOfAnEmptyModel)
{
  Torus torus(HandModel{});
  Connect(torus.Get(), 0, vtkNew<vtkMultiBlockDataSet>());
  EXPECT_EQ(torus.Update()->GetNumberOfPoints(), 0);
  torus.SetPoints(VerticesAtAngles());
  EXPECT_EQ(torus.Update()->GetNumberOfPoints(), 0);
}

/// VTK's own ranges, computed anew.
TEST(AttentionTorus, KnowsTheRangesOfItsArrays)
{
  Torus torus(TrainedModel());
  torus->SetResolution(61, 47);
  for (const char* quantity : { "Class", "Probability", "ClassColor", "Logits", "Output", "Score" })
  {
    torus->SetQuantityArrayStatus(quantity, 1);
  }
  vtkPointData* points = torus.Update()->GetPointData();
  EXPECT_EQ(points->GetNumberOfArrays(), 8);
  for (int i = 0; i < points->GetNumberOfArrays(); ++i)
  {
    vtkDataArray* array = points->GetArray(i);
    EXPECT_TRUE(array->GetInformation()->Has(vtkAbstractArray::PER_COMPONENT()));
    for (int component = -1; component < array->GetNumberOfComponents(); ++component)
    {
      std::array<double, 4> cached;
      array->GetRange(cached.data(), component);
      array->GetFiniteRange(cached.data() + 2, component);
      vtkSmartPointer<vtkDataArray> copy;
      copy.TakeReference(array->NewInstance());
      copy->DeepCopy(array);
      copy->Modified();
      std::array<double, 4> own;
      copy->GetRange(own.data(), component);
      copy->GetFiniteRange(own.data() + 2, component);
      EXPECT_EQ(cached, own) << array->GetName() << " " << component;
    }
  }
}

}
