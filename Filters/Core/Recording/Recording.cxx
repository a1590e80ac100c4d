#include "Recording.h"

#include "Error.h"
#include "Index.h"
#include "Joined.h"
#include "RecordingQuantities.h"
#include "Tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace atlas
{
namespace
{

/// A number without zeros behind.
std::string ShortNumber(float number)
{
  std::ostringstream text;
  text << number;
  return text.str();
}

class Checker
{
public:
  Checker(const Recording& recording, const std::string& source)
    : Record(recording)
    , Source(source)
    , Rows(recording.tokens.Count())
  {
  }

  void Check() const
  {
    this->CheckTokens();
    this->CheckSequences();
    this->CheckSources();
    this->CheckPictures();
    this->CheckLayers();
    for (const RecordedLayer& layer : this->Record.layers)
    {
      this->CheckHeads(layer);
    }
    this->CheckResidual();
    if (this->Record.logits.IsRecorded())
    {
      this->CheckRows(LogitsQuantity.name, this->Record.logits);
    }
    this->CheckParts();
  }

  void CheckOneHead(std::int64_t index, std::int64_t h) const
  {
    this->CheckTokens();
    this->CheckSequences();
    this->CheckSources();
    this->CheckPictures();
    this->CheckLayers();
    for (const RecordedLayer& layer : this->Record.layers)
    {
      if (layer.index == index)
      {
        this->CheckHeadCount(layer, layer);
        for (std::size_t i = 0; i < layer.heads.size(); ++i)
        {
          if (h == AllHeads || h == static_cast<std::int64_t>(i))
          {
            this->CheckHead(NameOf(layer, i), layer.heads[i]);
          }
        }
      }
    }
  }

private:
  const Recording& Record;
  const std::string& Source;
  std::int64_t Rows;

  static std::string NameOf(const RecordedLayer& layer)
  {
    return "layer " + std::to_string(layer.index);
  }
  static std::string NameOf(const RecordedLayer& layer, std::size_t head)
  {
    return NameOf(layer) + ", head " + std::to_string(head) + ": ";
  }

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw ModelError(this->Source + ": " + message);
  }

  void CheckRows(const std::string& name, const SharedMatrix& matrix) const
  {
    if (matrix.rows != this->Rows || matrix.columns < 1)
    {
      this->Fail(name + ": expected a row for each of the " + std::to_string(this->Rows) +
                 " tokens, found shape " + ToString({ matrix.rows, matrix.columns }) + ".");
    }
  }

  void CheckColumns(const std::string& name, const SharedMatrix& matrix, std::int64_t columns) const
  {
    this->CheckRows(name, matrix);
    if (matrix.columns != columns)
    {
      this->Fail(name + ": expected shape " + ToString({ this->Rows, columns }) + ", found " +
                 ToString({ matrix.rows, matrix.columns }) + ".");
    }
  }

  template<class List>
  void CheckLength(const char* name, const List& list, bool optional) const
  {
    const std::int64_t length = list.size();
    if (length != this->Rows && !(optional && list.empty()))
    {
      this->Fail("expected a " + std::string(name) + " for each of the " +
                 std::to_string(this->Rows) + " tokens, found " + std::to_string(length) + ".");
    }
  }

  void CheckTokens() const
  {
    for (const TokenQuantity& quantity : TokenQuantities)
    {
      std::visit([&](auto list)
        { this->CheckLength(quantity.message, this->Record.tokens.*list, quantity.isOptional); },
        quantity.list);
    }
    if (this->Record.tokens.color.IsRecorded())
    {
      this->CheckColumns(
        PatchColorQuantity.name, this->Record.tokens.color, PatchColorQuantity.columns);
    }
  }

  /// Pictures belong to images, whose patches they cover.
  void CheckPictures() const
  {
    const RecordedPictures& pictures = this->Record.pictures;
    this->CheckPlaces();
    if (!pictures.contents.empty())
    {
      this->CheckContents();
      return;
    }
    if (pictures.IsEmpty())
    {
      return;
    }
    if (this->Record.tokens.row.empty() || this->Record.tokens.column.empty())
    {
      this->Fail("expected pictures of images, but the tokens have no patch rows and columns.");
    }
    if (pictures.count != this->Record.SequenceCount())
    {
      this->Fail("expected a picture for each of the " +
                 std::to_string(this->Record.SequenceCount()) + " images, found " +
                 std::to_string(pictures.count) + ".");
    }
    this->CheckSides(pictures.height, pictures.width);
    if (pictures.pixels == nullptr &&
        static_cast<std::int64_t>(pictures.sources.size()) != pictures.count)
    {
      this->Fail("expected the pixels of the " + std::to_string(pictures.count) +
                 " pictures or a file for each, found " + std::to_string(pictures.sources.size()) +
                 " files.");
    }
  }

  void CheckSides(std::int64_t height, std::int64_t width) const
  {
    if (height < 1 || width < 1 || height > MaximumPictureSide || width > MaximumPictureSide)
    {
      this->Fail("expected pictures of 1 to " + std::to_string(MaximumPictureSide) +
                 " pixels on a side, found " + std::to_string(width) + " x " +
                 std::to_string(height) + ".");
    }
  }

  /// The picture, row and column of each token of pictures among words.
  void CheckPlaces() const
  {
    const RecordedTokens& tokens = this->Record.tokens;
    if (tokens.picture.empty())
    {
      return;
    }
    if (tokens.row.empty() || tokens.column.empty())
    {
      this->Fail("expected rows and columns of tokens that are parts of pictures, found none.");
    }
    const std::vector<PictureContent>& contents = this->Record.pictures.contents;
    const auto known = static_cast<std::int32_t>(contents.size());
    for (std::int64_t i = 0; i < this->Rows; ++i)
    {
      const std::int32_t picture = tokens.picture[i];
      const std::int32_t row = tokens.row[i];
      const std::int32_t column = tokens.column[i];
      const bool isWord = picture == -1 && row == -1 && column == -1;
      const bool isPart = picture >= 0 && row >= 0 && column >= 0;
      const bool isInside =
        known == 0 || (isPart && picture < known && row < contents[picture].height &&
                        column < contents[picture].width);
      if (!isWord && !(isPart && isInside))
      {
        this->Fail("token " + std::to_string(i) + ": expected a place in one of the " +
                   (known == 0 ? "" : std::to_string(known) + " ") +
                   "pictures, or -1 -1 -1 for a word, found picture " + std::to_string(picture) +
                   ", row " + std::to_string(row) + ", column " + std::to_string(column) + ".");
      }
    }
  }

  /// What pictures show: those among words, or those of an encoder of images, one per sequence.
  void CheckContents() const
  {
    const RecordedPictures& pictures = this->Record.pictures;
    const auto count = static_cast<std::int64_t>(pictures.contents.size());
    if (pictures.count != count || pictures.height != 0 || pictures.width != 0)
    {
      this->Fail("expected " + std::to_string(count) + " pictures of sizes of their own, found " +
                 std::to_string(pictures.count) + " of " + std::to_string(pictures.width) + " x " +
                 std::to_string(pictures.height) + " pixels.");
    }
    const bool isAmongWords = !this->Record.tokens.picture.empty();
    if (!isAmongWords && (count != this->Record.SequenceCount() || this->Record.tokens.row.empty()))
    {
      this->Fail("expected the picture of each token, or a picture for each of the " +
                 std::to_string(this->Record.SequenceCount()) + " images, found " +
                 std::to_string(count) + " pictures.");
    }
    for (const PictureContent& content : pictures.contents)
    {
      this->CheckSides(content.height, content.width);
      if (content.picture < 0 || content.frame < 0 || content.frames < 1)
      {
        this->Fail("expected numbers of a picture and its frames of at least 0, and 1 frame or "
                   "more, found picture " +
                   std::to_string(content.picture) + ", frame " + std::to_string(content.frame) +
                   ", " + std::to_string(content.frames) + " frames.");
      }
    }
    if (!pictures.sources.empty() && static_cast<std::int64_t>(pictures.sources.size()) != count)
    {
      this->Fail("expected a file for each of the " + std::to_string(count) +
                 " pictures or for none, found " + std::to_string(pictures.sources.size()) + ".");
    }
  }

  void CheckSequences() const
  {
    const std::vector<std::int64_t>& offsets = this->Record.sequenceOffsets;
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != this->Rows ||
        !std::is_sorted(offsets.begin(), offsets.end()))
    {
      this->Fail(
        "expected the first rows of the sequences to increase from 0 to the number of tokens, " +
        std::to_string(this->Rows) + ", found " + ToString(offsets) + ".");
    }
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    {
      for (std::int64_t row = offsets[s]; row < offsets[s + 1]; ++row)
      {
        const std::int32_t found = this->Record.tokens.sequence[row];
        if (found != static_cast<std::int64_t>(s))
        {
          this->Fail("token " + std::to_string(row) + ": expected sequence " + std::to_string(s) +
                     ", found " + std::to_string(found) + ".");
        }
      }
    }
  }

  /// The number of tokens of the source, with which each sequence begins.
  void CheckSources() const
  {
    const std::vector<std::int64_t>& lengths = this->Record.sourceLengths;
    const bool isCross = this->Record.mask == AttentionMask::Cross;
    const std::int64_t expected = isCross ? this->Record.SequenceCount() : 0;
    if (static_cast<std::int64_t>(lengths.size()) != expected)
    {
      this->Fail("expected " + std::to_string(expected) +
                 " lengths of sources, one per sequence of cross attention, found " +
                 std::to_string(lengths.size()) + ".");
    }
    for (std::int64_t s = 0; s < expected; ++s)
    {
      if (lengths[s] < 0 || lengths[s] > this->Record.SequenceLength(s))
      {
        this->Fail("sequence " + std::to_string(s) + ": expected a source of 0 to " +
                   std::to_string(this->Record.SequenceLength(s)) + " tokens, found " +
                   std::to_string(lengths[s]) + ".");
      }
    }
  }

  void CheckParts() const
  {
    const Recording* encoder = this->Record.encoder.get();
    const Recording* cross = this->Record.cross.get();
    if (encoder == nullptr && cross == nullptr)
    {
      return;
    }
    const bool isAmongWords = !this->Record.tokens.picture.empty();
    if (isAmongWords ? cross != nullptr : (encoder == nullptr) != (cross == nullptr))
    {
      this->Fail(isAmongWords
                   ? "expected the attention of the encoder of images alone beside that of words "
                     "and pictures, found attention across."
                   : "expected the attention of both the encoder and across, or of neither, found "
                     "one alone.");
    }
    if (isAmongWords)
    {
      this->CheckEncoderOfImages(*encoder);
      return;
    }
    this->CheckPart(*encoder, AttentionKind::Encoder, AttentionMask::Bidirectional);
    this->CheckPart(*cross, AttentionKind::Cross, AttentionMask::Cross);
    for (std::int64_t s = 0; s < this->Record.SequenceCount(); ++s)
    {
      const std::int64_t source = encoder->SequenceLength(s);
      const std::int64_t target = this->Record.SequenceLength(s);
      if (cross->sourceLengths[s] != source || cross->SequenceLength(s) != source + target)
      {
        this->Fail("cross attention, sequence " + std::to_string(s) + ": expected the " +
                   std::to_string(source) + " tokens of the source and the " +
                   std::to_string(target) + " of the target, found " +
                   std::to_string(cross->sourceLengths[s]) + " of " +
                   std::to_string(cross->SequenceLength(s)) + " to be of the source.");
      }
    }
  }

  void CheckEncoderOfImages(const Recording& encoder) const
  {
    const std::string name(Name(AttentionKind::Encoder));
    CheckRecording(encoder, this->Source + ": " + name);
    if (encoder.mask != AttentionMask::Bidirectional || encoder.encoder != nullptr ||
        encoder.tokens.row.empty() || encoder.tokens.column.empty() ||
        !encoder.tokens.picture.empty())
    {
      this->Fail(name + ": expected images with rows and columns of their patches, without a mask, "
                        "words or parts of its own.");
    }
  }

  void CheckPart(const Recording& part, AttentionKind kind, AttentionMask mask) const
  {
    const std::string name(Name(kind));
    CheckRecording(part, this->Source + ": " + name);
    if (part.mask != mask || part.encoder != nullptr || part.cross != nullptr ||
        part.SequenceCount() != this->Record.SequenceCount())
    {
      this->Fail(name + ": expected " + std::to_string(this->Record.SequenceCount()) +
                 " sequences with the mask " + std::string(Name(mask)) +
                 " and no parts of its own, found " + std::to_string(part.SequenceCount()) +
                 " with the mask " + std::string(Name(part.mask)) + ".");
    }
  }

  void CheckLayers() const
  {
    std::int32_t previous = -1;
    for (const RecordedLayer& layer : this->Record.layers)
    {
      if (layer.index <= previous || layer.index >= this->Record.layerCount)
      {
        this->Fail(NameOf(layer) + ": expected layers in ascending order and below " +
                   std::to_string(this->Record.layerCount) + ".");
      }
      previous = layer.index;
      this->CheckVariants(layer);
      this->CheckRouting(layer);
    }
  }

  void CheckRouting(const RecordedLayer& layer) const
  {
    const RecordedRouting& routing = layer.routing;
    if (!routing.chosen.IsRecorded() && !routing.weights.IsRecorded())
    {
      return;
    }
    const std::string name = NameOf(layer) + ": ";
    if (routing.chosen.IsRecorded() != routing.weights.IsRecorded())
    {
      this->Fail(name + "expected both experts and their weights or neither, found " +
                 (routing.chosen.IsRecorded() ? "experts" : "weights") + " alone.");
    }
    this->CheckRows(name + RoutingQuantities[0].name, routing.chosen);
    this->CheckColumns(name + RoutingQuantities[1].name, routing.weights, routing.chosen.columns);
    const float* chosen = routing.chosen.values.get();
    const float* wrong = std::find_if(chosen, chosen + routing.chosen.Count(),
      [&](float expert)
      {
        return !(expert >= 0 && expert < static_cast<float>(routing.experts)) ||
               expert != std::trunc(expert);
      });
    if (wrong != chosen + routing.chosen.Count())
    {
      this->Fail(name + RoutingQuantities[0].name + ": expected numbers of its " +
                 std::to_string(routing.experts) + " experts, from 0, found " +
                 ShortNumber(*wrong) + " at token " +
                 std::to_string((wrong - chosen) / routing.chosen.columns) + ".");
    }
    const float* weights = routing.weights.values.get();
    const float* infinite = std::find_if(weights, weights + routing.weights.Count(),
      [](float weight) { return !std::isfinite(weight); });
    if (infinite != weights + routing.weights.Count())
    {
      this->Fail(name + RoutingQuantities[1].name + ": expected finite numbers, found " +
                 ShortNumber(*infinite) + " at token " +
                 std::to_string((infinite - weights) / routing.weights.columns) + ".");
    }
  }

  /// Checks cap, window and sinks.
  void CheckVariants(const RecordedLayer& layer) const
  {
    const auto isSingle = [](double value)
    {
      return value >= std::numeric_limits<float>::min() &&
             value <= std::numeric_limits<float>::max();
    };
    if (layer.scoreCap != 0 && !isSingle(layer.scoreCap))
    {
      this->Fail(NameOf(layer) + ": expected a score cap above 0, or 0 for none, found " +
                 std::to_string(layer.scoreCap) + ".");
    }
    if (layer.window < 0)
    {
      this->Fail(NameOf(layer) + ": expected a window of at least 1 key, or 0 for none, found " +
                 std::to_string(layer.window) + ".");
    }
    if (layer.window > 0 && this->Record.mask == AttentionMask::Cross)
    {
      this->Fail(NameOf(layer) + ": expected no window in cross attention, found one of " +
                 std::to_string(layer.window) + " keys.");
    }
    if (layer.chunk < 0 || (layer.chunk > 0 && this->Record.mask != AttentionMask::Causal))
    {
      this->Fail(
        NameOf(layer) +
        ": expected chunks of at least 1 token under a causal mask, or 0 for none, found " +
        std::to_string(layer.chunk) + " under the mask " + std::string(Name(this->Record.mask)) +
        ".");
    }
    const bool isOfImages = !this->Record.tokens.row.empty() && this->Record.tokens.picture.empty();
    if (layer.patchWindow < 0 ||
        (layer.patchWindow > 0 &&
          (!isOfImages || this->Record.mask != AttentionMask::Bidirectional)))
    {
      this->Fail(
        NameOf(layer) +
        ": expected a window of at least 1 patch on a side, of images without a mask, or 0 "
        "for none, found " +
        std::to_string(layer.patchWindow) + " under the mask " +
        std::string(Name(this->Record.mask)) + ".");
    }
    if (!layer.sinks.empty() && !layer.heads.empty() && layer.sinks.size() != layer.heads.size())
    {
      this->Fail(NameOf(layer) + ": expected a sink for each of the " +
                 std::to_string(layer.heads.size()) + " heads, found " +
                 std::to_string(layer.sinks.size()) + ".");
    }
    for (std::size_t h = 0; h < layer.sinks.size(); ++h)
    {
      if (!std::isfinite(layer.sinks[h]))
      {
        this->Fail(NameOf(layer, h) + "expected a finite sink, found " +
                   std::to_string(layer.sinks[h]) + ".");
      }
    }
  }

  void CheckHeads(const RecordedLayer& layer) const
  {
    const RecordedLayer& first = this->Record.layers.front();
    this->CheckHeadCount(layer, first);
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      this->CheckHead(NameOf(layer, h), layer.heads[h]);
      this->CheckAsInFirstHead(NameOf(layer, h), layer.heads[h], first.heads.front());
    }
  }

  void CheckHeadCount(const RecordedLayer& layer, const RecordedLayer& first) const
  {
    const std::size_t heads = first.heads.size();
    const std::vector<double>& slopes = this->Record.alibiSlopes;
    if (layer.heads.size() != heads || heads == 0)
    {
      this->Fail(NameOf(layer) + ": expected " + (heads == 0 ? "heads" : std::to_string(heads)) +
                 " as in layer " + std::to_string(first.index) + ", found " +
                 std::to_string(layer.heads.size()) + ".");
    }
    this->CheckDistanceBias(heads);
    if (!slopes.empty() && slopes.size() != heads)
    {
      this->Fail(NameOf(layer) + ": expected " + std::to_string(heads) + " ALiBi slopes, found " +
                 std::to_string(slopes.size()) + ".");
    }
  }

  void CheckDistanceBias(std::size_t heads) const
  {
    const SharedMatrix& bias = this->Record.distanceBias;
    if (!bias.IsRecorded())
    {
      return;
    }
    if (bias.rows != static_cast<std::int64_t>(heads) || bias.columns % 2 != 1)
    {
      this->Fail("the bias of distances: expected " + std::to_string(heads) +
                 " rows, one per head, of an odd number of values, found shape " +
                 ToString({ bias.rows, bias.columns }) + ".");
    }
    const float* values = bias.values.get();
    const float* infinite = std::find_if(
      values, values + bias.Count(), [](float value) { return !std::isfinite(value); });
    if (infinite != values + bias.Count())
    {
      this->Fail(
        "the bias of distances: expected finite numbers, found " + ShortNumber(*infinite) + ".");
    }
  }

  /// Checks a single head.
  void CheckHead(const std::string& name, const RecordedHead& head) const
  {
    if (head.query.IsRecorded() != head.key.IsRecorded())
    {
      this->Fail(name + "expected both queries and keys or neither, found " +
                 (head.query.IsRecorded() ? "queries" : "keys") + " alone.");
    }
    for (const HeadQuantity& quantity : HeadQuantities)
    {
      if ((head.*quantity.matrix).IsRecorded())
      {
        this->CheckRows(name + quantity.name, head.*quantity.matrix);
      }
    }
    if (head.query.IsRecorded())
    {
      this->CheckColumns(name + "key", head.key, head.query.columns);
    }
    if (head.valueNorm.IsRecorded())
    {
      this->CheckColumns(name + "value_norm", head.valueNorm, 1);
    }
    for (const StoredQuantity& quantity : StoredQuantities)
    {
      this->CheckAttention(name + quantity.name, head.*quantity.matrices);
    }
  }

  void CheckAsInFirstHead(
    const std::string& name, const RecordedHead& head, const RecordedHead& first) const
  {
    for (const HeadQuantity& quantity : HeadQuantities)
    {
      const SharedMatrix& matrix = head.*quantity.matrix;
      if ((first.*quantity.matrix).IsRecorded() != matrix.IsRecorded())
      {
        this->Fail(name + quantity.name + ": expected to be recorded in all heads or in none.");
      }
      if (matrix.IsRecorded())
      {
        this->CheckColumns(name + quantity.name, matrix, (first.*quantity.matrix).columns);
      }
    }
  }

  void CheckAttention(const std::string& name, const std::vector<SharedMatrix>& attention) const
  {
    if (attention.empty())
    {
      return;
    }
    const std::size_t sequences = this->Record.SequenceCount();
    if (attention.size() != sequences)
    {
      this->Fail(name + ": expected a matrix for each of the " + std::to_string(sequences) +
                 " sequences, found " + std::to_string(attention.size()) + ".");
    }
    for (std::size_t s = 0; s < sequences; ++s)
    {
      const std::int64_t length = this->Record.SequenceLength(static_cast<std::int64_t>(s));
      const SharedMatrix& matrix = attention[s];
      if (!matrix.IsRecorded() || matrix.rows != length || matrix.columns != length)
      {
        this->Fail(name + " of sequence " + std::to_string(s) + ": expected shape " +
                   ToString({ length, length }) + ", found " +
                   ToString({ matrix.rows, matrix.columns }) + ".");
      }
    }
  }

  void CheckResidual() const
  {
    const std::vector<SharedMatrix>& residual = this->Record.residual;
    const auto expected = static_cast<std::size_t>(this->Record.layerCount) + 1;
    if (!residual.empty() && residual.size() != expected)
    {
      this->Fail("expected " + std::to_string(expected) +
                 " residuals, one more than layers, found " + std::to_string(residual.size()) +
                 ".");
    }
    std::int64_t columns = -1;
    for (std::size_t l = 0; l < residual.size(); ++l)
    {
      if (residual[l].IsRecorded())
      {
        columns = columns < 0 ? residual[l].columns : columns;
        this->CheckColumns(ResidualQuantity.name + (" " + std::to_string(l)), residual[l], columns);
      }
    }
  }
};

}

const Recording& PartOf(const Recording& recording, AttentionKind kind)
{
  if (kind == AttentionKind::Decoder)
  {
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): lasts as its parts do
    return recording;
  }
  const auto& part = kind == AttentionKind::Encoder ? recording.encoder : recording.cross;
  if (part == nullptr)
  {
    throw OptionError(
      "expected the recording of a transformer with " +
      std::string(recording.encoder == nullptr
                    ? "an encoder and a decoder"
                    : "cross attention, which one of pictures among words has not,") +
      " for the attention '" + std::string(Name(kind)) + "', found one of " +
      recording.architecture + ".");
  }
  return *part;
}

const RecordedLayer& FindLayer(const Recording& recording, std::int64_t layer)
{
  for (const RecordedLayer& recorded : recording.layers)
  {
    if (recorded.index == layer)
    {
      return recorded;
    }
  }
  const std::string recorded = Joined(
    recording.layers, [](const RecordedLayer& one) { return std::to_string(one.index); }, " ");
  throw OptionError("layer " + std::to_string(layer) + " is not in the recording, which has " +
                    (recorded.empty() ? "no layers" : "layers " + recorded) + ".");
}

const RecordedHead& FindHead(const Recording& recording, std::int64_t layer, std::int64_t head)
{
  const std::vector<RecordedHead>& heads = FindLayer(recording, layer).heads;
  if (head < 0 || head >= static_cast<std::int64_t>(heads.size()))
  {
    throw OptionError("expected a head from 0 to " +
                      std::to_string(static_cast<std::int64_t>(heads.size()) - 1) + ", found " +
                      std::to_string(head) + ".");
  }
  return heads[head];
}

std::vector<const Recording*> WithParts(const Recording& recording)
{
  std::vector<const Recording*> all = { &recording };
  for (const auto& part : { recording.encoder, recording.cross })
  {
    if (part != nullptr)
    {
      all.push_back(part.get());
    }
  }
  return all;
}

std::vector<SharedMatrix> TokenMatrices(const Recording& recording)
{
  std::vector<SharedMatrix> matrices;
  std::set<const float*> seen;
  const auto add = [&](const SharedMatrix& matrix)
  {
    if (matrix.IsRecorded() && seen.insert(matrix.values.get()).second)
    {
      matrices.push_back(matrix);
    }
  };
  for (const RecordedLayer& layer : recording.layers)
  {
    for (const RecordedHead& head : layer.heads)
    {
      for (const HeadQuantity& quantity : HeadQuantities)
      {
        add(head.*quantity.matrix);
      }
    }
    for (const RoutingQuantity& quantity : RoutingQuantities)
    {
      add(layer.routing.*quantity.matrix);
    }
  }
  std::for_each(recording.residual.begin(), recording.residual.end(), add);
  add(recording.logits);
  return matrices;
}

void CheckRecording(const Recording& recording, const std::string& source)
{
  Checker(recording, source).Check();
}

void CheckHead(
  const Recording& recording, std::int64_t layer, std::int64_t head, const std::string& source)
{
  Checker(recording, source).CheckOneHead(layer, head);
}

}
