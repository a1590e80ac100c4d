#include "MarkovPredictors.h"

#include "Index.h"

#include <cmath>

namespace atlas
{

std::vector<double> BigramLosses(const std::vector<std::int64_t>& tokens, std::int64_t states)
{
  std::vector<double> counts(states * states, 1);
  std::vector<double> sums(states, static_cast<double>(states));
  std::vector<double> losses;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
  {
    double& count = counts[tokens[i] * states + tokens[i + 1]];
    double& sum = sums[tokens[i]];
    losses.push_back(std::log(sum / count));
    ++count;
    ++sum;
  }
  return losses;
}

std::vector<double> UnigramLosses(const std::vector<std::int64_t>& tokens, std::int64_t states)
{
  std::vector<double> counts(states, 1);
  auto sum = static_cast<double>(states);
  std::vector<double> losses;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
  {
    ++counts[tokens[i]];
    ++sum;
    losses.push_back(std::log(sum / counts[tokens[i + 1]]));
  }
  return losses;
}

std::vector<double> StationaryDistribution(std::vector<double> transitions, std::int64_t states)
{
  const auto at = [&](std::int64_t from, std::int64_t to) -> double&
  { return transitions[from * states + to]; };
  // Takes out the last state, whose visits become direct transitions between the others.
  for (std::int64_t last = states - 1; last > 0; --last)
  {
    double leaving = 0;
    for (std::int64_t to = 0; to < last; ++to)
    {
      leaving += at(last, to);
    }
    for (std::int64_t from = 0; from < last; ++from)
    {
      at(from, last) /= leaving;
      for (std::int64_t to = 0; to < last; ++to)
      {
        at(from, to) += at(from, last) * at(last, to);
      }
    }
  }
  std::vector<double> shares(states, 1);
  double sum = 1;
  for (std::int64_t to = 1; to < states; ++to)
  {
    double& share = shares[to];
    share = 0;
    for (std::int64_t from = 0; from < to; ++from)
    {
      share += shares[from] * at(from, to);
    }
    sum += share;
  }
  for (double& share : shares)
  {
    share /= sum;
  }
  return shares;
}

}
