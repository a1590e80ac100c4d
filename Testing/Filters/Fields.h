#pragma once

#include "Core/Gather.h"
#include "Drawing/ClassPalette.h"
#include "Pipeline.h"

namespace atlas::test
{

/// Values at all points, by the names of AttentionTorus' arrays.
using Fields = std::map<std::string, std::vector<double>>;

/// Computes ClassColor by its definition from Class and Probability.
inline std::vector<double> ColorsOf(const Fields& fields, int classes)
{
  std::vector<double> colors;
  for (std::size_t i = 0; i < fields.at("Class").size(); ++i)
  {
    const Rgb color = Fade(ClassColor(static_cast<int>(fields.at("Class")[i])),
      ColorIntensity(static_cast<float>(fields.at("Probability")[i]), classes));
    colors.insert(colors.end(), color.begin(), color.end());
  }
  return colors;
}

/// The values of the reference evaluator, which is itself tested against the oracle.
inline Fields FieldsOf(const std::vector<Evaluation>& evaluations, int classes)
{
  Fields fields;
  for (const Evaluation& evaluation : evaluations)
  {
    fields["Class"].push_back(evaluation.predicted);
  }
  fields["Probability"] = Gather(evaluations, &Evaluation::probability);
  fields["Logits"] = Gather(evaluations, &Evaluation::logits);
  fields["Output"] = Gather(evaluations, &Evaluation::output);
  fields["ClassColor"] = ColorsOf(fields, classes);
  for (std::size_t h = 0; h < evaluations.front().heads.size(); ++h)
  {
    const std::string head = " " + std::to_string(h);
    fields["Score" + head] = Gather(evaluations, &HeadEvaluation::score, h, h + 1);
    fields["Attention" + head] = Gather(evaluations, &HeadEvaluation::attention, h, h + 1);
    fields["Word Mix" + head] = Gather(evaluations, &HeadEvaluation::wordMix, h, h + 1);
    fields["Position Mix" + head] = Gather(evaluations, &HeadEvaluation::positionMix, h, h + 1);
    fields["Mix" + head] = Gather(evaluations, &HeadEvaluation::mix, h, h + 1);
    fields["Head Output" + head] = Gather(evaluations, &HeadEvaluation::output, h, h + 1);
  }
  return fields;
}

/// Per point, whether its largest logit leads by more than the error of single precision.
inline std::vector<bool> AreDecided(const Fields& fields)
{
  const std::vector<double>& logits = fields.at("Logits");
  const std::size_t points = fields.at("Class").size();
  const auto classes = static_cast<std::ptrdiff_t>(logits.size() / points);
  std::vector<bool> decided;
  for (auto begin = logits.begin(); begin != logits.end(); begin += classes)
  {
    std::vector<double> sorted(begin, begin + classes);
    std::sort(sorted.rbegin(), sorted.rend());
    decided.push_back(sorted[0] - sorted[1] > 1e-4);
  }
  return decided;
}

/// Expects integers within `tolerance` wherever the class is decided, which it is nearly
/// everywhere.
inline void ExpectWhereDecided(const std::string& name, const std::vector<double>& found,
  const Fields& expected, double tolerance)
{
  const std::vector<double>& values = expected.at(name);
  const std::vector<bool> decided = AreDecided(expected);
  ASSERT_EQ(found.size(), values.size()) << name;
  const std::size_t components = values.size() / decided.size();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    if (decided[i / components] && std::abs(found[i] - values[i]) > tolerance)
    {
      ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0U) << name << ", of " << values.size() << " values";
  EXPECT_GT(std::count(decided.begin(), decided.end(), true),
    static_cast<std::int64_t>(decided.size()) * 9 / 10);
}

/// Expects the arrays `expected`, no more, no less, in the precision that the filter promises.
inline void ExpectFields(vtkDataSetAttributes* attributes, const Fields& expected)
{
  EXPECT_EQ(attributes->GetNumberOfArrays(), static_cast<int>(expected.size()));
  for (const auto& [name, values] : expected)
  {
    const std::vector<double> found = Values(attributes, name);
    if (name == "Class" || name == "ClassColor")
    {
      ExpectWhereDecided(name, found, expected, name == "Class" ? 0 : 1);
    }
    else
    {
      ExpectClose(name, found, values, 2e-5);
    }
  }
}

}
