#pragma once

#include "Embedding/Internal/FuzzyGraph.h"
#include "Embedding/Neighbors.h"
#include "Embedding/PointView.h"
#include "EmbeddingOracle.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace atlas::test
{

/// The points of one head, and what was computed for UMAP with one of the metrics.
class OfUmap : public testing::TestWithParam<std::tuple<std::string, std::string>>
{
protected:
  EmbeddingOracle Expected{ std::get<0>(GetParam()) };
  std::string Head = this->Expected.Prefix(1, 2); ///< the head whose graphs the files have
  std::string Prefix = this->Head + "umap." + std::get<1>(GetParam()) + ".k15.";
  PointMetric Metric =
    std::get<1>(GetParam()) == "cosine" ? PointMetric::Cosine : PointMetric::Euclidean;
  std::vector<float> Joint = this->Floats(this->Head + "joint");

  std::vector<float> Floats(const std::string& quantity) const
  {
    const std::vector<double> values = this->Expected.Values(quantity);
    return { values.begin(), values.end() };
  }

  std::int64_t Count() const
  {
    return static_cast<std::int64_t>(this->Expected.Values(this->Prefix + "rho").size());
  }

  PointView Points() const
  {
    const auto count = this->Count();
    return { this->Joint.data(), count, static_cast<std::int64_t>(this->Joint.size()) / count };
  }

  /// A quantity [points, 15], without the first column: the point itself.
  std::vector<double> WithoutSelf(const std::string& quantity) const
  {
    std::vector<double> values;
    const std::vector<double> all = this->Expected.Values(this->Prefix + quantity);
    for (std::size_t i = 0; i < all.size(); ++i)
    {
      if (i % 15 != 0)
      {
        values.push_back(all[i]);
      }
    }
    return values;
  }

  /// The neighbors that the oracle has.
  NeighborLists Neighbors() const
  {
    const std::vector<double> distance = this->WithoutSelf("distance");
    NeighborLists lists{ this->Count(), 14, {}, { distance.begin(), distance.end() } };
    for (const double j : this->WithoutSelf("index"))
    {
      lists.index.push_back(static_cast<std::uint32_t>(j));
    }
    return lists;
  }

  FuzzyGraph Graph() const
  {
    const NeighborLists lists = this->Neighbors();
    return UniteMemberships(lists, NeighborMemberships(lists, FitNeighborScales(lists, 1), 1));
  }

public:
  static auto All()
  {
    return testing::Combine(
      testing::Values("spiral", "gpt2", "bert", "vit"), testing::Values("cosine", "euclidean"));
  }
  static std::string Name(const testing::TestParamInfo<ParamType>& info)
  {
    return std::get<0>(info.param) + "_" + std::get<1>(info.param);
  }
};

}
