#pragma once

#include "Base/AttentionKinds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <vector>

namespace atlas
{

/// Values of the metadata entries `format` and `version` in a native file. The second version has
/// caps, windows or sinks of layers, the third parts or biases of distances, which readers of
/// earlier ones would leave out; files without them have the first.
inline constexpr const char* RecordingFormat = "attention-atlas.recording";
inline constexpr const char* RecordingVersion = "1";
inline constexpr const char* SecondRecordingVersion = "2";
inline constexpr const char* ThirdRecordingVersion = "3";

/// In place of a head: all heads of a layer, or their mean. In place of a sequence: all sequences,
/// or their mean.
inline constexpr std::int64_t AllHeads = -1;
inline constexpr std::int64_t AllSequences = -1;

/// A head of a layer, by their indices in the model.
struct HeadPlace
{
  std::int32_t layer = 0;
  std::int32_t head = 0;

  friend bool operator<(const HeadPlace& a, const HeadPlace& b)
  {
    return std::tie(a.layer, a.head) < std::tie(b.layer, b.head);
  }
};

/// A row-major, packed float matrix. Copies share their memory, so the values of thousands of
/// tokens pass from the model to a data object without being copied. Treat it as read-only once it
/// is part of a recording.
struct SharedMatrix
{
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::shared_ptr<float> values; ///< [rows, columns]; may point into memory that is owned elsewhere

  /// A newly allocated matrix of zeros.
  static SharedMatrix Zero(std::int64_t rows, std::int64_t columns)
  {
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    // The system gives large blocks as zeros, which take no memory until they are written.
    auto* values = static_cast<float*>(std::calloc(std::max<std::size_t>(count, 1), sizeof(float)));
    if (values == nullptr)
    {
      throw std::bad_alloc();
    }
    return { rows, columns, std::shared_ptr<float>(values, std::free) };
  }

  /// False for a quantity that was not recorded.
  bool IsRecorded() const { return this->values != nullptr; }

  std::size_t Count() const
  {
    return static_cast<std::size_t>(this->rows) * static_cast<std::size_t>(this->columns);
  }
  float* Row(std::int64_t row) const { return this->values.get() + row * this->columns; }
};

/// The tokens to which the rows of every matrix belong: those of all sequences, one after another,
/// without padding. Each list has one entry per token, or is empty if it does not apply.
struct RecordedTokens
{
  std::vector<std::int32_t> sequence; ///< index of the sequence or image, from 0
  std::vector<std::int32_t> position; ///< position in the sequence, from 0
  std::vector<std::int64_t> id;       ///< id in the vocabulary; empty for images
  std::vector<std::string> text;      ///< UTF-8; empty if unknown
  std::vector<std::int32_t> segment;  ///< token type (BERT); empty if there are none
  std::vector<std::int32_t> row;      ///< row of the patch, from the top; -1 for a class token or a
                                      ///< word
  std::vector<std::int32_t> column;   ///< column of the patch, from the left; likewise
  std::vector<std::int32_t> picture;  ///< pictures among words: the entry of RecordedPictures of
                                      ///< which the token is a part; -1 for a word. Empty in
                                      ///< recordings of words alone, and of pictures alone, where
                                      ///< it is the sequence

  std::vector<std::int32_t> keyEnd; ///< under a causal mask: how many of the first tokens of its
                                    ///< sequence it sees, itself and those before at least, and
                                    ///< those of its picture (Gemma 3). Empty: no others

  SharedMatrix color; ///< [tokens, 3], mean red, green and blue of the patch, 0 to 1; -1 for a
                      ///< class token. Optional

  std::int64_t Count() const { return this->sequence.size(); }
};

/// The most pixels on a side of a recorded picture.
inline constexpr std::int64_t MaximumPictureSide = 16384;

/// The picture that an image was read from, for a recording that does not hold its pixels.
struct PictureSource
{
  std::string file; ///< as it was named when it was recorded, UTF-8
  std::string hash; ///< of its pixels, as the model saw them: PictureHash in RecordPictures.h
};

/// What one of the pictures of a recording of pictures among words shows. A picture that was cut
/// into tiles is there once, with the patches of all tiles, and, if the model sees all of it in
/// small, too, a second time. Each group of frames of a video is a picture of its own, or each
/// frame where frames are pictures.
struct PictureContent
{
  std::int32_t picture = 0; ///< the picture or video, from 0, in the order of all texts
  std::int32_t frame = 0;   ///< of a video: its first frame; 0 for a picture
  std::int32_t frames = 1;  ///< frames that its tokens stand for
  bool isSmall = false;     ///< all of a picture whose tiles are there, too
  std::int32_t height = 0;  ///< in pixels, a whole number of tokens, like the width
  std::int32_t width = 0;
};

/// The pictures of a recording of images as the model saw them: resized and cropped to its input
/// size, before normalization, with 8 bits per channel. Either their pixels are recorded, or the
/// files from which the same pixels can be made again; neither in recordings made elsewhere.
struct RecordedPictures
{
  std::int64_t count = 0;  ///< one per image, that is per sequence, or of `contents`; 0: there are
                           ///< no pictures
  std::int64_t height = 0; ///< of each, in pixels; a whole number of patches. 0 with `contents`
  std::int64_t width = 0;  ///< of each, in pixels; likewise
  std::vector<PictureContent> contents; ///< pictures among words; otherwise empty
  std::shared_ptr<std::uint8_t> pixels; ///< [count, height, width, 3]: red, green, blue; top row
                                        ///< first; with `contents` one after another. May point
                                        ///< into memory that is owned elsewhere
  std::vector<PictureSource> sources;   ///< per image, if there are no pixels; otherwise empty
  std::string processing; ///< how to make the pixels from the sources: JSON in the form of a
                          ///< preprocessor_config.json

  bool IsEmpty() const { return this->count == 0; }

  /// The height and width of a picture in pixels.
  std::int64_t HeightOf(std::int64_t picture) const
  {
    return this->contents.empty() ? this->height : this->contents[picture].height;
  }
  std::int64_t WidthOf(std::int64_t picture) const
  {
    return this->contents.empty() ? this->width : this->contents[picture].width;
  }

  /// The first byte of a picture in `pixels`; for `count` the number of all bytes.
  std::uint64_t FirstByte(std::int64_t picture) const
  {
    std::uint64_t bytes = 0;
    for (std::int64_t i = 0; i < (this->contents.empty() ? 0 : picture); ++i)
    {
      bytes += std::uint64_t{ 3 } * static_cast<std::uint64_t>(this->HeightOf(i)) *
               static_cast<std::uint64_t>(this->WidthOf(i));
    }
    return this->contents.empty() ? this->BytesPerPicture() * static_cast<std::uint64_t>(picture)
                                  : bytes;
  }
  std::uint64_t BytesPerPicture() const
  {
    return std::uint64_t{ 3 } * static_cast<std::uint64_t>(this->height) *
           static_cast<std::uint64_t>(this->width);
  }
};

/// One head of one layer. Each matrix has one row per token.
struct RecordedHead
{
  SharedMatrix query;  ///< [tokens, d_head], after rotation
  SharedMatrix key;    ///< [tokens, d_head], after rotation; shared by the heads of a group
  SharedMatrix value;  ///< [tokens, d_head]; shared by the heads of a group. Optional
  SharedMatrix output; ///< [tokens, d_model], sum over keys of attention * value W_O^h, without the
                       ///< output bias. Optional
  SharedMatrix valueNorm; ///< [tokens, 1], Euclidean norm of value W_O^h: what a token writes into
                          ///< the residual stream at full attention. Each head has its own, also
                          ///< in a group. Optional

  /// Attention as stored in a file, for recordings that have no queries and keys or whose attention
  /// does not follow from them: one [length, length] matrix per sequence with one row per query;
  /// otherwise empty. If present, views show it. Weights are after the softmax, scores before. At
  /// pairs that the mask excludes, scores are whatever the file contained: the score, -infinity, or
  /// -1e5.
  std::vector<SharedMatrix> weights;
  std::vector<SharedMatrix> scores;

  bool HasAttention() const { return !this->weights.empty() || !this->scores.empty(); }
};

/// Which experts a layer chose for each token, and the factors of their outputs. Expert and weight
/// number k of a token belong together, by falling weight.
struct RecordedRouting
{
  std::int32_t experts = 0; ///< of the layer, from which they were chosen
  SharedMatrix chosen;      ///< [tokens, experts per token], numbers of experts, from 0
  SharedMatrix weights;     ///< [tokens, experts per token]
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out of { }
  SharedMatrix scores{}; ///< [tokens, experts per token]: those of the router, from 0 to 1. Experts
                         ///< are chosen by them and the bias, and weighed by them alone. Optional
  // NOLINTNEXTLINE(readability-redundant-member-init): likewise
  SharedMatrix bias{}; ///< [1, experts]. Optional
};

struct RecordedLayer
{
  std::int32_t index = 0;  ///< index of the layer in the model, from 0
  double scoreScale = 1.0; ///< score = scoreScale * query . key + bias; usually 1 / sqrt(d_head)
  std::vector<RecordedHead> heads;
  double scoreCap = 0;     ///< c > 0: score = c tanh(scoreScale * query . key / c) + bias (Gemma 2)
  std::int64_t window = 0; ///< w > 0: query i sees the keys j > i - w only, w of them with itself;
                           ///< without a mask those with |i - j| < w (ModernBERT)
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out of { }
  std::vector<float> sinks{}; ///< per head, or empty: a further logit in the softmax, whose weight
                              ///< is dropped, so that weights add up to less than 1 (gpt-oss)
  // NOLINTNEXTLINE(readability-redundant-member-init): likewise
  RecordedRouting routing{};    ///< of a layer with experts. Optional
  std::int64_t patchWindow = 0; ///< w > 0, of images: a patch sees those whose row / w and column /
                                ///< w, rounded down, are its own (Qwen2.5-VL)
  std::int64_t chunk = 0; ///< c > 0, under a causal mask: query i sees the keys from c floor(i / c)
                          ///< on (Llama 4)
  // NOLINTNEXTLINE(readability-redundant-member-init): likewise
  SharedMatrix distanceBias{}; ///< as that of the recording, where each layer has its own (uMT5)
  // NOLINTNEXTLINE(readability-redundant-member-init): likewise
  SharedMatrix patchBias{}; ///< [heads, (2 R - 1)(2 C - 1) + 3], of images of R x C patches:
                            ///< biases by rows, then columns from key to query, then those of
                            ///< the query, of the key and of both being the class token (BEiT)
  // NOLINTNEXTLINE(readability-redundant-member-init): likewise
  SharedMatrix positionKeys{}; ///< [heads (2 D + 1), d_head]: of each head, keys of the distances
                               ///< query - key = -D ... D; scoreScale * query . that of the
                               ///< distance is added to scores. Those beyond have that of the end
                               ///< (DeBERTa)
  // NOLINTNEXTLINE(readability-redundant-member-init): likewise
  SharedMatrix positionQueries{}; ///< likewise queries, for scoreScale * key . that of the distance
};

/// The activations of a transformer on some sequences. The attention of any head can be recomputed
/// from them (RecordedAttention.h); it is stored only if it cannot.
///
/// That of a transformer with an encoder and a decoder has three parts. It is the recording of the
/// decoder, on the tokens of the target. `encoder` is that of the encoder, on those of the source.
/// `cross` has the cross attention of the decoder's layers: its sequences are the tokens of the
/// source, then those of the target, with their positions in their own text. Queries and outputs
/// are 0 at tokens of the source, keys, values and their norms at tokens of the target.
///
/// That of a model of pictures among words is the recording of the text, and `encoder` is that of
/// the encoder of images, whose sequences are the images that it sees: tiles and whole pictures, or
/// groups of frames.
struct Recording
{
  std::string architecture; ///< "gpt2", "bert", ...; free text in recordings made elsewhere
  std::string model;        ///< what the model is called; empty if unknown
  AttentionMask mask = AttentionMask::Causal;
  std::vector<double> alibiSlopes; ///< per head; empty if there are none. Bias = slope * position
                                   ///< of the key
  double alibiUnit = 0;            ///< u > 0: they are rounded to BF16, see AlibiBias
  SharedMatrix distanceBias; ///< [heads, 2 D + 1]: bias of each head for key - query = -D ... D;
                             ///< keys beyond have that of the end (T5). Optional
  bool rotated = false;      ///< whether a rotary embedding was applied to queries and keys
  WeightProcessing processing = WeightProcessing::Unknown;
  ProductPrecision products = ProductPrecision::Single; ///< of activations and weights
  std::string interventions;   ///< what was changed during the run, in words; empty if nothing was
  std::string pixels;          ///< of pictures that were read from files: whose arithmetic made
                               ///< them, "pillow" or "torchvision"; empty if unknown
  std::int32_t layerCount = 0; ///< L of the model; `layers` may be a subset

  RecordedTokens tokens;
  RecordedPictures pictures;                 ///< of images. Optional
  std::vector<std::int64_t> sequenceOffsets; ///< first row of each sequence, then the row count
  std::vector<std::int64_t> sourceLengths;   ///< mask Cross: per sequence, the number of tokens of
                                             ///< the source, with which it begins; otherwise empty
  std::vector<RecordedLayer> layers;         ///< in ascending order of index
  std::vector<std::int32_t> layersWithoutHeads; ///< recorded layers that have no attention, in
                                                ///< ascending order; `layers` has none of them
  std::vector<SharedMatrix> residual; ///< [tokens, d_model] for l = 0 ... L, equal to the hidden
                                      ///< states of the original code; empty, or not recorded for
                                      ///< some l
  SharedMatrix logits;                ///< [tokens, vocabulary]; optional
  std::vector<double> finalScale;     ///< [tokens], sigma of the final normalization; optional, in
                                      ///< memory only

  std::shared_ptr<const Recording> encoder; ///< these have no parts
  std::shared_ptr<const Recording> cross;   ///< only with `encoder`; without it, that is one of
                                            ///< images

  std::int64_t SequenceCount() const
  {
    return this->sequenceOffsets.empty()
             ? 0
             : static_cast<std::int64_t>(this->sequenceOffsets.size()) - 1;
  }
  std::int64_t SequenceLength(std::int64_t sequence) const
  {
    const std::size_t s = sequence;
    return this->sequenceOffsets[s + 1] - this->sequenceOffsets[s];
  }
};

/// The part of a recording with a kind of attention. Throws OptionError if there is none.
const Recording& PartOf(const Recording& recording, AttentionKind kind);

/// The layer with index `layer` in the model, and its head number `head`. Throws OptionError, which
/// names those that are there, if there is none.
const RecordedLayer& FindLayer(const Recording& recording, std::int64_t layer);
const RecordedHead& FindHead(const Recording& recording, std::int64_t layer, std::int64_t head);

/// The recording itself, then its parts.
std::vector<const Recording*> WithParts(const Recording& recording);

/// All matrices of a recording, without its parts, that have one row per token. A matrix that heads
/// share is listed once. The list and its order depend only on what was recorded.
std::vector<SharedMatrix> TokenMatrices(const Recording& recording);

/// Checks that a recording is consistent: offsets, lengths of lists, pictures, rows and columns of
/// matrices, the same heads in every layer, caps, windows, chunks, sinks, routing, and parts.
/// Throws ModelError; the message starts with `source` and names the layer and head.
void CheckRecording(const Recording& recording, const std::string& source);

/// Same, but of heads only this one (or AllHeads) of the layer with index `layer`, which need not
/// be there, and neither residual, logits nor parts.
void CheckHead(
  const Recording& recording, std::int64_t layer, std::int64_t head, const std::string& source);

}
