#include "FieldKernel.h"

#include "Targets.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "FieldKernel.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h comes before these, which are read once for each target.
#include "VectorMath-inl.h"
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;

inline constexpr std::size_t LaneCount = hn::MaxLanes(D());
/// Points are evaluated in groups of this many vectors, so that one's operations fill the time that
/// those of the other wait for their operands.
inline constexpr std::size_t Vectors = 2;
inline constexpr std::size_t GroupSize = Vectors * LaneCount;
/// Logits are computed this many classes at a time, which stay in the first-level cache.
inline constexpr std::size_t ClassChunk = 64;

static_assert(FieldGroup % GroupSize == 0, "columns are padded to whole groups");

/// A number for each point of a group.
struct Group
{
  V v[Vectors];

  static HWY_INLINE Group Load(const float* from)
  {
    Group group;
    for (std::size_t u = 0; u < Vectors; ++u)
    {
      group.v[u] = hn::LoadU(D(), from + u * LaneCount);
    }
    return group;
  }
};

HWY_INLINE V Apply(const Linear& linear, V x, V y)
{
  const D d;
  return hn::MulAdd(
    x, hn::Set(d, linear[0]), hn::MulAdd(y, hn::Set(d, linear[1]), hn::Set(d, linear[2])));
}

/// The number of points of vector `u` among the first `count` of a group.
HWY_INLINE std::size_t CountIn(std::size_t u, std::size_t count)
{
  return count <= u * LaneCount ? 0 : std::min(count - u * LaneCount, LaneCount);
}

/// Stores vector `u` of a group to the group's start `to`, or the part of it that lies among the
/// first `count` points.
template<bool Whole, class Vector, class T>
HWY_INLINE void Put(Vector v, T* to, std::size_t u, std::size_t count)
{
  const hn::ScalableTag<T> d;
  if (Whole)
  {
    hn::StoreU(v, d, to + u * LaneCount);
    return;
  }
  HWY_ALIGN T part[LaneCount];
  hn::Store(v, d, part);
  std::copy_n(part, CountIn(u, count), to + u * LaneCount);
}

/// The same for three components.
template<bool Whole>
HWY_INLINE void Put3(const V (&v)[3], float* to, std::size_t u, std::size_t count)
{
  const D d;
  if (Whole)
  {
    hn::StoreInterleaved3(v[0], v[1], v[2], d, to + 3 * u * LaneCount);
    return;
  }
  HWY_ALIGN float part[3 * LaneCount];
  hn::StoreInterleaved3(v[0], v[1], v[2], d, part);
  std::copy_n(part, 3 * CountIn(u, count), to + 3 * u * LaneCount);
}

/// Token 2 of the points of a row, which share it: numbers worked out once, by the same operations
/// as OwnSecond's, and broadcast.
class SharedSecond
{
public:
  SharedSecond(const FieldModel& model, float cosine, float sine, float* scratch)
    : Cos(cosine)
    , Sin(sine)
    , Values(scratch)
  {
    const D d;
    const V c = hn::Set(d, cosine);
    const V s = hn::Set(d, sine);
    const auto add = [&](const std::array<Linear, 3>& linear) HWY_ATTR
    {
      for (const Linear& component : linear)
      {
        *scratch++ = hn::GetLane(Apply(component, c, s));
      }
    };
    add(model.base);
    add(model.word);
    for (const FieldModel::Head& head : model.heads)
    {
      add(head.score);
    }
  }

  HWY_INLINE V Cosine(std::size_t) const { return hn::Set(D(), this->Cos); }
  HWY_INLINE V Sine(std::size_t) const { return hn::Set(D(), this->Sin); }
  HWY_INLINE V Base(const FieldModel&, std::size_t c, std::size_t) const
  {
    return hn::Set(D(), this->Values[c]);
  }
  HWY_INLINE V Word(const FieldModel&, std::size_t c, std::size_t) const
  {
    return hn::Set(D(), this->Values[3 + c]);
  }
  HWY_INLINE V Score(const FieldModel&, std::size_t h, std::size_t c, std::size_t) const
  {
    return hn::Set(D(), this->Values[6 + 3 * h + c]);
  }

private:
  float Cos;
  float Sin;
  const float* Values; ///< base, word, and the scores' coefficients of each head
};

/// Token 2 of a group in which each point has its own.
class OwnSecond
{
public:
  HWY_INLINE OwnSecond(const Group& cosine, const Group& sine)
    : Cos(cosine)
    , Sin(sine)
  {
  }

  HWY_INLINE V Cosine(std::size_t u) const { return this->Cos.v[u]; }
  HWY_INLINE V Sine(std::size_t u) const { return this->Sin.v[u]; }
  HWY_INLINE V Base(const FieldModel& model, std::size_t c, std::size_t u) const
  {
    return Apply(model.base[c], this->Cos.v[u], this->Sin.v[u]);
  }
  HWY_INLINE V Word(const FieldModel& model, std::size_t c, std::size_t u) const
  {
    return Apply(model.word[c], this->Cos.v[u], this->Sin.v[u]);
  }
  HWY_INLINE V Score(const FieldModel& model, std::size_t h, std::size_t c, std::size_t u) const
  {
    return Apply(model.heads[h].score[c], this->Cos.v[u], this->Sin.v[u]);
  }

private:
  Group Cos;
  Group Sin;
};

HWY_INLINE float* OfHead(const std::vector<float*>& arrays, std::size_t h)
{
  return arrays.empty() ? nullptr : arrays[h];
}

HWY_INLINE bool IsAnyWanted(const std::vector<float*>& arrays)
{
  return std::any_of(arrays.begin(), arrays.end(), [](const float* array) { return array; });
}

/// What has to be computed for what is wanted.
struct Wanted
{
  explicit Wanted(const FieldArrays& arrays)
    : probability(arrays.probability || arrays.classColor)
    , classes(arrays.predicted || arrays.logits || probability)
    , output(arrays.output || classes)
    , mixes(IsAnyWanted(arrays.wordMix) || IsAnyWanted(arrays.positionMix) ||
            IsAnyWanted(arrays.mix) || IsAnyWanted(arrays.headOutput))
  {
  }

  bool probability;
  bool classes;
  bool output;
  bool mixes;
};

/// The largest logit so far, its class, and sum_k exp(logit_k - largest).
struct Softmax
{
  Group largest;
  VI predicted[Vectors];
  Group sum;
};

/// Transposes the logits of `classes` classes, as EvaluateClasses keeps them, into an array of
/// `stride` numbers per point.
HWY_INLINE void PutLogits(
  const float* logits, std::size_t classes, float* to, std::size_t stride, std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i)
  {
    for (std::size_t k = 0; k < classes; ++k)
    {
      to[i * stride + k] = logits[k * GroupSize + i];
    }
  }
}

/// Stores class colours from the group's start `to` on, of which `room` bytes may be written.
HWY_INLINE void PutColors(
  const FieldModel& model, V probability, VI predicted, std::uint8_t* to, std::size_t room)
{
  const D d;
  const DI di;
  const V intensity = hn::Min(
    hn::Max(hn::MulAdd(probability, hn::Set(d, model.intensity[0]), hn::Set(d, model.intensity[2])),
      hn::Zero(d)),
    hn::Set(d, 1.F));
  const VI fading =
    model.classes <= LaneCount
      ? hn::TableLookupLanes(hn::LoadU(di, model.fading.data()), hn::IndicesFromVec(di, predicted))
      : hn::GatherIndex(di, model.fading.data(), predicted);
  // White less what the class takes from it, rounded to nearest.
  const V white = hn::Set(d, 255.5F);
  const VI byte = hn::Set(di, 255);
  const auto channel = [&](VI taken) HWY_ATTR
  { return hn::ConvertTo(di, hn::NegMulAdd(intensity, hn::ConvertTo(d, taken), white)); };
  const VI red = channel(hn::And(fading, byte));
  const VI green = channel(hn::And(hn::ShiftRight<8>(fading), byte));
  const VI blue = channel(hn::ShiftRight<16>(fading));
#if HWY_TARGET == HWY_SCALAR
  // This target has no vectors of bytes.
  to[0] = static_cast<std::uint8_t>(hn::GetLane(red));
  to[1] = static_cast<std::uint8_t>(hn::GetLane(green));
  to[2] = static_cast<std::uint8_t>(hn::GetLane(blue));
  (void)room;
#else
  const VI colors = hn::Or(red, hn::Or(hn::ShiftLeft<8>(green), hn::ShiftLeft<16>(blue)));
  // From 4 bytes per point to 3, first in each 16 bytes, then over the whole vector.
  const hn::Repartition<std::uint8_t, D> d8;
  HWY_ALIGN static constexpr std::uint8_t InBlock[16] = { 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14,
    12, 13, 14, 15 };
  VI packed =
    hn::BitCast(di, hn::TableLookupBytes(hn::BitCast(d8, colors), hn::LoadDup128(d8, InBlock)));
  if (LaneCount > 4)
  {
    HWY_ALIGN static constexpr std::int32_t Lane[2][16] = { { 0, 1, 2, 4, 5, 6, 0, 0 },
      { 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0 } };
    packed = hn::TableLookupLanes(packed, hn::SetTableIndices(di, Lane[LaneCount / 16]));
  }
  // The last quarter is overwritten by what comes next.
  if (room >= 4 * LaneCount)
  {
    hn::StoreU(hn::BitCast(d8, packed), d8, to);
    return;
  }
  HWY_ALIGN std::uint8_t part[4 * LaneCount];
  hn::Store(hn::BitCast(d8, packed), d8, part);
  std::copy_n(part, std::min(room, 3 * LaneCount), to);
#endif
}

/// Classes `begin` to before `end`: their logits to `logits`, and the largest among them.
HWY_INLINE void EvaluateLogits(const FieldModel& model, const Group (&r)[3], std::size_t begin,
  std::size_t end, float* HWY_RESTRICT logits, Softmax& softmax)
{
  const D d;
  const DI di;
  const float* HWY_RESTRICT row = model.unembedding.data() + 3 * begin;
  for (std::size_t k = begin; k < end; ++k, row += 3, logits += GroupSize)
  {
    const V w0 = hn::Set(d, row[0]);
    const V w1 = hn::Set(d, row[1]);
    const V w2 = hn::Set(d, row[2]);
    const VI index = hn::Set(di, static_cast<std::int32_t>(k));
    for (std::size_t u = 0; u < Vectors; ++u)
    {
      const V logit = hn::MulAdd(w0, r[0].v[u], hn::MulAdd(w1, r[1].v[u], hn::Mul(w2, r[2].v[u])));
      hn::Store(logit, d, logits + u * LaneCount);
      const auto isLarger = hn::RebindMask(di, hn::Gt(logit, softmax.largest.v[u]));
      softmax.largest.v[u] = hn::Max(softmax.largest.v[u], logit);
      softmax.predicted[u] = hn::IfThenElse(isLarger, index, softmax.predicted[u]);
    }
  }
}

template<bool Whole>
HWY_INLINE void EvaluateClasses(const FieldModel& model, const Group (&r)[3], const Wanted& wanted,
  const FieldArrays& arrays, std::size_t offset, std::size_t count)
{
  const D d;
  HWY_ALIGN float logits[ClassChunk * GroupSize];
  Softmax softmax;
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    softmax.largest.v[u] = hn::Set(d, -std::numeric_limits<float>::max());
    softmax.predicted[u] = hn::Zero(DI());
    softmax.sum.v[u] = hn::Zero(d);
  }
  for (std::size_t begin = 0; begin < model.classes; begin += ClassChunk)
  {
    const std::size_t end = std::min(begin + ClassChunk, model.classes);
    const Group before = softmax.largest;
    EvaluateLogits(model, r, begin, end, logits, softmax);
    if (arrays.logits)
    {
      PutLogits(logits, end - begin, arrays.logits + offset * model.classes + begin, model.classes,
        Whole ? GroupSize : count);
    }
    if (!wanted.probability)
    {
      continue;
    }
    if (begin > 0)
    {
      for (std::size_t u = 0; u < Vectors; ++u)
      {
        const V scale = ExpOfNegative(d, hn::Sub(before.v[u], softmax.largest.v[u]));
        softmax.sum.v[u] = hn::Mul(softmax.sum.v[u], scale);
      }
    }
    const float* HWY_RESTRICT logit = logits;
    for (std::size_t k = begin; k < end; ++k)
    {
      for (std::size_t u = 0; u < Vectors; ++u, logit += LaneCount)
      {
        const V term = ExpOfNegative(d, hn::Sub(hn::Load(d, logit), softmax.largest.v[u]));
        softmax.sum.v[u] = hn::Add(softmax.sum.v[u], term);
      }
    }
  }
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    if (arrays.predicted)
    {
      Put<Whole>(softmax.predicted[u], arrays.predicted + offset, u, count);
    }
    if (!wanted.probability)
    {
      continue;
    }
    const V probability = hn::Div(hn::Set(d, 1.F), softmax.sum.v[u]);
    if (arrays.probability)
    {
      Put<Whole>(probability, arrays.probability + offset, u, count);
    }
    if (arrays.classColor && (Whole || u * LaneCount < count))
    {
      PutColors(model, probability, softmax.predicted[u],
        arrays.classColor + 3 * (offset + u * LaneCount), 3 * (count - u * LaneCount));
    }
  }
}

/// The quantities of head `h` that few ask for.
template<bool Whole, class Second>
HWY_INLINE void EvaluateMixes(const FieldModel& model, std::size_t h, const Second& second,
  std::size_t u, V cosine, V sine, V attention, const FieldArrays& arrays, std::size_t offset,
  std::size_t count)
{
  const D d;
  V word[3];
  V position[3];
  V mix[3];
  for (std::size_t c = 0; c < 3; ++c)
  {
    word[c] = hn::MulAdd(attention, Apply(model.word[c], cosine, sine), second.Word(model, c, u));
    position[c] = Apply(model.position[c], attention, hn::Zero(d));
    mix[c] = hn::Add(word[c], position[c]);
  }
  const auto put = [&](const std::vector<float*>& to, const V(&values)[3]) HWY_ATTR
  {
    if (float* array = OfHead(to, h))
    {
      Put3<Whole>(values, array + 3 * offset, u, count);
    }
  };
  put(arrays.wordMix, word);
  put(arrays.positionMix, position);
  put(arrays.mix, mix);
  if (OfHead(arrays.headOutput, h))
  {
    V output[3];
    for (std::size_t c = 0; c < 3; ++c)
    {
      const std::array<float, 3>& row = model.heads[h].headOutput[c];
      output[c] = hn::MulAdd(hn::Set(d, row[0]), mix[0],
        hn::MulAdd(hn::Set(d, row[1]), mix[1], hn::Mul(hn::Set(d, row[2]), mix[2])));
    }
    put(arrays.headOutput, output);
  }
}

/// A group of points, of which the first `count` are stored from index `offset` on: all of them if
/// Whole, where `count` is how many points may be overwritten.
template<bool Whole, class Second>
HWY_INLINE void EvaluateGroup(const FieldModel& model, const Group& cosine1, const Group& sine1,
  const Second& second, const Wanted& wanted, const FieldArrays& arrays, std::size_t offset,
  std::size_t count)
{
  const D d;
  Group cosine;
  Group sine;
  Group r[3];
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    cosine.v[u] = hn::Sub(cosine1.v[u], second.Cosine(u));
    sine.v[u] = hn::Sub(sine1.v[u], second.Sine(u));
    for (std::size_t c = 0; c < 3; ++c)
    {
      r[c].v[u] = second.Base(model, c, u);
    }
  }
  for (std::size_t h = 0; h < model.heads.size(); ++h)
  {
    const FieldModel::Head& head = model.heads[h];
    float* scores = OfHead(arrays.score, h);
    float* attentions = OfHead(arrays.attention, h);
    for (std::size_t u = 0; u < Vectors; ++u)
    {
      const V score = hn::MulAdd(second.Score(model, h, 0, u), cosine.v[u],
        hn::MulAdd(second.Score(model, h, 1, u), sine.v[u], second.Score(model, h, 2, u)));
      const V attention = model.isHardmax
                            ? hn::IfThenElseZero(hn::Gt(score, hn::Zero(d)), hn::Set(d, 1.F))
                            : Logistic(d, score);
      if (scores)
      {
        Put<Whole>(score, scores + offset, u, count);
      }
      if (attentions)
      {
        Put<Whole>(attention, attentions + offset, u, count);
      }
      if (wanted.output)
      {
        for (std::size_t c = 0; c < 3; ++c)
        {
          r[c].v[u] =
            hn::MulAdd(attention, Apply(head.output[c], cosine.v[u], sine.v[u]), r[c].v[u]);
        }
      }
      if (wanted.mixes)
      {
        EvaluateMixes<Whole>(
          model, h, second, u, cosine.v[u], sine.v[u], attention, arrays, offset, count);
      }
    }
  }
  if (arrays.output)
  {
    for (std::size_t u = 0; u < Vectors; ++u)
    {
      Put3<Whole>({ r[0].v[u], r[1].v[u], r[2].v[u] }, arrays.output + 3 * offset, u, count);
    }
  }
  if (wanted.classes)
  {
    EvaluateClasses<Whole>(model, r, wanted, arrays, offset, count);
  }
}

void EvaluateRow(const FieldModel& model, const float* cosines, const float* sines,
  std::size_t count, float cosine2, float sine2, float* scratch, const FieldArrays& arrays,
  std::size_t offset)
{
  const SharedSecond second(model, cosine2, sine2, scratch);
  const Wanted wanted(arrays);
  std::size_t i = 0;
  for (; i + GroupSize <= count; i += GroupSize)
  {
    EvaluateGroup<true>(model, Group::Load(cosines + i), Group::Load(sines + i), second, wanted,
      arrays, offset + i, count - i);
  }
  if (i < count)
  {
    EvaluateGroup<false>(model, Group::Load(cosines + i), Group::Load(sines + i), second, wanted,
      arrays, offset + i, count - i);
  }
}

/// The coordinates of `count` embeddings, at most a group.
HWY_INLINE void Coordinates(
  const double* theta, std::size_t count, AngleMap angles, float* cosines, float* sines)
{
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN double padded[GroupSize];
  std::copy_n(theta, count, padded);
  std::fill(padded + count, padded + GroupSize, theta[count - 1]);
  for (std::size_t i = 0; i < GroupSize; i += lanes)
  {
    const auto t = hn::Load(d, padded + i);
    auto c = hn::Cos(d, t);
    auto s = hn::Sin(d, t);
    // Highway's functions are for angles up to 39000.
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Le(hn::Abs(t), hn::Set(d, 39000.)))))
    {
      HWY_ALIGN double cosine[hn::MaxLanes(d)];
      HWY_ALIGN double sine[hn::MaxLanes(d)];
      hn::Store(c, d, cosine);
      hn::Store(s, d, sine);
      for (std::size_t j = 0; j < lanes; ++j)
      {
        if (!(std::abs(padded[i + j]) <= 39000))
        {
          cosine[j] = std::cos(padded[i + j]);
          sine[j] = std::sin(padded[i + j]);
        }
      }
      c = hn::Load(d, cosine);
      s = hn::Load(d, sine);
    }
    if (angles == AngleMap::Skewed)
    {
      // (cos, sin, 0) in the basis u, v of the plane orthogonal to (1, 1, 1), normalized.
      const auto x = hn::Mul(c, hn::Set(d, std::sqrt(3.)));
      const auto y = hn::Sub(hn::Add(s, s), c);
      const auto norm = hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)));
      c = hn::Div(x, norm);
      s = hn::Div(y, norm);
    }
    hn::StoreU(hn::DemoteTo(df, c), df, cosines + i);
    hn::StoreU(hn::DemoteTo(df, s), df, sines + i);
  }
}

void CoordinatesOf(
  const double* theta, std::size_t count, AngleMap angles, float* cosines, float* sines)
{
  HWY_ALIGN float c[GroupSize];
  HWY_ALIGN float s[GroupSize];
  for (std::size_t i = 0; i < count; i += GroupSize)
  {
    const std::size_t group = std::min(GroupSize, count - i);
    Coordinates(theta + i, group, angles, c, s);
    std::copy_n(c, group, cosines + i);
    std::copy_n(s, group, sines + i);
  }
}

void EvaluatePoints(const FieldModel& model, const double* theta1, const double* theta2,
  std::size_t begin, std::size_t end, const FieldArrays& arrays)
{
  const Wanted wanted(arrays);
  HWY_ALIGN float coordinates[4][GroupSize];
  for (std::size_t i = begin; i < end; i += GroupSize)
  {
    const std::size_t count = std::min(GroupSize, end - i);
    Coordinates(theta1 + i, count, model.angles, coordinates[0], coordinates[1]);
    Coordinates(theta2 + i, count, model.angles, coordinates[2], coordinates[3]);
    const Group cosine1 = Group::Load(coordinates[0]);
    const Group sine1 = Group::Load(coordinates[1]);
    const OwnSecond second(Group::Load(coordinates[2]), Group::Load(coordinates[3]));
    if (count == GroupSize)
    {
      EvaluateGroup<true>(model, cosine1, sine1, second, wanted, arrays, i, end - i);
    }
    else
    {
      EvaluateGroup<false>(model, cosine1, sine1, second, wanted, arrays, i, count);
    }
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(CoordinatesOf);
HWY_EXPORT(EvaluateRow);
HWY_EXPORT(EvaluatePoints);

void EmbeddingCoordinates(
  const double* theta, std::size_t count, AngleMap angles, float* cosines, float* sines)
{
  HWY_DYNAMIC_DISPATCH(CoordinatesOf)(theta, count, angles, cosines, sines);
}

void EvaluateFieldRow(const FieldModel& model, const float* cosines, const float* sines,
  std::size_t count, double theta2, float* scratch, const FieldArrays& arrays, std::size_t offset)
{
  float cosine = 0;
  float sine = 0;
  EmbeddingCoordinates(&theta2, 1, model.angles, &cosine, &sine);
  HWY_DYNAMIC_DISPATCH(EvaluateRow)
  (model, cosines, sines, count, cosine, sine, scratch, arrays, offset);
}

void EvaluateFieldPoints(const FieldModel& model, const double* theta1, const double* theta2,
  std::size_t begin, std::size_t end, const FieldArrays& arrays)
{
  HWY_DYNAMIC_DISPATCH(EvaluatePoints)(model, theta1, theta2, begin, end, arrays);
}

}

#endif
