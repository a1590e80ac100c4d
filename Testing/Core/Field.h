#pragma once

#include "AttentionOnly/FieldEvaluation.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace atlas::test
{

/// An array between two guards, all filled with one byte, so that it shows what was written.
template<class T>
class GuardedArray
{
public:
  explicit GuardedArray(std::size_t size)
    : Values(size + 2 * Guard)
  {
    std::memset(this->Values.data(), Untouched, this->Values.size() * sizeof(T));
  }

  T* Data() { return this->Values.data() + Guard; }

  /// Whether the elements outside of [begin, end) are as they were created.
  bool IsUntouchedOutside(std::size_t begin, std::size_t end) const
  {
    return IsUntouched(0, Guard + begin) && IsUntouched(Guard + end, this->Values.size());
  }
  bool IsUntouched() const { return IsUntouched(0, this->Values.size()); }

  /// Whether [begin, end) has the bytes that `other` has from `otherBegin` on.
  bool Equals(
    std::size_t begin, std::size_t end, const GuardedArray& other, std::size_t otherBegin) const
  {
    return std::memcmp(this->Values.data() + Guard + begin,
             other.Values.data() + Guard + otherBegin, (end - begin) * sizeof(T)) == 0;
  }

  std::vector<T> Elements() const
  {
    return { this->Values.data() + Guard, this->Values.data() + this->Values.size() - Guard };
  }

private:
  static constexpr std::size_t Guard = 1024;
  static constexpr unsigned char Untouched = 0xA5;
  std::vector<T> Values;

  bool IsUntouched(std::size_t begin, std::size_t end) const
  {
    const auto* first = reinterpret_cast<const unsigned char*>(this->Values.data() + begin);
    return std::all_of(first, first + (end - begin) * sizeof(T),
      [](unsigned char byte) { return byte == Untouched; });
  }
};

/// Memory for every quantity at a number of points.
class Field
{
public:
  using HeadArrays = std::vector<GuardedArray<float>>;

  std::size_t Points;
  std::size_t Classes;
  GuardedArray<std::int32_t> Predicted;
  GuardedArray<float> Probability;
  GuardedArray<std::uint8_t> ClassColor;
  GuardedArray<float> Logits;
  GuardedArray<float> Output;
  HeadArrays Score;
  HeadArrays Attention;
  HeadArrays WordMix;
  HeadArrays PositionMix;
  HeadArrays Mix;
  HeadArrays HeadOutput;

  Field(const AttentionOnlyModel& model, std::size_t points)
    : Points(points)
    , Classes(model.VocabularySize())
    , Predicted(points)
    , Probability(points)
    , ClassColor(3 * points)
    , Logits(Classes * points)
    , Output(3 * points)
    , Score(model.HeadCount(), GuardedArray<float>(points))
    , Attention(Score)
    , WordMix(model.HeadCount(), GuardedArray<float>(3 * points))
    , PositionMix(WordMix)
    , Mix(WordMix)
    , HeadOutput(WordMix)
  {
  }

  /// Where to write all quantities.
  FieldArrays Arrays()
  {
    FieldArrays arrays;
    arrays.predicted = this->Predicted.Data();
    arrays.probability = this->Probability.Data();
    arrays.classColor = this->ClassColor.Data();
    arrays.logits = this->Logits.Data();
    arrays.output = this->Output.Data();
    arrays.score = Pointers(this->Score);
    arrays.attention = Pointers(this->Attention);
    arrays.wordMix = Pointers(this->WordMix);
    arrays.positionMix = Pointers(this->PositionMix);
    arrays.mix = Pointers(this->Mix);
    arrays.headOutput = Pointers(this->HeadOutput);
    return arrays;
  }

  bool IsUntouchedOutside(std::size_t begin, std::size_t end) const
  {
    return AllOf(*this, [&](const auto& array, const auto&, std::size_t components)
      { return array.IsUntouchedOutside(begin * components, end * components); });
  }

  /// Whether the points [begin, end) have the bytes that `other` has from `otherBegin` on.
  bool Equals(std::size_t begin, std::size_t end, const Field& other, std::size_t otherBegin) const
  {
    return AllOf(other,
      [&](const auto& array, const auto& theirs, std::size_t components)
      {
        return array.Equals(begin * components, end * components, theirs, otherBegin * components);
      });
  }

  /// The number of arrays that were written to.
  int CountTouched() const
  {
    int touched = 0;
    AllOf(*this,
      [&](const auto& array, const auto&, std::size_t)
      {
        touched += array.IsUntouched() ? 0 : 1;
        return true;
      });
    return touched;
  }

  /// Whether each array that was written to has the bytes of the array in `other`.
  bool EqualsWhereTouched(const Field& other) const
  {
    return AllOf(other, [&](const auto& array, const auto& theirs, std::size_t components)
      { return array.IsUntouched() || array.Equals(0, this->Points * components, theirs, 0); });
  }

private:
  static std::vector<float*> Pointers(HeadArrays& arrays)
  {
    std::vector<float*> pointers;
    for (GuardedArray<float>& array : arrays)
    {
      pointers.push_back(array.Data());
    }
    return pointers;
  }

  /// Whether `test(array, array of other, components)` holds for every array.
  template<class Test>
  bool AllOf(const Field& other, const Test& test) const
  {
    bool all =
      test(this->Predicted, other.Predicted, 1) && test(this->Probability, other.Probability, 1) &&
      test(this->ClassColor, other.ClassColor, 3) &&
      test(this->Logits, other.Logits, this->Classes) && test(this->Output, other.Output, 3);
    for (std::size_t h = 0; h < this->Score.size(); ++h)
    {
      all = all && test(this->Score[h], other.Score[h], 1) &&
            test(this->Attention[h], other.Attention[h], 1) &&
            test(this->WordMix[h], other.WordMix[h], 3) &&
            test(this->PositionMix[h], other.PositionMix[h], 3) &&
            test(this->Mix[h], other.Mix[h], 3) &&
            test(this->HeadOutput[h], other.HeadOutput[h], 3);
    }
    return all;
  }
};

}
