#include "FieldEvaluation.h"

#include "Base/Error.h"
#include "Drawing/ClassPalette.h"
#include "Internal/FieldKernel.h"
#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atlas
{
namespace
{

using Eigen::Matrix3d;
using Eigen::Vector3d;

/// w_h, or 1 if no weights are given.
double HeadWeight(const EvaluationOptions& options, std::size_t head)
{
  return options.headWeights.empty() ? 1 : options.headWeights[head];
}

/// Checks that no sum at any point can overflow float, so no array ever contains inf or NaN.
void CheckMagnitude(const AttentionOnlyModel& model, const EvaluationOptions& options)
{
  const double x =
    std::sqrt(3.0) + model.positionEmbedding.row(0).norm() + model.positionEmbedding.row(1).norm();
  double output = x;
  double largest = x;
  for (std::size_t h = 0; h < model.HeadCount(); ++h)
  {
    const AttentionHead& head = model.heads[h];
    const double headOutput = x * head.output.norm() * head.value.norm();
    largest = std::max({ largest, headOutput, 2 * x * x * head.query.norm() * head.key.norm() });
    output += std::abs(HeadWeight(options, h)) * headOutput;
  }
  largest = std::max({ largest, output, output * model.unembedding.norm() });
  ThrowIf<ModelError>(!(largest < static_cast<double>(std::numeric_limits<float>::max()) / 4),
    "the model's weights are too large to be evaluated in single precision: its scores, outputs or "
    "logits could reach ",
    largest, ".");
}

Matrix3d ByColumns(const Vector3d& first, const Vector3d& second, const Vector3d& third)
{
  Matrix3d matrix;
  matrix << first, second, third;
  return matrix;
}

/// The linear functions whose coefficients are the rows of `m`.
std::array<LinearFunction, 3> ByRow(const Matrix3d& m)
{
  std::array<LinearFunction, 3> rows;
  for (Eigen::Index row = 0; row < 3; ++row)
  {
    for (Eigen::Index column = 0; column < 3; ++column)
    {
      rows[row][column] = static_cast<float>(m(row, column));
    }
  }
  return rows;
}

/// The number for each lane of a vector.
Repeated Repeat(float number)
{
  Repeated repeated;
  repeated.numbers.fill(number);
  return repeated;
}

template<class Value>
auto Repeat(const std::array<Value, 3>& values)
{
  return std::array{ Repeat(values[0]), Repeat(values[1]), Repeat(values[2]) };
}

/// The intensity of the class color as a function of the probability (ColorIntensity): 1 at
/// certainty, 0 at chance level. Always 1 if there is only one class.
LinearFunction IntensityOf(std::size_t classes)
{
  if (classes < 2)
  {
    return { 0, 0, 1 };
  }
  const float chance = 1.F / static_cast<float>(classes);
  return { 1 / (1 - chance), 0, -chance / (1 - chance) };
}

FieldModel MakeFieldModel(const AttentionOnlyModel& model, const EvaluationOptions& options)
{
  // The columns of these matrices give x_s = e_s + p_s and x_1 - x_2 as linear functions of the
  // coordinates of FieldModel, for the pattern and for the values.
  const Vector3d cosine = EmbeddingAtAngle(0, AngleMap::Isometric);
  const Vector3d sine = EmbeddingAtAngle(std::acos(-1.0) / 2, AngleMap::Isometric);
  const Vector3d p1 = model.positionEmbedding.row(0).transpose();
  const Vector3d p2 = model.positionEmbedding.row(1).transpose();
  const auto parts = [&](bool word, bool position, const Vector3d& p)
  { return ByColumns(word * cosine, word * sine, position * p); };
  const Matrix3d inPattern = parts(options.wordInPattern, options.positionInPattern, p2);
  const Matrix3d patternDifference =
    parts(options.wordInPattern, options.positionInPattern, p1 - p2);
  const Matrix3d inValues = parts(options.wordInValues, options.positionInValues, p2);
  const Matrix3d valuesDifference = parts(options.wordInValues, options.positionInValues, p1 - p2);

  FieldModel field;
  field.angles = options.angles;
  field.isHardmax = options.pattern == Pattern::Hardmax;
  field.word = ByRow(parts(options.wordInValues, false, p2));
  field.position = ByRow(ByColumns(valuesDifference.col(2), Vector3d::Zero(), inValues.col(2)));
  Matrix3d base =
    parts(options.residual != Residual::None, options.residual == Residual::EmbeddingPosition, p2);
  const double scale = std::sqrt(static_cast<double>(model.HeadDimension()));
  for (std::size_t h = 0; h < model.HeadCount(); ++h)
  {
    const AttentionHead& head = model.heads[h];
    const Matrix3d scoreForm = head.query.transpose() * head.key / scale; // W_QK
    const Matrix3d outputForm = head.output * head.value;                 // W_O W_V
    const double weight = HeadWeight(options, h);
    base += weight * outputForm * inValues;
    field.heads.push_back(
      { ByRow(patternDifference.transpose() * scoreForm.transpose() * inPattern),
        Repeat(ByRow(weight * outputForm * valuesDifference)), ByRow(outputForm) });
  }
  field.base = ByRow(base);
  field.classes = static_cast<std::size_t>(model.VocabularySize());
  field.intensity = IntensityOf(field.classes);
  for (std::size_t k = 0; k < field.classes; ++k)
  {
    const Rgb color = ClassColor(static_cast<int>(k));
    LinearFunction row;
    std::int32_t fading = 0;
    for (std::size_t c = 0; c < 3; ++c)
    {
      row[c] = static_cast<float>(
        model.unembedding(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(c)));
      field.unembedding.push_back(row[c]);
      fading |= (255 - color[c]) << (8 * c);
      if (k < Repeated::Count)
      {
        field.fadingTable[c].numbers[k] = static_cast<float>(255 - color[c]);
      }
    }
    field.fading.push_back(fading);
    if (field.classes <= FewClasses)
    {
      field.fewUnembedding.push_back(Repeat(row));
    }
  }
  // Kernels read whole vectors.
  field.fading.resize(std::max(field.fading.size(), FieldGroup));
  return field;
}

}

FieldEvaluator::FieldEvaluator(const AttentionOnlyModel& model, const EvaluationOptions& options)
{
  CheckOptions(model, options);
  ThrowIf<OptionError>(options.residual == Residual::RawEmbedding,
    "Residual: RawEmbedding is defined at token pairs only.");
  CheckMagnitude(model, options);
  InitializeTarget();
  this->Model = std::make_shared<const FieldModel>(MakeFieldModel(model, options));
}

void FieldEvaluator::SetColumns(const std::vector<double>& theta1)
{
  this->ColumnCount = theta1.size();
  const std::size_t padded = (theta1.size() + FieldGroup - 1) / FieldGroup * FieldGroup;
  this->Cosines.assign(padded, 0);
  this->Sines.assign(padded, 0);
  EmbeddingCoordinates(
    theta1.data(), theta1.size(), this->Model->angles, this->Cosines.data(), this->Sines.data());
}

void FieldEvaluator::EvaluateRow(double theta2, const FieldArrays& arrays, std::size_t offset) const
{
  // Kept per thread and only grows, so evaluating a row does not allocate.
  static thread_local std::vector<Repeated> scratch;
  scratch.resize(std::max(scratch.size(), this->Model->RowScratchSize()));
  EvaluateFieldRow(*this->Model, this->Cosines.data(), this->Sines.data(), this->ColumnCount,
    theta2, scratch.data(), arrays, offset);
}

void FieldEvaluator::EvaluatePoints(const double* theta1, const double* theta2, std::size_t begin,
  std::size_t end, const FieldArrays& arrays) const
{
  EvaluateFieldPoints(*this->Model, theta1, theta2, begin, end, arrays);
}

}
