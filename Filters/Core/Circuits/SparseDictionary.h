#pragma once

#include "Base/NamedValues.h"
#include "Base/Progress.h"
#include "Weights/ProcessedWeights.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// How features follow from what the encoder gives for them.
enum class FeatureActivation
{
  Relu,     ///< max(0, p)
  JumpRelu, ///< p where it exceeds the threshold of the feature and 0, else 0
  TopK,     ///< max(0, p) of the k largest, else 0
  Gated     ///< max(0, p) where the gate exceeds 0, else 0
};

/// Their names as architectures of SAELens.
inline constexpr std::array<Named<FeatureActivation>, 4> FeatureActivationNames = { {
  { "standard", FeatureActivation::Relu },
  { "jumprelu", FeatureActivation::JumpRelu },
  { "topk", FeatureActivation::TopK },
  { "gated", FeatureActivation::Gated },
} };

/// How inputs are normalized, and reconstructions scaled back.
enum class DictionaryNorm
{
  None,
  LayerNorm, ///< (x - mean x) / (s + 1e-5), with the standard deviation s of d_in - 1 degrees of
             ///< freedom; back by s and the mean
  Constant   ///< to the length sqrt(d_in)
};

inline constexpr std::array<Named<DictionaryNorm>, 3> DictionaryNormNames = { {
  { "none", DictionaryNorm::None },
  { "layer_norm", DictionaryNorm::LayerNorm },
  { "constant_norm_rescale", DictionaryNorm::Constant },
} };

/// What a dictionary reads and writes.
enum class DictionarySite
{
  HeadValues,      ///< what the heads of a layer mix, z, one head after another, before W_O
  AttentionOutput, ///< what they add to the residual stream, with the bias
  StreamBefore,    ///< the residual stream before the layer
  StreamBetween,   ///< between attention and MLP
  StreamAfter      ///< after the layer
};

/// Their names in TransformerLens, behind "blocks.L.".
inline constexpr std::array<Named<DictionarySite>, 5> DictionarySiteNames = { {
  { "attn.hook_z", DictionarySite::HeadValues },
  { "hook_attn_out", DictionarySite::AttentionOutput },
  { "hook_resid_pre", DictionarySite::StreamBefore },
  { "hook_resid_mid", DictionarySite::StreamBetween },
  { "hook_resid_post", DictionarySite::StreamAfter },
} };

/// Which steps of TransformerLens changed the activations that a dictionary was trained on.
struct ActivationSteps
{
  bool foldsNorms = false;     ///< fold_ln; matters together with the next one
  bool foldsValues = false;    ///< fold_value_biases: biases of values are no part of z
  bool centersWriting = false; ///< center_writing_weights: vectors of the residual stream have mean
                               ///< 0 in models with LayerNorm
};

/// A sparse autoencoder of F features for vectors x [d_in] of a model (Bricken et al. 2023,
/// "Towards Monosemanticity"; Cunningham et al. 2023), in the form of SAELens:
///
///     p  = (n(x) - b_dec) W_enc + b_enc,   f = activation(p),   x^ = n^-1(f W_dec + b_dec)
///
/// with the normalization n; b_dec is subtracted if apply_b_dec_to_input. Thresholds are those of
/// JumpReLU (Rajamanoharan et al. 2024), k that of top-k (Gao et al. 2024). Gated ones
/// (Rajamanoharan et al. 2024) have W_enc exp(r_mag) and b_mag for p, and the gate (n(x) - b_dec)
/// W_enc + b_gate.
struct SparseDictionary
{
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  std::string hook; ///< "blocks.1.attn.hook_z"
  DictionarySite site = DictionarySite::HeadValues;
  std::int64_t layer = 0;
  FeatureActivation activation = FeatureActivation::Relu;
  DictionaryNorm norm = DictionaryNorm::None;
  bool subtractsBias = true;   ///< b_dec, from the input
  bool scalesByLength = false; ///< top-k is chosen by p times the lengths of the rows of W_dec
  std::int64_t k = 0;
  ActivationSteps steps;
  Matrix encoder;                 ///< W_enc [d_in, F]
  Matrix decoder;                 ///< W_dec [F, d_in]
  Eigen::RowVectorXd bias;        ///< b_enc or b_mag [F]
  Eigen::RowVectorXd decoderBias; ///< b_dec [d_in]
  Eigen::RowVectorXd thresholds;  ///< [F], of JumpReLU
  Eigen::RowVectorXd gateBias;    ///< [F], gated
  Eigen::RowVectorXd magnitudes;  ///< exp(r_mag) [F], gated

  std::int64_t Features() const { return this->decoder.rows(); }
  std::int64_t Inputs() const { return this->decoder.cols(); }

  /// Whether the heads of its layer write what it reads, or part of it.
  bool ReadsItsLayer() const { return this->site != DictionarySite::StreamBefore; }

  /// The vector e [d_in] and the number b with which an active feature is (n(x) - b_dec) e + b.
  Eigen::RowVectorXd EncoderOf(std::int64_t feature) const;
  double BiasOf(std::int64_t feature) const;

  /// What a unit of a feature adds to the reconstruction, before that is scaled back [d_in].
  Eigen::RowVectorXd DirectionOf(std::int64_t feature) const;
};

/// The two files of a dictionary: `path` is a safetensors file beside a cfg.json, or the folder of
/// sae_weights.safetensors and cfg.json.
std::filesystem::path DictionaryWeights(const std::filesystem::path& path);

/// The number of features of a dictionary, by the header of its file alone. Throws as
/// ReadSparseDictionary.
std::int64_t CountFeatures(const std::filesystem::path& path);

/// Reads a dictionary as SAELens (Bloom et al. 2024) saves it, of version 6 and those before: W_enc
/// [d_in, d_sae], W_dec [d_sae, d_in], b_dec, b_enc, and by architecture threshold, or b_gate,
/// b_mag and r_mag. Holds 8 d_in d_sae bytes. Throws FileError for missing files, FormatError for
/// others than these, ModelError for tensors that are missing, unknown, of another shape or not
/// finite, and, by name, for an architecture, a normalization, a place in the model or another
/// setting that is not known; the message begins with the file's name.
SparseDictionary ReadSparseDictionary(const std::filesystem::path& path);

/// A feature that is not 0 at a token.
struct ActiveFeature
{
  std::int32_t feature = 0;
  double value = 0; ///< above 0

  /// Whether it comes before another one: larger values first, then smaller numbers.
  bool IsBefore(const ActiveFeature& other) const
  {
    return this->value > other.value ||
           (this->value == other.value && this->feature < other.feature);
  }
};

/// What a dictionary makes of vectors.
struct SparseCode
{
  std::vector<std::vector<ActiveFeature>> active; ///< of each vector, in their order
  DoubleMatrix reconstructed;                     ///< x^ [vectors, d_in]
};

/// The bytes of working memory that Encode needs for a number of vectors, not counting its result.
double EncodingMemory(const SparseDictionary& dictionary, std::int64_t vectors);

/// Encodes vectors [n, d_in] and decodes them again, in double precision. Of equal values at the
/// end of the k largest, those of smaller numbers count. Runs on up to ThreadCount(threads)
/// threads, whose number changes no value. Throws OptionError for vectors of another size, and as
/// RequireMemory if too many features are active.
SparseCode Encode(const SparseDictionary& dictionary, const DoubleMatrix& vectors, int threads = 0,
  const Progress& progress = {});

/// The normalization n(x) = (x - mean) scale of a vector.
struct InputNorm
{
  double mean = 0;
  double scale = 1;
  double back = 1; ///< by which reconstructions are multiplied, before the mean is added
};
InputNorm NormOf(const SparseDictionary& dictionary, const Eigen::RowVectorXd& vector);

/// The fraction of the variance of vectors [n, d_in] that a reconstruction leaves unexplained,
/// sum |x - x^|^2 / sum |x - mean x|^2, where the mean is over the vectors; NaN for equal vectors.
double UnexplainedVariance(const DoubleMatrix& vectors, const DoubleMatrix& reconstructed);

}
