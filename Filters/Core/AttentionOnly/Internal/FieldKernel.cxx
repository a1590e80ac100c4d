#include "FieldKernel.h"

#include "InstructionSets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "FieldKernel.cxx"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include "VectorMath-inl.h"
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
/// has independent operations.
inline constexpr std::size_t BlockSize = 128;
/// Classes are evaluated for groups of this many vectors, which stay in registers.
inline constexpr std::size_t Vectors = 2;
inline constexpr std::size_t GroupSize = Vectors * LaneCount;
/// The largest number of classes whose logits are kept for a group.
inline constexpr std::size_t ClassChunk = 64;

static_assert(FieldGroup % GroupSize == 0 && BlockSize % FieldGroup == 0, "groups are whole");

/// The intermediate results of a block. The last block of a row also fills whole groups.
struct Block
{
  HWY_ALIGN float cosine[BlockSize]; ///< c_1 - c_2
  HWY_ALIGN float sine[BlockSize];   ///< s_1 - s_2
  HWY_ALIGN float r[3][BlockSize];
  HWY_ALIGN float attention[BlockSize];
  HWY_ALIGN float largest[BlockSize];          ///< largest logit so far
  HWY_ALIGN std::int32_t predicted[BlockSize]; ///< its class
  HWY_ALIGN float sum[BlockSize];              ///< of exp(logit - largest)
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

HWY_INLINE Group Broadcast(float value)
{
  Group group;
  std::fill_n(group.v, Vectors, hn::Set(D(), value));
  return group;
}

HWY_INLINE Group Apply(const LinearFunction& linear, const Group& x, const Group& y)
{
  const D d;
  const V ofX = hn::Set(d, linear[0]);
  const V ofY = hn::Set(d, linear[1]);
  const V constant = hn::Set(d, linear[2]);
  const Group rest = Map([&](V v) HWY_ATTR { return hn::MulAdd(v, ofY, constant); }, y);
  return Map([&](V v, V w) HWY_ATTR { return hn::MulAdd(v, ofX, w); }, x, rest);
}

/// Token 2 of the points of a row, which share it: computed once, by the same operations as in
/// OwnSecond, and broadcast.
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
    const auto add = [&](const std::array<LinearFunction, 3>& linear) HWY_ATTR
    {
      for (const LinearFunction& component : linear)
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
  HWY_INLINE Group Score(const FieldModel&, std::size_t h, std::size_t c, std::size_t) const
  {
    return Broadcast(this->Values[6 + 3 * h + c]);
  }

private:
  float Cos;
  float Sin;
  const float* Values; ///< base, word, and the scores' coefficients of each head
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
  HWY_INLINE Group Score(const FieldModel& model, std::size_t h, std::size_t c, std::size_t i) const
  {
    return Apply(model.heads[h].score[c], Load(this->Cosines + i), Load(this->Sines + i));
  }

private:
  const float* Cosines;
  const float* Sines;
};

HWY_INLINE float* OfHead(const std::vector<float*>& arrays, std::size_t h)
{
  return arrays.empty() ? nullptr : arrays[h];
}

/// Computes the differences of the coordinates of token 1 and token 2, and r without attention.
template<class Second>
HWY_INLINE void Begin(const FieldModel& model, const float* cosines, const float* sines,
  const Second& second, Block& block)
{
  const D d;
  for (std::size_t i = 0; i < block.size; i += LaneCount)
  {
    hn::Store(hn::Sub(hn::LoadU(d, cosines + i), second.Cosine(i)), d, block.cosine + i);
    hn::Store(hn::Sub(hn::LoadU(d, sines + i), second.Sine(i)), d, block.sine + i);
    for (std::size_t c = 0; c < 3; ++c)
    {
      hn::Store(second.Base(model, c, i), d, block.r[c] + i);
    }
  }
}

/// Computes the score and attention of head `h`, and adds its output to r.
template<bool IsHardmax, bool IsScoreWanted, class Second>
HWY_INLINE void EvaluateAttention(const FieldModel& model, std::size_t h, const Second& second,
  Block& block, float* HWY_RESTRICT scores, float* HWY_RESTRICT attentions)
{
  const D d;
  const std::array<LinearFunction, 3>& output = model.heads[h].output;
  const std::size_t size = block.size;
  for (std::size_t i = 0; i < size; i += GroupSize)
  {
    const Group cosine = Load(block.cosine + i);
    const Group sine = Load(block.sine + i);
    Group score = Map([&](V s, V c, V k) HWY_ATTR { return hn::MulAdd(s, c, k); }, sine,
      second.Score(model, h, 1, i), second.Score(model, h, 2, i));
    score = Map([&](V s, V c, V k) HWY_ATTR { return hn::MulAdd(s, c, k); }, cosine,
      second.Score(model, h, 0, i), score);
    Group attention;
    if (IsHardmax)
    {
      attention = Map([&](V s) HWY_ATTR
        { return hn::IfThenElseZero(hn::Gt(s, hn::Zero(d)), hn::Set(d, 1.F)); }, score);
    }
    else
    {
      attention = Logistic(score);
    }
    if (IsScoreWanted)
    {
      Store(score, scores + i);
    }
    Store(attention, attentions + i);
    for (std::size_t c = 0; c < 3; ++c)
    {
      Store(Map([&](V a, V x, V r) HWY_ATTR { return hn::MulAdd(a, x, r); }, attention,
              Apply(output[c], cosine, sine), Load(block.r[c] + i)),
        block.r[c] + i);
    }
  }
}

/// Computes the rarely selected quantities of head `h`.
template<class Second>
HWY_NOINLINE void EvaluateMixes(const FieldModel& model, std::size_t h, const Second& second,
  Block& block, const float* attentions, const FieldArrays& arrays, std::size_t offset)
{
  const D d;
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
    const V difference =
      Apply(model.word[c], hn::Load(d, block.cosine + i), hn::Load(d, block.sine + i));
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

template<class Second>
HWY_INLINE void EvaluateHead(const FieldModel& model, std::size_t h, const Second& second,
  Block& block, const FieldArrays& arrays, std::size_t offset)
{
  const Destination<float> score(block, OfHead(arrays.score, h), offset, block.output);
  const Destination<float> attention(block, OfHead(arrays.attention, h), offset, block.attention);
  if (model.isHardmax)
  {
    EvaluateAttention<true, true>(model, h, second, block, score.Get(), attention.Get());
  }
  else if (OfHead(arrays.score, h))
  {
    EvaluateAttention<false, true>(model, h, second, block, score.Get(), attention.Get());
  }
  else
  {
    EvaluateAttention<false, false>(model, h, second, block, score.Get(), attention.Get());
  }
  score.Finish();
  attention.Finish();
  EvaluateMixes(model, h, second, block, attention.Get(), arrays, offset);
}

/// Transposes the logits of `classes` classes, as EvaluateLogits keeps them, into an array of
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
      const V scale = ExpOfNegative(Batch<1>{ { hn::Sub(before, largest[u]) } }).v[0];
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
  const Group largest = Load(block.largest + i);
  Group sum = Load(block.sum + i);
  const auto subtract = [](V x, V y) HWY_ATTR { return hn::Sub(x, y); };
  const auto add = [](V x, V y) HWY_ATTR { return hn::Add(x, y); };
  // Two classes at a time.
  std::size_t k = 0;
  for (; k + 2 <= classes; k += 2, logits += 2 * GroupSize)
  {
    const Group first = Map(subtract, Load(logits), largest);
    const Group second = Map(subtract, Load(logits + GroupSize), largest);
    Batch<2 * Vectors> terms;
    std::copy_n(first.v, Vectors, terms.v);
    std::copy_n(second.v, Vectors, terms.v + Vectors);
    terms = ExpOfNegative(terms);
    Group exponentials;
    std::copy_n(terms.v, Vectors, exponentials.v);
    sum = Map(add, sum, exponentials);
    std::copy_n(terms.v + Vectors, Vectors, exponentials.v);
    sum = Map(add, sum, exponentials);
  }
  if (k < classes)
  {
    sum = Map(add, sum, ExpOfNegative(Map(subtract, Load(logits), largest)));
  }
  Store(sum, block.sum + i);
}

/// Stores class colors at `to`, where `room` bytes may be written.
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
  // White minus the fading of the class, rounded to nearest.
  const V white = hn::Set(d, 255.5F);
  const VI byte = hn::Set(di, 255);
  const auto channel = [&](VI taken) HWY_ATTR
  { return hn::ConvertTo(di, hn::NegMulAdd(intensity, hn::ConvertTo(d, taken), white)); };
  const VI red = channel(hn::And(fading, byte));
  const VI green = channel(hn::And(hn::ShiftRight<8>(fading), byte));
  const VI blue = channel(hn::ShiftRight<16>(fading));
#if HWY_TARGET == HWY_SCALAR
  // This target has no vectors of bytes.
  if (room > 0)
  {
    to[0] = static_cast<std::uint8_t>(hn::GetLane(red));
    to[1] = static_cast<std::uint8_t>(hn::GetLane(green));
    to[2] = static_cast<std::uint8_t>(hn::GetLane(blue));
  }
#else
  const VI colors = hn::Or(red, hn::Or(hn::ShiftLeft<8>(green), hn::ShiftLeft<16>(blue)));
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

/// Computes the predicted classes for r, and the selected quantities of the classes.
HWY_INLINE void EvaluateClasses(
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
        float* logits = block.logits + (i - first) * chunk;
        EvaluateLogits(model, block, i, begin, end, logits);
        if (arrays.logits && i < block.count)
        {
          PutLogits(logits, end - begin, arrays.logits + (offset + i) * model.classes + begin,
            model.classes, std::min(GroupSize, block.count - i));
        }
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
  if (!isProbabilityWanted)
  {
    return;
  }
  const Destination<float> probability(block, arrays.probability, offset, block.output);
  for (std::size_t i = 0; i < block.size; i += LaneCount)
  {
    const V p = hn::Div(hn::Set(d, 1.F), hn::Load(d, block.sum + i));
    hn::StoreU(p, d, probability.Get() + i);
    if (arrays.classColor && i < block.count)
    {
      PutColors(model, p, hn::Load(di, block.predicted + i), arrays.classColor + 3 * (offset + i),
        3 * (block.count - i));
    }
  }
  probability.Finish();
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
  Begin(model, cosines, sines, second, block);
  for (std::size_t h = 0; h < model.heads.size(); ++h)
  {
    EvaluateHead(model, h, second, block, arrays, offset);
  }
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
  std::size_t count, float cosine2, float sine2, float* scratch, const FieldArrays& arrays,
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
  std::size_t count, double theta2, float* scratch, const FieldArrays& arrays, std::size_t offset)
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
