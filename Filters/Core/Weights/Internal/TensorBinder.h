#pragma once

// Internal to Core: tensors by the names of an architecture.

#include "Base/Error.h"
#include "TensorNames.h"
#include "Weights/TransformerWeights.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

/// A name with a number in the place of its "*".
std::string Numbered(std::string name, std::int64_t number);

/// Finds tensors by the names that a model's files have, and checks their types and shapes.
class TensorBinder
{
public:
  /// `tiedHead`: for an encoder that shares the decoder's embedding, TiedHead() of the decoder.
  TensorBinder(
    const TransformerConfig& config, const WeightFiles& files, std::string tiedHead = {});

  /// The unembedding that is tied to the token embedding; empty if none is.
  const std::string& TiedHead() const { return this->Head; }

protected:
  const TransformerConfig& Config;
  const WeightFiles& Files;
  bool Lens;   ///< TransformerLens' names
  bool Bridge; ///< those of its TransformerBridge, for tensors as Hugging Face has them
  bool Gguf;   ///< those of llama.cpp
  const TensorNames Name;
  std::pair<std::string, std::string> Prefixes; ///< of the base model, and of its unembedding
  const std::string& Prefix;
  std::string Head; ///< tied to the token embedding; empty: none
  std::set<std::string, std::less<>> Used;
  TransformerWeights Weights;

  template<class... Parts>
  [[noreturn]] void Fail(std::string_view tensor, const Parts&... message) const
  {
    throw ModelError(this->Files.FileOf(tensor), ": tensor '", tensor, "'", message...);
  }

  [[noreturn]] void FailMissing(std::string_view tensor) const;

  /// A tensor of any type and shape, or nullptr.
  const TensorView* Find(std::string_view name) const;

  bool Has(std::string_view name) const { return this->Find(name) != nullptr; }

  std::string LayerPrefix(std::int64_t layer) const;

  /// A tensor of values that are made here.
  TensorView Keep(std::vector<float> values, const Shape& shape);

  /// A floating-point tensor of any shape.
  const TensorView& Get(const std::string& name);

  TensorView Get(const std::string& name, const Shape& shape);

  /// A tensor of one number, of any number of axes.
  TensorView GetNumber(const std::string& name);

  /// The shift of a LayerNorm, or a bias in TransformerLens naming, which may be missing.
  TensorView GetOptional(const std::string& name, const Shape& shape);

  /// A normalization. Its gain and shift may be folded into the next weights.
  NormTensors GetNorm(const std::string& prefix, const PairNames& names);

  /// Of d_model components, or `dimension`.
  NormTensors GetUnfoldedNorm(
    const std::string& prefix, const PairNames& names, std::int64_t dimension = 0);

  /// A matrix with its bias. `bias` states whether the configuration has one; with TransformerLens
  /// names it may be missing, which means 0. Names without a prefix are of heads, which are no
  /// matrices of GPT-2's own kind.
  LinearTensors GetLinear(const std::string& prefix, const PairNames& names, std::int64_t inputs,
    std::int64_t outputs, bool bias);

  /// The biases of distances or patches, of all layers or of that whose prefix this is.
  TensorView GetRelativeBias(const std::string& prefix);

  /// A convolution over so many frames or tokens is a matrix on their values. It has d_model
  /// outputs.
  LinearTensors GetConvolution(const PairNames& names, std::int64_t inputs, std::int64_t width);

  /// One of a waveform.
  LinearTensors GetSoundConvolution(
    std::int64_t number, std::int64_t inputs, std::int64_t width, std::int64_t outputs);

  /// That of positions (SoundConfig), whose weights files have as directions and lengths: those of
  /// all weights of a place (Salimans and Kingma 2016).
  LinearTensors GetPositionConvolution();

private:
  TensorNames ChooseNames() const;

  /// Release 5 of transformers has the experts of a layer in one tensor. Its files have the older
  /// names, unless they were written from its state: then also for what is beside the experts.
  void UseFusedExperts(TensorNames& names) const;

  /// The prefix of the base model's names in this file, and what is before those of its
  /// unembedding.
  std::pair<std::string, std::string> FindPrefixes() const;

  /// Quantized matrices have a row per output, whatever the layout of others.
  void RequireRows(const std::string& name, WeightLayout layout) const;

  /// The name itself, or that in the first releases of BERT: gamma and beta.
  std::string OldName(const std::string& name, const std::string& end, const char* oldEnd) const;

  /// The first of two names with a comma between them that is there.
  std::string Either(const std::string& prefix, const std::string& names) const;
};

}
