#pragma once

#include "OracleFile.h"
#include "ParityRow.h"
#include "PartParity.h"
#include "TestName.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

// Oracles of Testing/Oracle/v5 beside recordings.

namespace atlas::test
{

/// The numbers of one index of the first axis of a tensor, or of all, with another shape.
inline TensorView SliceOf(
  const TensorView& view, std::int64_t index, std::int64_t count, Shape shape)
{
  return { view.dtype, std::move(shape), view.data + view.Bytes() / count * index };
}

/// The tensors of one input, `prefix`, by the names and shapes of other oracles. Attention is
/// numbered by the layers that have any.
inline TensorViews Renamed(
  const OracleFile& file, const std::string& prefix, const TransformerConfig& config = {})
{
  TensorViews views;
  for (const auto& [name, view] : file.Tensors())
  {
    const Shape& shape = view.shape;
    const std::string rest = name.substr(0, prefix.size()) == prefix ? name.substr(2) : "";
    const std::size_t attention = rest.find("attention");
    if (attention != std::string::npos && shape.size() == 3) // of a layer: attention.0
    {
      const std::int64_t layer = LayerOfAttention(config, std::stoll(rest.substr(attention + 10)));
      views["layer." + std::to_string(layer) + ".attention"] =
        SliceOf(view, 0, 1, { 1, shape[0], shape[1], shape[2] });
    }
    for (std::int64_t l = 0; attention != std::string::npos && shape.size() == 4 && l < shape[0];
      ++l)
    {
      views[rest.substr(0, attention) + "layer." + std::to_string(l) + ".attention"] =
        SliceOf(view, l, shape[0], { 1, shape[1], shape[2], shape[3] });
    }
    for (std::int64_t l = 0; rest == "hidden" && l < shape[0]; ++l)
    {
      views["hidden." + std::to_string(l)] =
        SliceOf(view, l, shape[0], { 1, shape[shape.size() - 2], shape.back() });
    }
    if (rest == "logits")
    {
      views[rest] = SliceOf(view, 0, 1, { 1, shape[shape.size() - 2], shape.back() });
    }
  }
  return views;
}

/// Of a model with several inputs: the largest deviations of each part, by its name.
class PartDeviations
{
public:
  void Add(const std::string& part, const std::map<std::string, double>& deviations)
  {
    for (const auto& [quantity, deviation] : deviations)
    {
      Raise(this->All[part][quantity], deviation);
    }
  }

  /// Leaves rows of Parity.md.
  void WriteRows(const std::string& model, const std::string& file) const
  {
    for (const auto& [part, deviations] : this->All)
    {
      const std::string name = part.substr(0, part.find('.'));
      const bool isPacked = model == "mxfp4/a" || model == "gpt_oss-a";
      const std::string shown =
        isPacked ? "gpt_oss-a" : std::filesystem::path(model).filename().string();
      Write(TestName(model + "_" + name + "_" + file),
        ParityRow{ shown, name, file, isPacked ? "MXFP4, BF16" : "F32", deviations });
    }
  }

private:
  std::map<std::string, std::map<std::string, double>> All;
};

inline ExpectedPlaces PlacesFrom(std::int64_t first, std::int64_t end)
{
  ExpectedPlaces places;
  for (std::int64_t row = first; row < end; ++row)
  {
    places.push_back({ row, 0, row - first });
  }
  return places;
}

}
