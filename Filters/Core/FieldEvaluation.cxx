#include "FieldEvaluation.h"

#include "Error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atlas
{
namespace
{

using Eigen::Vector3d;
using Lanes = FieldEvaluator::Lanes;
using Lanes3 = FieldEvaluator::Lanes3;

/// Token 2 of a block whose points share it: plain numbers.
struct SharedSecond
{
  using Value = float;
  std::array<float, 3> embedding;
  std::vector<std::array<float, 3>> query; ///< per head: W_QK^T x_2
};

/// Token 2 of a block in which each point has its own: one lane per point.
struct OwnSecond
{
  using Value = Lanes;
  Lanes3 embedding;
  std::vector<Lanes3, Eigen::aligned_allocator<Lanes3>> query;
};

void Store(float* array, std::size_t offset, std::size_t count, const Lanes& lanes)
{
  std::copy_n(lanes.data(), count, array + offset);
}

void Store(float* array, std::size_t offset, std::size_t count, const Lanes3& lanes)
{
  float* out = array + 3 * offset;
  for (std::size_t i = 0; i < count; ++i)
  {
    for (std::size_t c = 0; c < 3; ++c)
    {
      *out++ = lanes[c].data()[i];
    }
  }
}

/// Stores to the array of head `h`, if that quantity is wanted.
template<class Values>
void StoreHead(const std::vector<float*>& arrays, std::size_t h, std::size_t offset,
  std::size_t count, const Values& values)
{
  if (!arrays.empty() && arrays[h] != nullptr)
  {
    Store(arrays[h], offset, count, values);
  }
}

Lanes Attention(const Lanes& score, Pattern pattern)
{
  if (pattern == Pattern::Hardmax)
  {
    return (score > 0.F).cast<float>();
  }
  return 1.F / (1.F + (-score).exp());
}

std::array<float, 3> ToFloat(const Vector3d& v)
{
  return { static_cast<float>(v.x()), static_cast<float>(v.y()), static_cast<float>(v.z()) };
}

}

FieldEvaluator::FieldEvaluator(const AttentionOnlyModel& model, const EvaluationOptions& options)
  : Options(options)
  , Unembedding(model.unembedding.cast<float>())
  , Position1(model.positionEmbedding.row(0).transpose())
  , Position2(model.positionEmbedding.row(1).transpose())
{
  CheckOptions(model, options);
  if (options.residual == Residual::RawEmbedding)
  {
    throw OptionError("Residual: RawEmbedding is defined at token pairs only.");
  }
  const double scale = std::sqrt(static_cast<double>(model.HeadDimension()));
  for (std::size_t h = 0; h < model.HeadCount(); ++h)
  {
    const AttentionHead& head = model.heads[h];
    const double weight = options.headWeights.empty() ? 1 : options.headWeights[h];
    this->Heads.push_back({ head.query.transpose() * head.key / scale,
      (head.output * head.value).cast<float>(), static_cast<float>(weight) });
  }
  for (int k = 0; k < static_cast<int>(model.VocabularySize()); ++k)
  {
    this->Colors.push_back(ClassColor(k));
  }
  this->CheckMagnitude(model);
}

/// No sum over a point may leave the range of float, so that no array ever holds inf or NaN.
void FieldEvaluator::CheckMagnitude(const AttentionOnlyModel& model) const
{
  const double x = std::sqrt(3.0) + this->Position1.norm() + this->Position2.norm();
  double output = x;
  double largest = x;
  for (std::size_t h = 0; h < this->Heads.size(); ++h)
  {
    const AttentionHead& head = model.heads[h];
    const double headOutput = x * head.output.norm() * head.value.norm();
    largest = std::max({ largest, headOutput, 2 * x * x * head.query.norm() * head.key.norm() });
    output += std::abs(static_cast<double>(this->Heads[h].weight)) * headOutput;
  }
  largest = std::max({ largest, output, output * model.unembedding.norm() });
  if (!(largest < static_cast<double>(std::numeric_limits<float>::max()) / 4))
  {
    throw ModelError("the model's weights are too large to be evaluated in single precision: its "
                     "scores, outputs or logits could reach " +
                     std::to_string(largest) + ".");
  }
}

void FieldEvaluator::SetColumns(const std::vector<double>& theta1)
{
  this->ColumnCount = theta1.size();
  this->Columns.resize((theta1.size() + BlockSize - 1) / BlockSize);
  for (std::size_t i = 0; i < this->Columns.size() * BlockSize; ++i)
  {
    // The last block is padded with copies of its last point.
    const double theta = theta1[std::min(i, theta1.size() - 1)];
    const Vector3d e = EmbeddingAtAngle(theta, this->Options.angles);
    for (std::size_t c = 0; c < 3; ++c)
    {
      this->Columns[i / BlockSize][c].data()[i % BlockSize] =
        static_cast<float>(e[static_cast<Eigen::Index>(c)]);
    }
  }
}

void FieldEvaluator::EvaluateRow(double theta2, const FieldArrays& arrays, std::size_t offset) const
{
  const Vector3d e2 = EmbeddingAtAngle(theta2, this->Options.angles);
  const Vector3d x2 =
    this->Options.wordInPattern * e2 + this->Options.positionInPattern * this->Position2;
  SharedSecond second;
  second.embedding = ToFloat(e2);
  for (const Head& head : this->Heads)
  {
    second.query.push_back(ToFloat(head.scoreForm.transpose() * x2));
  }
  for (std::size_t b = 0; b < this->Columns.size(); ++b)
  {
    const std::size_t begin = b * BlockSize;
    this->EvaluateBlock(this->Columns[b], second, arrays, offset + begin,
      std::min(BlockSize, this->ColumnCount - begin));
  }
}

void FieldEvaluator::EvaluatePoints(const double* theta1, const double* theta2, std::size_t begin,
  std::size_t end, const FieldArrays& arrays) const
{
  OwnSecond second;
  second.query.resize(this->Heads.size());
  Lanes3 e1;
  for (std::size_t block = begin; block < end; block += BlockSize)
  {
    for (std::size_t i = 0; i < BlockSize; ++i)
    {
      const std::size_t point = std::min(block + i, end - 1);
      const Vector3d first = EmbeddingAtAngle(theta1[point], this->Options.angles);
      const Vector3d e2 = EmbeddingAtAngle(theta2[point], this->Options.angles);
      const Vector3d x2 =
        this->Options.wordInPattern * e2 + this->Options.positionInPattern * this->Position2;
      for (std::size_t c = 0; c < 3; ++c)
      {
        const auto component = static_cast<Eigen::Index>(c);
        e1[c].data()[i] = static_cast<float>(first[component]);
        second.embedding[c].data()[i] = static_cast<float>(e2[component]);
      }
      for (std::size_t h = 0; h < this->Heads.size(); ++h)
      {
        const std::array<float, 3> query = ToFloat(this->Heads[h].scoreForm.transpose() * x2);
        for (std::size_t c = 0; c < 3; ++c)
        {
          second.query[h][c].data()[i] = query[c];
        }
      }
    }
    this->EvaluateBlock(e1, second, arrays, block, std::min(BlockSize, end - block));
  }
}

/// One block of points, `count` of which are stored. Blocks are always full, padded if need be, so
/// that each lane goes through the same instructions wherever it lies.
template<class Second>
void FieldEvaluator::EvaluateBlock(const Lanes3& e1, const Second& second,
  const FieldArrays& arrays, std::size_t offset, std::size_t count) const
{
  using Value = typename Second::Value;
  const EvaluationOptions& o = this->Options;
  const std::array<float, 3> p1 = ToFloat(this->Position1);
  const std::array<float, 3> p2 = ToFloat(this->Position2);

  Lanes3 embeddingDifference; // e_1 - e_2
  Lanes3 patternDifference;   // x_1 - x_2 as the pattern sees it
  Lanes3 r;
  for (std::size_t c = 0; c < 3; ++c)
  {
    embeddingDifference[c] = e1[c] - second.embedding[c];
    patternDifference[c] = Lanes::Constant(o.positionInPattern ? p1[c] - p2[c] : 0.F);
    if (o.wordInPattern)
    {
      patternDifference[c] += embeddingDifference[c];
    }
    r[c].setZero();
    if (o.residual != Residual::None)
    {
      r[c] += second.embedding[c] + (o.residual == Residual::EmbeddingPosition ? p2[c] : 0.F);
    }
  }

  for (std::size_t h = 0; h < this->Heads.size(); ++h)
  {
    const Head& head = this->Heads[h];
    const std::array<Value, 3>& query = second.query[h];
    const Lanes score = query[0] * patternDifference[0] + query[1] * patternDifference[1] +
                        query[2] * patternDifference[2];
    const Lanes attention = Attention(score, o.pattern);
    Lanes3 wordMix;
    Lanes3 positionMix;
    Lanes3 mix;
    for (std::size_t c = 0; c < 3; ++c)
    {
      wordMix[c].setZero();
      positionMix[c].setZero();
      if (o.wordInValues)
      {
        wordMix[c] += attention * embeddingDifference[c] + second.embedding[c];
      }
      if (o.positionInValues)
      {
        positionMix[c] += attention * (p1[c] - p2[c]) + p2[c];
      }
      mix[c] = wordMix[c] + positionMix[c];
    }
    Lanes3 output;
    for (std::size_t c = 0; c < 3; ++c)
    {
      const auto row = static_cast<Eigen::Index>(c);
      output[c] = head.outputForm(row, 0) * mix[0] + head.outputForm(row, 1) * mix[1] +
                  head.outputForm(row, 2) * mix[2];
      r[c] += head.weight * output[c];
    }
    StoreHead(arrays.score, h, offset, count, score);
    StoreHead(arrays.attention, h, offset, count, attention);
    StoreHead(arrays.wordMix, h, offset, count, wordMix);
    StoreHead(arrays.positionMix, h, offset, count, positionMix);
    StoreHead(arrays.mix, h, offset, count, mix);
    StoreHead(arrays.headOutput, h, offset, count, output);
  }
  if (arrays.output != nullptr)
  {
    Store(arrays.output, offset, count, r);
  }
  if (arrays.predicted || arrays.probability || arrays.classColor || arrays.logits)
  {
    this->EvaluateClasses(r, arrays, offset, count);
  }
}

void FieldEvaluator::EvaluateClasses(
  const Lanes3& r, const FieldArrays& arrays, std::size_t offset, std::size_t count) const
{
  const Eigen::Index classes = this->Unembedding.rows();
  const auto logit = [&](Eigen::Index k) -> Lanes
  {
    return this->Unembedding(k, 0) * r[0] + this->Unembedding(k, 1) * r[1] +
           this->Unembedding(k, 2) * r[2];
  };
  Lanes largest = logit(0);
  Eigen::Array<std::int32_t, BlockSize, 1> predicted =
    Eigen::Array<std::int32_t, BlockSize, 1>::Zero();
  for (Eigen::Index k = 0; k < classes; ++k)
  {
    const Lanes value = logit(k);
    predicted = (value > largest).select(static_cast<std::int32_t>(k), predicted);
    largest = largest.max(value);
    if (arrays.logits)
    {
      float* out = arrays.logits + offset * static_cast<std::size_t>(classes) + k;
      for (std::size_t i = 0; i < count; ++i)
      {
        out[i * static_cast<std::size_t>(classes)] = value.data()[i];
      }
    }
  }
  if (arrays.predicted)
  {
    std::copy_n(predicted.data(), count, arrays.predicted + offset);
  }
  if (!arrays.probability && !arrays.classColor)
  {
    return;
  }
  Lanes sum = Lanes::Zero();
  for (Eigen::Index k = 0; k < classes; ++k)
  {
    sum += (logit(k) - largest).exp();
  }
  const Lanes probability = 1.F / sum;
  if (arrays.probability)
  {
    Store(arrays.probability, offset, count, probability);
  }
  if (arrays.classColor)
  {
    std::uint8_t* out = arrays.classColor + 3 * offset;
    for (std::size_t i = 0; i < count; ++i)
    {
      const Rgb color = Fade(this->Colors[static_cast<std::size_t>(predicted.data()[i])],
        ColorIntensity(probability.data()[i], static_cast<int>(classes)));
      out = std::copy(color.begin(), color.end(), out);
    }
  }
}

}
