#include "vtkTorusAlgorithm.h"

#include "Matchers.h"
#include "Pipeline.h"
#include "vtkAttentionTorus.h"
#include "vtkHarmonicHead.h"
#include "vtkTokenPairs.h"

using namespace atlas::test;

namespace
{

TEST(Defaults, OfCoefficientsAreThoseOfTheDesign)
{
  const vtkNew<vtkHarmonicHead> harmonics;
  const std::vector<double> expected = { 0.5, 2, 0, 0, -1, -1.5, 1, 1.5, -1, 3, 0 };
  for (std::size_t i = 0; i < expected.size(); ++i)
  {
    EXPECT_EQ(harmonics->GetCoefficient(static_cast<int>(i)), expected[i]);
  }
}

TEST(HeadWeights, GrowWithOnes)
{
  const vtkNew<vtkTokenPairs> pairs;
  pairs->SetHeadWeight(2, 0.5);
  EXPECT_EQ(pairs->GetNumberOfHeadWeights(), 3);
  EXPECT_EQ(pairs->GetHeadWeight(0), 1);
  EXPECT_EQ(pairs->GetHeadWeight(1), 1);
  EXPECT_EQ(pairs->GetHeadWeight(2), 0.5);
  EXPECT_EQ(pairs->GetHeadWeight(7), 1);
  pairs->SetNumberOfHeadWeights(-1);
  EXPECT_EQ(pairs->GetNumberOfHeadWeights(), 0);
}

TEST(HeadWeights, AreOfHeadsFromZeroOn)
{
  Observed<vtkTokenPairs> pairs;
  pairs->SetHeadWeight(-1, 2);
  EXPECT_EQ(pairs->GetNumberOfHeadWeights(), 0);
  EXPECT_THAT(pairs.TakeErrors(),
    ElementsAre(HasSubstr("SetHeadWeight: expected a head from 0 on, found -1.")));
}

/// Expects that a call changes an object, and the same call again does not.
void ExpectModifiesOnce(vtkObject* object, const std::function<void()>& call)
{
  const vtkMTimeType before = object->GetMTime();
  call();
  const vtkMTimeType after = object->GetMTime();
  EXPECT_GT(after, before);
  call();
  EXPECT_EQ(object->GetMTime(), after);
}

TEST(TorusAlgorithm, IsModifiedByAChangeAlone)
{
  const vtkNew<vtkAttentionTorus> torus;
  ExpectModifiesOnce(torus, [&] { torus->SetAngles(vtkTorusAlgorithm::SKEWED); });
  ExpectModifiesOnce(torus, [&] { torus->SetPattern(vtkTorusAlgorithm::HARDMAX); });
  ExpectModifiesOnce(torus, [&] { torus->SetResidual(vtkTorusAlgorithm::NONE); });
  ExpectModifiesOnce(torus, [&] { torus->SetNumberOfHeadWeights(2); });
  ExpectModifiesOnce(torus, [&] { torus->SetHeadWeight(1, 0.25); });
  ExpectModifiesOnce(torus, [&] { torus->WordInPatternOff(); });
  ExpectModifiesOnce(torus, [&] { torus->PositionInPatternOff(); });
  ExpectModifiesOnce(torus, [&] { torus->WordInValuesOff(); });
  ExpectModifiesOnce(torus, [&] { torus->PositionInValuesOff(); });
  ExpectModifiesOnce(torus, [&] { torus->SetResolution(3, 4); });
  ExpectModifiesOnce(torus, [&] { torus->SetQuantityArrayStatus("Logits", 1); });
  ExpectModifiesOnce(torus, [&] { torus->SetQuantityArrayStatus("Attention 3", 1); });
}

}
