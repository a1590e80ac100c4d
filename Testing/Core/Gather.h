#pragma once

#include "AttentionOnly/AttentionEvaluation.h"

#include <vector>

namespace atlas::test
{

inline void Append(std::vector<double>& values, double value)
{
  values.push_back(value);
}

template<class Vector>
void Append(std::vector<double>& values, const Vector& vector)
{
  values.insert(values.end(), vector.data(), vector.data() + vector.size());
}

/// One member of every evaluation, in a row.
template<class Member>
std::vector<double> Gather(const std::vector<Evaluation>& evaluations, Member Evaluation::* member)
{
  std::vector<double> values;
  for (const Evaluation& evaluation : evaluations)
  {
    Append(values, evaluation.*member);
  }
  return values;
}

/// One member of the heads from `begin` to before `end` of every evaluation, in a row.
template<class Member>
std::vector<double> Gather(const std::vector<Evaluation>& evaluations,
  Member HeadEvaluation::* member, std::size_t begin, std::size_t end)
{
  std::vector<double> values;
  for (const Evaluation& evaluation : evaluations)
  {
    for (std::size_t h = begin; h < end; ++h)
    {
      Append(values, evaluation.heads[h].*member);
    }
  }
  return values;
}

/// One member of every head of every evaluation, in a row.
template<class Member>
std::vector<double> Gather(
  const std::vector<Evaluation>& evaluations, Member HeadEvaluation::* member)
{
  return Gather(evaluations, member, 0, evaluations.front().heads.size());
}

}
