#include "ColoredArray.h"

#include "Base/TextEnds.h"
#include "ClassPalette.h"
#include "ColorLegend.h"
#include "TokenPalette.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>

namespace atlas
{
namespace
{

/// What the name of an array of colors ends in.
constexpr const char* ColorEnd = "Color";

/// Numbers up to this are categories.
constexpr int MaximumNumber = 15;

bool IsAmong(std::initializer_list<const char*> names, const std::string& array)
{
  return std::find(names.begin(), names.end(), array) != names.end();
}

/// The legend of an array whose numbers are categories: queries and keys, what a search has found,
/// or a few heads. Empty for others.
std::string NumberLegend(const ColoredArray& shown)
{
  ColorLegend legend(shown.array);
  if (shown.array == "Kind")
  {
    legend.Add(KindColor(TokenKind::Query), "query").Add(KindColor(TokenKind::Key), "key");
  }
  else if (shown.array == "Match")
  {
    legend.Add({ 204, 204, 204 }, "other").Add({ 178, 18, 31 }, "found");
  }
  else if (shown.array == "Head" && shown.components > 0 && shown.high <= MaximumNumber)
  {
    for (int i = 0; i <= static_cast<int>(shown.high); ++i)
    {
      legend.Add(ClassColor(i), std::to_string(i));
    }
  }
  else
  {
    return {};
  }
  return legend.Text();
}

using Points = std::vector<double>;

/// Attention and probability: white is 0 and black is 1, in every image.
const Points ShareScale = { 0, 1, 1, 1, 1, 0, 0, 0 };

/// Probability below black words: white is 0, blue is 1.
const Points WordScale = { 0, 1, 1, 1, 0.5, 0.72, 0.86, 0.96, 1, 0.36, 0.66, 0.89 };

/// Accuracy: white is 0, dark orange is 1.
const Points AccuracyScale = { 0, 1, 0.96, 0.92, 0.5, 0.99, 0.55, 0.23, 1, 0.5, 0.15, 0.01 };

/// Weights of AttentionMap: white is 0, dark blue is 1.
const Points WeightScale = { 0, 1, 1, 1, 0.2, 0.91, 0.95, 1, 0.4, 0.62, 0.79, 0.88, 0.6, 0.26, 0.57,
  0.78, 0.8, 0.03, 0.32, 0.61, 1, 0.03, 0.15, 0.36 };

/// Heat: inferno (van der Walt and Smith), perceptually uniform, from black at 0 to yellow at 1.
const Points HeatScale = { 0, 0.001, 0, 0.014, 0.125, 0.129, 0.047, 0.291, 0.25, 0.342, 0.062,
  0.429, 0.375, 0.541, 0.135, 0.415, 0.5, 0.736, 0.216, 0.33, 0.625, 0.894, 0.353, 0.194, 0.75,
  0.978, 0.558, 0.035, 0.875, 0.975, 0.798, 0.206, 1, 0.988, 0.998, 0.645 };

/// Heat on a surface whose shade shows its shape: light gray is 0, dark red is 1.
const Points RibbonScale = { 0, 0.86, 0.87, 0.88, 0.3, 0.99, 0.78, 0.42, 0.65, 0.9, 0.33, 0.12, 1,
  0.55, 0.02, 0.1 };

/// Lines of attention, on any background: pale to dark amber.
const Points LineScale = { 0, 1, 0.93, 0.66, 0.5, 0.93, 0.66, 0.08, 1, 0.42, 0.25, 0 };

/// Scores, and other values on both sides of 0: white is 0, of scores the decision boundary of the
/// hardmax.
const Points SignedScale = { -1, 0.23, 0.3, 0.75, 0, 1, 1, 1, 1, 0.7, 0.02, 0.15 };

/// The input of the softmax of AttentionMap: light to dark orange over the range of the data.
Points RangeScale(double low, double high)
{
  const double step = std::max(high - low, 1e-30) / 4;
  return { low, 1, 0.96, 0.92, low + step, 0.99, 0.82, 0.64, low + 2 * step, 0.99, 0.55, 0.24,
    low + 3 * step, 0.85, 0.28, 0, low + 4 * step, 0.5, 0.15, 0.02 };
}

/// A scale from 0 to 1, stretched to end at `largest`.
Points Stretched(Points points, double largest)
{
  for (std::size_t i = 0; i < points.size(); i += 4)
  {
    points[i] *= largest;
  }
  return points;
}

/// The scale of an array whose values have the same range in every image; empty for others.
Points FixedScale(const ColoredArray& shown)
{
  static const double pi = std::acos(-1.0);
  // Expert Weight is below numbers of experts. Angles from -pi to pi: red for the first token and
  // blue for the second, as in the source post.
  static const std::map<std::string, Points> scales = { { "Expert Weight", WordScale },
    { "Copying Score", SignedScale }, { "Weight", LineScale }, { "Weights", WeightScale },
    { "Theta1", { -pi, 1, 0.94, 0.9, 0, 0.94, 0.36, 0.26, pi, 0.4, 0, 0.05 } },
    { "Theta2", { -pi, 0.93, 0.96, 1, 0, 0.32, 0.6, 0.82, pi, 0.03, 0.19, 0.42 } } };
  if (shown.Shows("Attention") || IsAmong({ "Probability", "Prediction" }, shown.array))
  {
    return shown.hasWords ? WordScale : ShareScale;
  }
  const auto found = scales.find(shown.array);
  return found != scales.end() ? found->second : shown.Shows("Accuracy") ? AccuracyScale : Points();
}

}

bool IsNamed(const std::string& array, const std::string& name)
{
  const std::string begin = name + " ";
  return array == name || array.compare(0, begin.size(), begin) == 0;
}

void ColoredArray::Explain(const std::string& field, bool hasHints)
{
  if (EndsWith(this->array, ColorEnd) && !field.empty())
  {
    this->legend = field;
  }
  else if (hasHints)
  {
    this->legend = NumberLegend(*this);
  }
  this->ours = this->classes > 0 || !this->legend.empty() || hasHints;
}

std::string ColoredArray::Title() const
{
  if (this->HasLegend())
  {
    return this->legend.substr(0, this->legend.find('\n'));
  }
  static const std::map<std::string, const char*> titles = { { "ClassColor", "Class" },
    { "TargetColor", "Target" }, { "Heat", "Attention weight" },
    { "RelativeHeat", "Share of the head's largest value" }, { "Weight", "Attention weight" },
    { "Weights", "Attention weight" }, { "Scores", "Attention score" },
    { "Content", "Score of content" }, { "Bias", "Score of position" },
    { "NormWeighted", "Norm of weight x value" }, { "Accuracy", "Accuracy (share)" },
    { "Contribution", "Contribution (logits)" }, { "ScoreContribution", "Contribution to score" },
    { "Effect", "Effect of patch" }, { "Logit Difference", "Difference (logits)" },
    { "QK", "QK circuit (score)" }, { "OV", "OV circuit (logits)" },
    { "PositionQK", "QK of positions (score)" }, { "Expert Weight", "Weight of the expert" },
    { "Share", "Share of tokens" }, { "Bound Token", "Bound token (its position)" },
    { "sequence", "Residue (place in its chain)" }, { "Prediction", "Probability of contact" },
    { "Contact Evidence", "Evidence of contact" },
    { "Mutation Effect", "Effect of mutation (nats)" },
    { "Mean Effect", "Mean effect of mutations (nats)" },
    { "Activation", "Activation of the feature" } };
  if (!this->title.empty())
  {
    return this->title;
  }
  if (this->onPlaces && this->array == "Attention")
  {
    return "Attention of the query";
  }
  const auto found = titles.find(this->array);
  return found != titles.end() ? found->second : "";
}

bool ColoredArray::HasLegend() const
{
  return std::count(this->legend.begin(), this->legend.end(), '\n') > 1;
}

bool ColoredArray::ShowsColors() const
{
  return this->IsKnown() && (this->components == 3 || this->components == 4) && this->hasBytes &&
         EndsWith(this->array, ColorEnd);
}

bool ColoredArray::ShowsClasses() const
{
  return this->classes > 0 &&
         IsAmong({ "Class", "Target", "Predicted", "First", "Second", "ClassColor", "TargetColor" },
           this->array);
}

bool ColoredArray::IsHeat() const
{
  return this->IsKnown() && (this->array == "Heat" || this->array == "RelativeHeat" ||
                              (this->onPlaces && this->array == "Attention"));
}

bool ColoredArray::IsSigned() const
{
  return this->IsKnown() &&
         IsAmong({ "QK", "OV", "PositionQK", "Virtual Weights", "Contribution", "ScoreContribution",
                   "Effect", "Logit Difference", "Mutation Effect", "Mean Effect" },
           this->array);
}

bool ColoredArray::IsShare() const
{
  return IsAmong({ "Shared Tokens", "NormWeighted", "Rollout", "Previous Token", "Duplicate Token",
                   "Induction", "Prefix Matching", "Copying", "Sink", "Share" },
    this->array);
}

bool ColoredArray::IsFitted() const
{
  return IsAmong({ "Scores", "Content", "Bias", "Contact Evidence", "Activation" }, this->array) ||
         this->IsShare();
}

double ColoredArray::LargestMagnitude() const
{
  return std::max({ std::abs(this->low), std::abs(this->high), 1e-30 });
}

std::vector<double> ColoredArray::Scale(double largest) const
{
  if (this->IsHeat() || this->IsSigned())
  {
    const Points& heat = this->onRibbon ? RibbonScale : HeatScale;
    return Stretched(this->IsHeat() ? heat : SignedScale, largest);
  }
  if (this->IsFitted() && this->components > 0)
  {
    return this->IsShare() ? Stretched(WeightScale, std::max(this->high, 1e-30))
                           : RangeScale(this->low, this->high);
  }
  if (this->Shows("Score") && this->components > 0)
  {
    return Stretched(SignedScale, this->LargestMagnitude());
  }
  return FixedScale(*this);
}

}
