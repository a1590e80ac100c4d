#include "Circuits/SparseDictionary.h"
#include "FuzzFolder.h"
#include "FuzzTarget.h"

#include <cmath>
#include <cstddef>

using namespace atlas;

/// A cfg.json, NUL, and the weights: the reader of sparse dictionaries, and what one makes of
/// vectors.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  static const fuzz::Folder folder;
  std::filesystem::create_directory(fuzz::Source);
  std::string_view rest = fuzz::Text(data, size);
  fuzz::Folder::Write(fuzz::Source + "/cfg.json", fuzz::NextPart(rest));
  fuzz::Folder::Write(fuzz::Source + "/sae_weights.safetensors", rest);
  SparseDictionary dictionary;
  if (!fuzz::Read([&] { dictionary = ReadSparseDictionary(fuzz::Source); }))
  {
    return 0;
  }
  const std::int64_t features = dictionary.Features();
  const std::int64_t inputs = dictionary.Inputs();
  fuzz::Require(CountFeatures(fuzz::Source) == features, "as many features by the header");
  fuzz::Require(dictionary.encoder.rows() == inputs && dictionary.encoder.cols() == features,
    "an encoder of the decoder's shape");
  if (features * inputs > 4096)
  {
    return 0;
  }
  const DoubleMatrix vectors =
    DoubleMatrix::NullaryExpr(3, inputs, [](Eigen::Index row, Eigen::Index column)
      { return static_cast<double>(row) - 0.25 * static_cast<double>(column); });
  const SparseCode code = Encode(dictionary, vectors, 1);
  fuzz::Require(code.active.size() == 3 && code.reconstructed.rows() == 3, "a code of each vector");
  for (const std::vector<ActiveFeature>& active : code.active)
  {
    fuzz::Require(dictionary.activation != FeatureActivation::TopK ||
                    static_cast<std::int64_t>(active.size()) <= dictionary.k,
      "at most k features");
    for (std::size_t i = 0; i < active.size(); ++i)
    {
      const auto [feature, value] = active[i];
      fuzz::Require(feature >= 0 && feature < features && value > 0, "an active feature");
      fuzz::Require(i == 0 || active[i - 1].IsBefore(active[i]), "features by falling value");
      dictionary.EncoderOf(feature);
      dictionary.DirectionOf(feature);
    }
  }
  return 0;
}
