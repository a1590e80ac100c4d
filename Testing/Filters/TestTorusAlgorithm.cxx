#include "vtkTorusAlgorithm.h"

#include "Pipeline.h"
#include "vtkAttentionTorus.h"
#include "vtkHarmonicAttention.h"
#include "vtkHeadAccuracy.h"
#include "vtkTokenPairs.h"

#include <vtkNew.h>
#include <vtkXMLDataElement.h>
#include <vtkXMLUtilities.h>

#include <functional>
#include <limits>
#include <map>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>

using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

using Properties = std::map<std::string, std::string>;

vtkSmartPointer<vtkXMLDataElement> ReadXml(const std::string& name)
{
  return vtkSmartPointer<vtkXMLDataElement>::Take(
    vtkXMLUtilities::ReadElementFromFile((ATLAS_SOURCE_DIR "/XML/" + name).c_str()));
}

void ForEachElement(vtkXMLDataElement* parent, const std::function<void(vtkXMLDataElement*)>& call)
{
  for (int i = 0; i < parent->GetNumberOfNestedElements(); ++i)
  {
    call(parent->GetNestedElement(i));
    ForEachElement(parent->GetNestedElement(i), call);
  }
}

/// The properties of a proxy, by its name, that have a default; without old names of others.
Properties XmlDefaults(vtkXMLDataElement* root, const std::string& proxy)
{
  Properties defaults;
  ForEachElement(root,
    [&](vtkXMLDataElement* element)
    {
      const char* value = element->GetAttribute("default_values");
      const char* owner = element->GetParent()->GetAttribute("name");
      const bool isOld =
        element->FindNestedElementWithName("AtlasRenamedPropertyDomain") != nullptr;
      if (value != nullptr && owner != nullptr && owner == proxy && !isOld)
      {
        defaults[element->GetAttribute("name")] = value;
      }
    });
  return defaults;
}

/// The properties that an object prints, "Name: value" in each line. Sizes print as 2 x 3.
Properties Printed(vtkObject* object)
{
  std::ostringstream text;
  object->Print(text);
  const std::string lines = text.str();
  const std::regex line("\n *(\\w+): *([^\n]*)");
  Properties printed;
  for (std::sregex_iterator i(lines.begin(), lines.end(), line), end; i != end; ++i)
  {
    printed[(*i)[1]] = std::regex_replace((*i)[2].str(), std::regex(" x "), " ");
  }
  return printed;
}

/// TestDefaults.py compares the defaults of all classes with the XML, except for this list.
TEST(Defaults, OfCoefficientsAreThoseOfTheXml)
{
  const vtkNew<vtkHarmonicAttention> harmonics;
  Properties defaults = XmlDefaults(ReadXml("AttentionAtlasTorus.xml"), "HarmonicAttention");
  EXPECT_EQ(defaults["Coefficients"], "0.5 2 0 0 -1 -1.5 1 1.5 -1 3 0");
  EXPECT_EQ(Printed(harmonics)["Coefficients"], defaults["Coefficients"]);
}

TEST(Defaults, AreWhatTheDesignSays)
{
  const vtkNew<vtkAttentionTorus> torus;
  EXPECT_EQ(torus->GetAngles(), vtkTorusAlgorithm::ISOMETRIC);
  EXPECT_EQ(torus->GetPattern(), vtkTorusAlgorithm::SOFTMAX);
  EXPECT_EQ(torus->GetResidual(), vtkTorusAlgorithm::EMBEDDING_POSITION);
  EXPECT_EQ(torus->GetNumberOfHeadWeights(), 0);
  EXPECT_EQ(torus->GetWordInPattern(), 1);
  EXPECT_EQ(torus->GetPositionInPattern(), 1);
  EXPECT_EQ(torus->GetWordInValues(), 1);
  EXPECT_EQ(torus->GetPositionInValues(), 1);
  EXPECT_EQ(torus->GetResolution()[0], 512);
  EXPECT_EQ(torus->GetResolution()[1], 512);
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
