#include "FieldKernel.h"

#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "AttentionOnly/Internal/FieldKernel.cxx"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include "Numerics/VectorMath-inl.h"
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

inline constexpr std::size_t LaneCount = hn::MaxLanes(D());
/// Points are evaluated in blocks of this size, whose intermediate results stay in the L1 cache.
/// Each step is done for all points of a block before the next step, so that the processor always
/// has independent operations. Steps are short: it looks ahead over only a few vectors of points.
inline constexpr std::size_t BlockSize = 128;
/// Classes are evaluated for groups of this many vectors, which stay in registers.
inline constexpr std::size_t Vectors = 2;
inline constexpr std::size_t GroupSize = Vectors * LaneCount;
/// At most this many heads are evaluated together, so that r is stored once for all of them.
inline constexpr std::size_t HeadChunk = 3;
/// The largest number of classes whose logits are kept for a group.
inline constexpr std::size_t ClassChunk = 64;

static_assert(FieldGroup % GroupSize == 0 && BlockSize % FieldGroup == 0, "groups are whole");

/// The intermediate results of a block. The last block of a row also fills whole groups.
struct Block
{
  HWY_ALIGN float r[3][BlockSize];
  HWY_ALIGN float attention[HeadChunk][BlockSize];
  HWY_ALIGN float largest[BlockSize];                ///< largest logit so far
  HWY_ALIGN std::int32_t predicted[BlockSize];       ///< its class
  HWY_ALIGN float sum[BlockSize];                    ///< of exp(logit - largest)
  HWY_ALIGN float others[FewClasses - 1][BlockSize]; ///< the other logits, if there are few
  HWY_ALIGN float logits[ClassChunk * GroupSize];
  HWY_ALIGN float output[3 * BlockSize]; ///< values that do not fill the last vector of their array
  std::size_t count;                     ///< of points
  std::size_t size;                      ///< count, rounded up to whole groups
};

/// Where to write the next `components * block.count` numbers of an array: to the array itself if
/// they fill whole groups, else to `buffer`, from which Finish copies them.
template<class T>
class Destination
{
public:
  HWY_INLINE Destination(
    const Block& block, T* array, std::size_t offset, T* buffer, std::size_t components = 1)
    : Array(array ? array + components * offset : nullptr)
    , Count(components * block.count)
    , Begin(array && block.count == block.size ? this->Array : buffer)
  {
  }

  HWY_INLINE T* Get() const { return this->Begin; }
  HWY_INLINE void Finish() const
  {
    if (this->Array && this->Array != this->Begin)
    {
      std::copy_n(this->Begin, this->Count, this->Array);
    }
  }

private:
  T* Array;
  std::size_t Count;
  T* Begin;
};

/// row . (x, y, z)
HWY_INLINE V Dot(const float* row, V x, V y, V z)
{
  const D d;
  return hn::MulAdd(
    hn::Set(d, row[0]), x, hn::MulAdd(hn::Set(d, row[1]), y, hn::Mul(hn::Set(d, row[2]), z)));
}

HWY_INLINE V Apply(V ofX, V ofY, V constant, V x, V y)
{
  return hn::MulAdd(x, ofX, hn::MulAdd(y, ofY, constant));
}

/// A number that FieldModel repeats for all lanes.
HWY_INLINE V Get(const Repeated& number)
{
  static_assert(LaneCount <= Repeated::Count, "a vector can be read");
  return hn::Load(D(), number.numbers.data());
}

HWY_INLINE V Apply(const RepeatedLinear& linear, V x, V y)
{
  return Apply(Get(linear[0]), Get(linear[1]), Get(linear[2]), x, y);
}

HWY_INLINE V Apply(const LinearFunction& linear, V x, V y)
{
  const D d;
  return Apply(hn::Set(d, linear[0]), hn::Set(d, linear[1]), hn::Set(d, linear[2]), x, y);
}

using Group = Batch<Vectors>;

HWY_INLINE Group Load(const float* from)
{
  Group group;
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    group.v[u] = hn::LoadU(D(), from + u * LaneCount);
  }
  return group;
}

HWY_INLINE void Store(const Group& group, float* to)
{
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    hn::StoreU(group.v[u], D(), to + u * LaneCount);
  }
}

/// Token 2 of the points of a row, which share it: computed once, by the same operations as in
/// OwnSecond, for all lanes of a vector.
class SharedSecond
{
public:
  SharedSecond(const FieldModel& model, float cosine, float sine, Repeated* scratch)
    : Cos(cosine)
    , Sin(sine)
    , Values(scratch)
  {
    const D d;
    const V c = hn::Set(d, cosine);
    const V s = hn::Set(d, sine);
    const auto add = [&](const std::array<LinearFunction, 3>& linear) HWY_ATTR
    {
      for (const LinearFunction& component : linear)
      {
        hn::Store(Apply(component, c, s), d, scratch->numbers.data());
        ++scratch;
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
  HWY_INLINE V Base(const FieldModel&, std::size_t c, std::size_t) const { return this->Value(c); }
  HWY_INLINE V Word(const FieldModel&, std::size_t c, std::size_t) const
  {
    return this->Value(3 + c);
  }
  HWY_INLINE V Score(const FieldModel::Head&, std::size_t h, std::size_t c, std::size_t) const
  {
    return this->Value(6 + 3 * h + c);
  }

private:
  float Cos;
  float Sin;
  const Repeated* Values; ///< base, word, and the scores' coefficients of each head

  HWY_INLINE V Value(std::size_t k) const { return Get(this->Values[k]); }
};

/// Token 2 of a block in which each point has its own token 2.
class OwnSecond
{
public:
  HWY_INLINE OwnSecond(const float* cosines, const float* sines)
    : Cosines(cosines)
    , Sines(sines)
  {
  }

  HWY_INLINE V Cosine(std::size_t i) const { return hn::Load(D(), this->Cosines + i); }
  HWY_INLINE V Sine(std::size_t i) const { return hn::Load(D(), this->Sines + i); }
  HWY_INLINE V Base(const FieldModel& model, std::size_t c, std::size_t i) const
  {
    return Apply(model.base[c], this->Cosine(i), this->Sine(i));
  }
  HWY_INLINE V Word(const FieldModel& model, std::size_t c, std::size_t i) const
  {
    return Apply(model.word[c], this->Cosine(i), this->Sine(i));
  }
  HWY_INLINE V Score(const FieldModel::Head& head, std::size_t, std::size_t c, std::size_t i) const
  {
    return Apply(head.score[c], this->Cosine(i), this->Sine(i));
  }

private:
  const float* Cosines;
  const float* Sines;
};

/// The points of a block: token 1 and token 2 of each.
template<class Second>
struct Tokens
{
  const float* cosines; ///< c_1
  const float* sines;   ///< s_1
  Second second;

  /// c_1 - c_2
  HWY_INLINE V X(std::size_t i) const
  {
    return hn::Sub(hn::LoadU(D(), this->cosines + i), this->second.Cosine(i));
  }
  /// s_1 - s_2
  HWY_INLINE V Y(std::size_t i) const
  {
    return hn::Sub(hn::LoadU(D(), this->sines + i), this->second.Sine(i));
  }
};

HWY_INLINE float* OfHead(const std::vector<float*>& arrays, std::size_t h)
{
  return arrays.empty() ? nullptr : arrays[h];
}

/// The score of `head`, which is head `h`, at the points from `i` on, whose differences are x and
/// y.
template<class Second>
HWY_INLINE V Score(
  const FieldModel::Head& head, std::size_t h, const Second& second, std::size_t i, V x, V y)
{
  return Apply(
    second.Score(head, h, 0, i), second.Score(head, h, 1, i), second.Score(head, h, 2, i), x, y);
}

/// Computes 1 + e^-score of `Heads` heads from head `first` on. The quotients are left to the next
/// step, in which they take no time of their own.
template<std::size_t Heads, class Second>
HWY_INLINE void EvaluateScores(
  const FieldModel& model, std::size_t first, Tokens<Second> tokens, Block& block)
{
  const D d;
  const FieldModel::Head* heads = model.heads.data() + first;
  constexpr std::size_t U = Heads < 3 ? Vectors : 1; // vectors of points at a time
  const std::size_t size = block.size;
  for (std::size_t i = 0; i < size; i += U * LaneCount)
  {
    Batch<Heads * U> score;
    Batch<Heads * U> ones;
    for (std::size_t u = 0; u < U; ++u)
    {
      const std::size_t at = i + u * LaneCount;
      const V x = tokens.X(at);
      const V y = tokens.Y(at);
      for (std::size_t j = 0; j < Heads; ++j)
      {
        score.v[u * Heads + j] = Score(heads[j], first + j, tokens.second, at, x, y);
        ones.v[u * Heads + j] = hn::Set(d, 1.F);
      }
    }
    const V highest = hn::Set(d, ExpLimit);
    const V lowest = hn::Set(d, -ExpLimit);
    const Batch<Heads * U> sum = AddExpOfMinus(
      Map([&](V v) HWY_ATTR { return hn::Max(hn::Min(v, highest), lowest); }, score), ones);
    for (std::size_t u = 0; u < U; ++u)
    {
      for (std::size_t j = 0; j < Heads; ++j)
      {
        hn::Store(sum.v[u * Heads + j], d, block.attention[j] + i + u * LaneCount);
      }
    }
  }
}

/// Computes the attention of `Heads` heads from head `first` on, and adds their outputs to r, which
/// starts from the base if they are the first heads.
template<std::size_t Heads, bool IsFirst, class Second>
HWY_INLINE void EvaluateAttention(const FieldModel& model, std::size_t first, Tokens<Second> tokens,
  Block& block, std::array<float*, Heads> attentions)
{
  const D d;
  const FieldModel::Head* heads = model.heads.data() + first;
  const std::size_t size = block.size;
  const bool isHardmax = model.isHardmax;
  for (std::size_t i = 0; i < size; i += LaneCount)
  {
    const V x = tokens.X(i);
    const V y = tokens.Y(i);
    V attention[Heads];
    for (std::size_t j = 0; j < Heads; ++j)
    {
      if (isHardmax)
      {
        const V score = Score(heads[j], first + j, tokens.second, i, x, y);
        attention[j] = hn::IfThenElseZero(hn::Gt(score, hn::Zero(d)), hn::Set(d, 1.F));
      }
      else
      {
        attention[j] = hn::Div(hn::Set(d, 1.F), hn::Load(d, block.attention[j] + i));
      }
      hn::StoreU(attention[j], d, attentions[j] + i);
    }
    for (std::size_t c = 0; c < 3; ++c)
    {
      V r = IsFirst ? tokens.second.Base(model, c, i) : hn::Load(d, block.r[c] + i);
      for (std::size_t j = 0; j < Heads; ++j)
      {
        r = hn::MulAdd(attention[j], Apply(heads[j].output[c], x, y), r);
      }
      hn::Store(r, d, block.r[c] + i);
    }
  }
}

/// Computes the rarely selected quantities of head `h`.
template<class Second>
HWY_NOINLINE void EvaluateMixes(const FieldModel& model, std::size_t h,
  const Tokens<Second>& tokens, Block& block, const float* attentions, const FieldArrays& arrays,
  std::size_t offset)
{
  const D d;
  const Second& second = tokens.second;
  if (float* array = OfHead(arrays.score, h))
  {
    const Destination<float> destination(block, array, offset, block.output);
    for (std::size_t i = 0; i < block.size; i += LaneCount)
    {
      hn::StoreU(
        Score(model.heads[h], h, second, i, tokens.X(i), tokens.Y(i)), d, destination.Get() + i);
    }
    destination.Finish();
  }
  const auto evaluate = [&](const std::vector<float*>& to, const auto& function) HWY_ATTR
  {
    if (float* array = OfHead(to, h))
    {
      const Destination<float> destination(block, array, offset, block.output, 3);
      for (std::size_t i = 0; i < block.size; i += LaneCount)
      {
        const V x = function(0, i);
        hn::StoreInterleaved3(x, function(1, i), function(2, i), d, destination.Get() + 3 * i);
      }
      destination.Finish();
    }
  };
  const auto word = [&](std::size_t c, std::size_t i) HWY_ATTR
  {
    const V difference = Apply(model.word[c], tokens.X(i), tokens.Y(i));
    return hn::MulAdd(hn::LoadU(d, attentions + i), difference, second.Word(model, c, i));
  };
  const auto position = [&](std::size_t c, std::size_t i) HWY_ATTR
  { return Apply(model.position[c], hn::LoadU(d, attentions + i), hn::Zero(d)); };
  const auto mix = [&](std::size_t c, std::size_t i) HWY_ATTR
  { return hn::Add(word(c, i), position(c, i)); };
  const auto output = [&](std::size_t c, std::size_t i) HWY_ATTR
  { return Dot(model.heads[h].headOutput[c].data(), mix(0, i), mix(1, i), mix(2, i)); };
  evaluate(arrays.wordMix, word);
  evaluate(arrays.positionMix, position);
  evaluate(arrays.mix, mix);
  evaluate(arrays.headOutput, output);
}

/// Evaluates `Heads` heads from head `first` on.
template<std::size_t Heads, class Second>
HWY_NOINLINE void EvaluateHeads(const FieldModel& model, std::size_t first,
  const Tokens<Second>& tokens, Block& block, const FieldArrays& arrays, std::size_t offset)
{
  std::array<float*, Heads> attentions;
  const auto destination = [&](std::size_t j) HWY_ATTR
  {
    return Destination<float>(
      block, OfHead(arrays.attention, first + j), offset, block.attention[j]);
  };
  for (std::size_t j = 0; j < Heads; ++j)
  {
    attentions[j] = destination(j).Get();
  }
  if (!model.isHardmax)
  {
    EvaluateScores<Heads>(model, first, tokens, block);
  }
  if (first == 0)
  {
    EvaluateAttention<Heads, true>(model, first, tokens, block, attentions);
  }
  else
  {
    EvaluateAttention<Heads, false>(model, first, tokens, block, attentions);
  }
  for (std::size_t j = 0; j < Heads; ++j)
  {
    destination(j).Finish();
    EvaluateMixes(model, first + j, tokens, block, attentions[j], arrays, offset);
  }
}

/// Computes r, and the selected quantities of the heads.
template<class Second>
HWY_INLINE void EvaluateHeads(const FieldModel& model, const Tokens<Second>& tokens, Block& block,
  const FieldArrays& arrays, std::size_t offset)
{
  const std::size_t heads = model.heads.size();
  for (std::size_t first = 0; first < heads; first += HeadChunk)
  {
    switch (heads - first)
    {
      case 1:
        EvaluateHeads<1>(model, first, tokens, block, arrays, offset);
        break;
      case 2:
        EvaluateHeads<2>(model, first, tokens, block, arrays, offset);
        break;
      default:
        EvaluateHeads<3>(model, first, tokens, block, arrays, offset);
    }
  }
}

/// Stores the logits of all classes at `to`, N numbers per point.
HWY_NOINLINE void PutLogits(const FieldModel& model, const Block& block, float* to)
{
  const D d;
  HWY_ALIGN float logits[LaneCount];
  for (std::size_t i = 0; i < block.count; i += LaneCount)
  {
    const std::size_t count = std::min(LaneCount, block.count - i);
    for (std::size_t k = 0; k < model.classes; ++k)
    {
      const V logit = Dot(model.unembedding.data() + 3 * k, hn::Load(d, block.r[0] + i),
        hn::Load(d, block.r[1] + i), hn::Load(d, block.r[2] + i));
      hn::Store(logit, d, logits);
      for (std::size_t j = 0; j < count; ++j)
      {
        to[(i + j) * model.classes + k] = logits[j];
      }
    }
  }
}

/// x - y, or the limit of the exponential if that is smaller, for x >= y
HWY_INLINE V Limited(V x, V y)
{
  return hn::Min(hn::Sub(x, y), hn::Set(D(), ExpLimit));
}

/// Computes the logits of classes begin <= k < end for the group of points that starts at `i`.
/// Updates the largest logit with its class, and rescales the sum of exponentials to it.
HWY_INLINE void EvaluateLogits(const FieldModel& model, Block& block, std::size_t i,
  std::size_t begin, std::size_t end, float* HWY_RESTRICT logits)
{
  const D d;
  const DI di;
  V r[3][Vectors];
  V largest[Vectors];
  VI predicted[Vectors];
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    for (std::size_t c = 0; c < 3; ++c)
    {
      r[c][u] = hn::Load(d, block.r[c] + i + u * LaneCount);
    }
    largest[u] = hn::Load(d, block.largest + i + u * LaneCount);
    predicted[u] = hn::Load(di, block.predicted + i + u * LaneCount);
  }
  const float* HWY_RESTRICT row = model.unembedding.data() + 3 * begin;
  VI index = hn::Set(di, static_cast<std::int32_t>(begin));
  for (std::size_t k = begin; k < end; ++k, row += 3, logits += GroupSize)
  {
    for (std::size_t u = 0; u < Vectors; ++u)
    {
      const V logit = Dot(row, r[0][u], r[1][u], r[2][u]);
      hn::Store(logit, d, logits + u * LaneCount);
      const auto isLarger = hn::RebindMask(di, hn::Gt(logit, largest[u]));
      largest[u] = hn::Max(largest[u], logit);
      predicted[u] = hn::IfThenElse(isLarger, index, predicted[u]);
    }
    index = hn::Add(index, hn::Set(di, 1));
  }
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    float* sum = block.sum + i + u * LaneCount;
    if (begin > 0)
    {
      const V before = hn::Load(d, block.largest + i + u * LaneCount);
      const Batch<1> zero = { { hn::Zero(d) } };
      const V scale = AddExpOfMinus(Batch<1>{ { Limited(largest[u], before) } }, zero).v[0];
      hn::Store(hn::Mul(hn::Load(d, sum), scale), d, sum);
    }
    hn::Store(largest[u], d, block.largest + i + u * LaneCount);
    hn::Store(predicted[u], di, block.predicted + i + u * LaneCount);
  }
}

/// Adds the exponentials of `classes` classes of the group of points that starts at `i`.
HWY_INLINE void SumExponentials(
  Block& block, std::size_t i, std::size_t classes, const float* HWY_RESTRICT logits)
{
  const D d;
  const Group largest = Load(block.largest + i);
  // Two classes at a time, with a sum of their own each.
  Batch<2 * Vectors> sums;
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    sums.v[u] = hn::Load(d, block.sum + i + u * LaneCount);
    sums.v[u + Vectors] = hn::Zero(d);
  }
  std::size_t k = 0;
  for (; k + 2 <= classes; k += 2, logits += 2 * GroupSize)
  {
    Batch<2 * Vectors> below;
    for (std::size_t u = 0; u < 2 * Vectors; ++u)
    {
      below.v[u] = Limited(largest.v[u % Vectors], hn::Load(d, logits + u * LaneCount));
    }
    sums = AddExpOfMinus(below, sums);
  }
  Group sum;
  for (std::size_t u = 0; u < Vectors; ++u)
  {
    sum.v[u] = hn::Add(sums.v[u], sums.v[u + Vectors]);
  }
  if (k < classes)
  {
    sum = AddExpOfMinus(Map(Limited, largest, Load(logits)), sum);
  }
  Store(sum, block.sum + i);
}

/// The class colors of a vector of points, with red in the lowest 8 bits, then green and blue. The
/// highest 8 bits are arbitrary.
HWY_INLINE VI Colors(const FieldModel& model, V probability, VI predicted)
{
  const D d;
  const DI di;
  const V intensity =
    hn::MulAdd(probability, hn::Set(d, model.intensity[0]), hn::Set(d, model.intensity[2]));
  // White minus the fading of the class. Adding 2^23 rounds to nearest and leaves the number in the
  // lowest bits. It is from 0 to 255 without clamping: the intensity is from 0 to 1 but for
  // rounding errors, which change no channel by half a unit.
  const V white = hn::Set(d, 8388608.F + 255);
  const auto channel = [&](V fading) HWY_ATTR
  { return hn::BitCast(di, hn::NegMulAdd(intensity, fading, white)); };
  VI red;
  VI green;
  VI blue;
  if (model.classes <= LaneCount)
  {
    const auto index = hn::IndicesFromVec(d, predicted);
    const auto ofTable = [&](std::size_t c) HWY_ATTR
    { return channel(hn::TableLookupLanes(Get(model.fadingTable[c]), index)); };
    red = ofTable(0);
    green = ofTable(1);
    blue = ofTable(2);
  }
  else
  {
    const VI fading = hn::GatherIndex(di, model.fading.data(), predicted);
    const VI byte = hn::Set(di, 255);
    red = channel(hn::ConvertTo(d, hn::And(fading, byte)));
    green = channel(hn::ConvertTo(d, hn::And(hn::ShiftRight<8>(fading), byte)));
    blue = channel(hn::ConvertTo(d, hn::ShiftRight<16>(fading)));
  }
  return hn::Or(red, hn::Or(hn::ShiftLeft<8>(green), hn::ShiftLeft<16>(blue)));
}

/// Stores colors at `to`, where `room` bytes may be written.
HWY_INLINE void PutColors(VI colors, std::uint8_t* to, std::size_t room)
{
#if HWY_TARGET == HWY_SCALAR
  // This target has no vectors of bytes.
  const auto color = static_cast<std::uint32_t>(hn::GetLane(colors));
  for (std::size_t c = 0; c < std::min<std::size_t>(room, 3); ++c)
  {
    to[c] = static_cast<std::uint8_t>(color >> (8 * c));
  }
#else
  const DI di;
  // Packs 4 bytes per point to 3, first within each 16 bytes, then over the whole vector.
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
  // The last quarter is overwritten by the next store.
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

/// Stores the wanted probabilities and colors of a block with these classes.
HWY_INLINE void PutProbabilities(const FieldModel& model, Block& block, const FieldArrays& arrays,
  std::size_t offset, const std::int32_t* predicted)
{
  const D d;
  const Destination<float> destination(block, arrays.probability, offset, block.output);
  std::uint8_t* colors = arrays.classColor ? arrays.classColor + 3 * offset : nullptr;
  for (std::size_t i = 0; i < block.size; i += LaneCount)
  {
    const V probability = hn::Div(hn::Set(d, 1.F), hn::Load(d, block.sum + i));
    hn::StoreU(probability, d, destination.Get() + i);
    if (colors && i < block.count)
    {
      const VI color = Colors(model, probability, hn::LoadU(DI(), predicted + i));
      PutColors(color, colors + 3 * i, 3 * (block.count - i));
    }
  }
  destination.Finish();
}

/// Computes the logits of a model with `Classes` classes: the largest, its class, and the others.
/// Each comparison keeps the larger one and leaves the other, so that all but the largest are left.
template<std::size_t Classes>
HWY_INLINE void EvaluateFewLogits(
  const FieldModel& model, Block& block, std::int32_t* HWY_RESTRICT predicted)
{
  const D d;
  const DI di;
  const RepeatedLinear* HWY_RESTRICT unembedding = model.fewUnembedding.data();
  const std::size_t size = block.size;
  for (std::size_t i = 0; i < size; i += LaneCount)
  {
    const V x = hn::Load(d, block.r[0] + i);
    const V y = hn::Load(d, block.r[1] + i);
    const V z = hn::Load(d, block.r[2] + i);
    const auto logit = [&](std::size_t k) HWY_ATTR
    {
      const RepeatedLinear& row = unembedding[k];
      return hn::MulAdd(Get(row[0]), x, hn::MulAdd(Get(row[1]), y, hn::Mul(Get(row[2]), z)));
    };
    V largest = logit(0);
    VI index = hn::Zero(di);
    for (std::size_t k = 1; k < Classes; ++k)
    {
      const V next = logit(k);
      const auto isLarger = hn::RebindMask(di, hn::Gt(next, largest));
      index = hn::IfThenElse(isLarger, hn::Set(di, static_cast<std::int32_t>(k)), index);
      hn::Store(hn::Min(next, largest), d, block.others[k - 1] + i);
      largest = hn::Max(next, largest);
    }
    hn::StoreU(index, di, predicted + i);
    hn::Store(largest, d, block.largest + i);
  }
}

/// Computes the sum of exp(logit - largest). The term of the largest is 1 and needs no exponential.
template<std::size_t Classes>
HWY_INLINE void SumFewExponentials(Block& block)
{
  const D d;
  constexpr std::size_t Others = Classes - 1;
  constexpr std::size_t U = Classes < 4 ? Vectors : 1; // vectors of points at a time
  const std::size_t size = block.size;
  for (std::size_t i = 0; i < size; i += U * LaneCount)
  {
    Batch<Others * U> terms;
    Batch<Others * U> start;
    for (std::size_t u = 0; u < U; ++u)
    {
      const std::size_t at = i + u * LaneCount;
      const V largest = hn::Load(d, block.largest + at);
      for (std::size_t k = 0; k < Others; ++k)
      {
        terms.v[u * Others + k] = Limited(largest, hn::Load(d, block.others[k] + at));
        start.v[u * Others + k] = k == 0 ? hn::Set(d, 1.F) : hn::Zero(d);
      }
    }
    terms = AddExpOfMinus(terms, start);
    for (std::size_t u = 0; u < U; ++u)
    {
      V sum = terms.v[u * Others];
      for (std::size_t k = 1; k < Others; ++k)
      {
        sum = hn::Add(sum, terms.v[u * Others + k]);
      }
      hn::Store(sum, d, block.sum + i + u * LaneCount);
    }
  }
}

/// Evaluates the classes of a model with `Classes` of them.
template<std::size_t Classes>
HWY_NOINLINE void EvaluateFewClasses(
  const FieldModel& model, Block& block, const FieldArrays& arrays, std::size_t offset)
{
  const Destination<std::int32_t> classes(block, arrays.predicted, offset, block.predicted);
  EvaluateFewLogits<Classes>(model, block, classes.Get());
  if (arrays.probability || arrays.classColor)
  {
    SumFewExponentials<Classes>(block);
    PutProbabilities(model, block, arrays, offset, classes.Get());
  }
  classes.Finish();
}

/// Evaluates the classes of a model with any number of them.
HWY_INLINE void EvaluateManyClasses(
  const FieldModel& model, Block& block, const FieldArrays& arrays, std::size_t offset)
{
  const D d;
  const DI di;
  const bool isProbabilityWanted = arrays.probability || arrays.classColor;
  for (std::size_t i = 0; i < block.size; i += LaneCount)
  {
    hn::Store(hn::Set(d, -std::numeric_limits<float>::max()), d, block.largest + i);
    hn::Store(hn::Zero(di), di, block.predicted + i);
    hn::Store(hn::Zero(d), d, block.sum + i);
  }
  // Evaluates as many points at a time as there is memory for their logits.
  const std::size_t chunk = std::min(model.classes, ClassChunk);
  const std::size_t points = GroupSize * std::max<std::size_t>(1, ClassChunk / model.classes);
  for (std::size_t first = 0; first < block.size; first += points)
  {
    const std::size_t last = std::min(first + points, block.size);
    for (std::size_t begin = 0; begin < model.classes; begin += chunk)
    {
      const std::size_t end = std::min(begin + chunk, model.classes);
      for (std::size_t i = first; i < last; i += GroupSize)
      {
        EvaluateLogits(model, block, i, begin, end, block.logits + (i - first) * chunk);
      }
      for (std::size_t i = first; isProbabilityWanted && i < last; i += GroupSize)
      {
        SumExponentials(block, i, end - begin, block.logits + (i - first) * chunk);
      }
    }
  }
  if (arrays.predicted)
  {
    std::copy_n(block.predicted, block.count, arrays.predicted + offset);
  }
  if (isProbabilityWanted)
  {
    PutProbabilities(model, block, arrays, offset, block.predicted);
  }
}

/// Computes the predicted classes for r, and the selected quantities of the classes.
HWY_INLINE void EvaluateClasses(
  const FieldModel& model, Block& block, const FieldArrays& arrays, std::size_t offset)
{
  if (arrays.logits)
  {
    PutLogits(model, block, arrays.logits + offset * model.classes);
  }
  using Evaluate = void (*)(const FieldModel&, Block&, const FieldArrays&, std::size_t);
  static constexpr Evaluate few[] = { EvaluateFewClasses<2>, EvaluateFewClasses<3>,
    EvaluateFewClasses<4>, EvaluateFewClasses<5>, EvaluateFewClasses<6>, EvaluateFewClasses<7>,
    EvaluateFewClasses<8> };
  if (model.classes < 2 || model.classes > FewClasses)
  {
    EvaluateManyClasses(model, block, arrays, offset);
  }
  else
  {
    few[model.classes - 2](model, block, arrays, offset);
  }
}

/// Prefetches the output memory of a block while the block before it is evaluated.
template<class T>
HWY_INLINE void Prefetch(const T* array, std::size_t offset, std::size_t components = 1)
{
  if (array)
  {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(array + components * offset);
    for (std::size_t byte = 0; byte < components * BlockSize * sizeof(T); byte += 64)
    {
      hwy::Prefetch(begin + byte);
    }
  }
}

HWY_INLINE void PrefetchBlock(
  const FieldModel& model, const FieldArrays& arrays, std::size_t offset)
{
  Prefetch(arrays.predicted, offset);
  Prefetch(arrays.probability, offset);
  Prefetch(arrays.classColor, offset, 3);
  for (std::size_t h = 0; h < model.heads.size(); ++h)
  {
    Prefetch(OfHead(arrays.score, h), offset);
    Prefetch(OfHead(arrays.attention, h), offset);
  }
}

/// Evaluates a block of points and stores block.count of them, starting at index `offset`.
template<class Second>
HWY_INLINE void EvaluateBlock(const FieldModel& model, const float* cosines, const float* sines,
  const Second& second, std::size_t count, Block& block, const FieldArrays& arrays,
  std::size_t offset)
{
  const D d;
  block.count = std::min(count, BlockSize);
  block.size = (block.count + GroupSize - 1) / GroupSize * GroupSize;
  if (count > BlockSize)
  {
    PrefetchBlock(model, arrays, offset + BlockSize);
  }
  EvaluateHeads(model, Tokens<Second>{ cosines, sines, second }, block, arrays, offset);
  if (arrays.output)
  {
    const Destination<float> output(block, arrays.output, offset, block.output, 3);
    for (std::size_t i = 0; i < block.size; i += LaneCount)
    {
      hn::StoreInterleaved3(hn::Load(d, block.r[0] + i), hn::Load(d, block.r[1] + i),
        hn::Load(d, block.r[2] + i), d, output.Get() + 3 * i);
    }
    output.Finish();
  }
  if (arrays.predicted || arrays.probability || arrays.classColor || arrays.logits)
  {
    EvaluateClasses(model, block, arrays, offset);
  }
}

void EvaluateRow(const FieldModel& model, const float* cosines, const float* sines,
  std::size_t count, float cosine2, float sine2, Repeated* scratch, const FieldArrays& arrays,
  std::size_t offset)
{
  const SharedSecond second(model, cosine2, sine2, scratch);
  Block block;
  for (std::size_t i = 0; i < count; i += BlockSize)
  {
    EvaluateBlock(model, cosines + i, sines + i, second, count - i, block, arrays, offset + i);
  }
}

/// Computes the coordinates of the embeddings at `count` angles, in whole vectors.
HWY_INLINE void Coordinates(
  const double* theta, std::size_t count, AngleMap angles, float* cosines, float* sines)
{
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN double part[hn::MaxLanes(d)];
  HWY_ALIGN double cosine[hn::MaxLanes(d)];
  HWY_ALIGN double sine[hn::MaxLanes(d)];
  for (std::size_t i = 0; i < count; i += lanes)
  {
    auto t = hn::Zero(d);
    if (i + lanes <= count)
    {
      t = hn::LoadU(d, theta + i);
    }
    else
    {
      std::fill(std::copy(theta + i, theta + count, part), part + lanes, 0.);
      t = hn::Load(d, part);
    }
    auto c = hn::Cos(d, t);
    auto s = hn::Sin(d, t);
    // Highway's functions are valid for angles up to this.
    const auto limit = hn::Set(d, 39000.);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Le(hn::Abs(t), limit))))
    {
      hn::Store(t, d, part);
      for (std::size_t j = 0; j < lanes; ++j)
      {
        cosine[j] = std::cos(part[j]);
        sine[j] = std::sin(part[j]);
      }
      const auto isLarge = hn::Gt(hn::Abs(t), limit);
      c = hn::IfThenElse(isLarge, hn::Load(d, cosine), c);
      s = hn::IfThenElse(isLarge, hn::Load(d, sine), s);
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

void EvaluatePoints(const FieldModel& model, const double* theta1, const double* theta2,
  std::size_t begin, std::size_t end, const FieldArrays& arrays)
{
  Block block;
  HWY_ALIGN float coordinates[4][BlockSize] = {};
  for (std::size_t i = begin; i < end; i += BlockSize)
  {
    const std::size_t count = std::min(BlockSize, end - i);
    Coordinates(theta1 + i, count, model.angles, coordinates[0], coordinates[1]);
    Coordinates(theta2 + i, count, model.angles, coordinates[2], coordinates[3]);
    EvaluateBlock(model, coordinates[0], coordinates[1], OwnSecond(coordinates[2], coordinates[3]),
      count, block, arrays, i);
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(Coordinates);
HWY_EXPORT(EvaluateRow);
HWY_EXPORT(EvaluatePoints);

void EmbeddingCoordinates(
  const double* theta, std::size_t count, AngleMap angles, float* cosines, float* sines)
{
  HWY_DYNAMIC_DISPATCH(Coordinates)(theta, count, angles, cosines, sines);
}

void EvaluateFieldRow(const FieldModel& model, const float* cosines, const float* sines,
  std::size_t count, double theta2, Repeated* scratch, const FieldArrays& arrays,
  std::size_t offset)
{
  float cosine[FieldGroup];
  float sine[FieldGroup];
  EmbeddingCoordinates(&theta2, 1, model.angles, cosine, sine);
  HWY_DYNAMIC_DISPATCH(EvaluateRow)
  (model, cosines, sines, count, cosine[0], sine[0], scratch, arrays, offset);
}

void EvaluateFieldPoints(const FieldModel& model, const double* theta1, const double* theta2,
  std::size_t begin, std::size_t end, const FieldArrays& arrays)
{
  HWY_DYNAMIC_DISPATCH(EvaluatePoints)(model, theta1, theta2, begin, end, arrays);
}

}

#endif
