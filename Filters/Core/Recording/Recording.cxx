#include "Recording.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Files/Tensor.h"
#include "RecordingQuantities.h"

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

constexpr const char* Finite = "finite numbers";

bool IsFinite(float value)
{
  return std::isfinite(value);
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
    this->CheckAllButHeads();
    for (const RecordedLayer& layer : this->Record.layers)
    {
      this->CheckHeads(layer);
    }
    this->CheckLayersWithoutHeads();
    this->CheckResidual();
    this->CheckRows(LogitsQuantity.name, this->Record.logits);
    this->CheckParts();
  }

  void CheckOneHead(std::int64_t index, std::int64_t h) const
  {
    this->CheckAllButHeads();
    for (const RecordedLayer& layer : this->Record.layers)
    {
      if (layer.index != index)
      {
        continue;
      }
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

  template<class... Parts>
  void FailIf(bool isWrong, const Parts&... parts) const
  {
    ThrowIf<ModelError>(isWrong, this->Source, ": ", parts...);
  }

  void CheckAllButHeads() const
  {
    this->CheckTokens();
    this->CheckSequences();
    this->CheckKeyEnds();
    this->CheckSources();
    this->CheckPictures();
    this->CheckLayers();
  }

  /// Checks a matrix with a row per token, and a number of columns unless it is 0. It may be left
  /// out.
  void CheckRows(
    const std::string& name, const SharedMatrix& matrix, std::int64_t columns = 0) const
  {
    if (!matrix.IsRecorded())
    {
      return;
    }
    const std::string found = ToString({ matrix.rows, matrix.columns });
    this->FailIf(matrix.rows != this->Rows || matrix.columns < 1, name,
      ": expected a row for each of the ", this->Rows, " tokens, found shape ", found, ".");
    this->FailIf(columns > 0 && matrix.columns != columns, name, ": expected shape ",
      ToString({ this->Rows, columns }), ", found ", found, ".");
  }

  /// Fails at the first value of a matrix that is not right.
  template<class IsRight>
  void CheckValues(const std::string& name, const SharedMatrix& matrix, const IsRight& isRight,
    const std::string& expected, const char* row = "token") const
  {
    const float* values = matrix.values.get();
    const float* end = values + matrix.Count();
    const float* wrong = std::find_if_not(values, end, isRight);
    if (wrong != end)
    {
      throw ModelError(this->Source, ": ", name, ": expected ", expected, ", found ",
        ShortNumber(*wrong), " at ", row, " ", (wrong - values) / matrix.columns, ".");
    }
  }

  template<class List>
  void CheckLength(const char* name, const List& list, bool optional) const
  {
    const std::int64_t length = list.size();
    this->FailIf(length != this->Rows && !(optional && list.empty()), "expected a ", name,
      " for each of the ", this->Rows, " tokens, found ", length, ".");
  }

  /// How many keys tokens see.
  void CheckKeyEnds() const
  {
    const std::vector<std::int32_t>& ends = this->Record.tokens.keyEnd;
    if (ends.empty())
    {
      return;
    }
    this->FailIf(this->Record.mask != AttentionMask::Causal,
      "expected numbers of keys of tokens under a causal mask alone, found the mask ",
      Name(this->Record.mask), ".");
    for (std::int64_t s = 0; s < this->Record.SequenceCount(); ++s)
    {
      const std::int64_t length = this->Record.SequenceLength(s);
      std::int64_t least = 0;
      for (std::int64_t t = 0; t < length; ++t)
      {
        least = std::max(least, t + 1);
        const std::int64_t end = ends[this->Record.sequenceOffsets[s] + t];
        this->FailIf(end < least || end > length, "sequence ", s, ", token ", t,
          ": expected it to see the first ", least, " to ", length, " keys, found ", end, ".");
        least = end;
      }
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
    this->CheckRows(PatchColorQuantity.name, this->Record.tokens.color, PatchColorQuantity.columns);
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
    this->FailIf(this->Record.tokens.row.empty() || this->Record.tokens.column.empty(),
      "expected pictures of images, but the tokens have no patch rows and columns.");
    this->FailIf(pictures.count != this->Record.SequenceCount(),
      "expected a picture for each of the ", this->Record.SequenceCount(), " images, found ",
      pictures.count, ".");
    this->CheckSides(pictures.height, pictures.width);
    this->FailIf(pictures.pixels == nullptr &&
                   static_cast<std::int64_t>(pictures.sources.size()) != pictures.count,
      "expected the pixels of the ", pictures.count, " pictures or a file for each, found ",
      pictures.sources.size(), " files.");
  }

  void CheckSides(std::int64_t height, std::int64_t width) const
  {
    this->FailIf(
      height < 1 || width < 1 || height > MaximumPictureSide || width > MaximumPictureSide,
      "expected pictures of 1 to ", MaximumPictureSide, " pixels on a side, found ", width, " x ",
      height, ".");
  }

  /// The picture, row and column of each token of pictures among words.
  void CheckPlaces() const
  {
    const RecordedTokens& tokens = this->Record.tokens;
    if (tokens.picture.empty())
    {
      return;
    }
    this->FailIf(tokens.row.empty() || tokens.column.empty(),
      "expected rows and columns of tokens that are parts of pictures, found none.");
    const std::vector<PictureContent>& contents = this->Record.pictures.contents;
    const auto known = static_cast<std::int32_t>(contents.size());
    const std::string number = known == 0 ? "" : Concat(known, " ");
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
      this->FailIf(!isWord && !(isPart && isInside), "token ", i,
        ": expected a place in one of the ", number,
        "pictures, or -1 -1 -1 for a word, found picture ", picture, ", row ", row, ", column ",
        column, ".");
    }
  }

  /// What pictures show: those among words, or those of an encoder of images, one per sequence.
  void CheckContents() const
  {
    const RecordedPictures& pictures = this->Record.pictures;
    const auto count = static_cast<std::int64_t>(pictures.contents.size());
    this->FailIf(pictures.count != count || pictures.height != 0 || pictures.width != 0,
      "expected ", count, " pictures of sizes of their own, found ", pictures.count, " of ",
      pictures.width, " x ", pictures.height, " pixels.");
    const bool isAmongWords = !this->Record.tokens.picture.empty();
    this->FailIf(
      !isAmongWords && (count != this->Record.SequenceCount() || this->Record.tokens.row.empty()),
      "expected the picture of each token, or a picture for each of the ",
      this->Record.SequenceCount(), " images, found ", count, " pictures.");
    for (const PictureContent& content : pictures.contents)
    {
      this->CheckSides(content.height, content.width);
      this->FailIf(content.picture < 0 || content.frame < 0 || content.frames < 1,
        "expected numbers of a picture and its frames of at least 0, and 1 frame or more, found "
        "picture ",
        content.picture, ", frame ", content.frame, ", ", content.frames, " frames.");
    }
    this->FailIf(
      !pictures.sources.empty() && static_cast<std::int64_t>(pictures.sources.size()) != count,
      "expected a file for each of the ", count, " pictures or for none, found ",
      pictures.sources.size(), ".");
  }

  void CheckSequences() const
  {
    const std::vector<std::int64_t>& offsets = this->Record.sequenceOffsets;
    this->FailIf(offsets.empty() || offsets.front() != 0 || offsets.back() != this->Rows ||
                   !std::is_sorted(offsets.begin(), offsets.end()),
      "expected the first rows of the sequences to increase from 0 to the number of tokens, ",
      this->Rows, ", found ", ToString(offsets), ".");
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    {
      for (std::int64_t row = offsets[s]; row < offsets[s + 1]; ++row)
      {
        const std::int32_t found = this->Record.tokens.sequence[row];
        this->FailIf(found != static_cast<std::int64_t>(s), "token ", row, ": expected sequence ",
          s, ", found ", found, ".");
      }
    }
  }

  /// The number of tokens of the source, with which each sequence begins.
  void CheckSources() const
  {
    const std::vector<std::int64_t>& lengths = this->Record.sourceLengths;
    const bool isCross = this->Record.mask == AttentionMask::Cross;
    const std::int64_t expected = isCross ? this->Record.SequenceCount() : 0;
    this->FailIf(static_cast<std::int64_t>(lengths.size()) != expected, "expected ", expected,
      " lengths of sources, one per sequence of cross attention, found ", lengths.size(), ".");
    for (std::int64_t s = 0; s < expected; ++s)
    {
      this->FailIf(lengths[s] < 0 || lengths[s] > this->Record.SequenceLength(s), "sequence ", s,
        ": expected a source of 0 to ", this->Record.SequenceLength(s), " tokens, found ",
        lengths[s], ".");
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
    this->FailIf(isAmongWords ? cross != nullptr : (encoder == nullptr) != (cross == nullptr),
      isAmongWords ? "expected the attention of the encoder of images alone beside that of words "
                     "and pictures, found attention across."
                   : "expected the attention of both the encoder and across, or of neither, found "
                     "one alone.");
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
      this->FailIf(cross->sourceLengths[s] != source || cross->SequenceLength(s) != source + target,
        "cross attention, sequence ", s, ": expected the ", source,
        " tokens of the source and the ", target, " of the target, found ", cross->sourceLengths[s],
        " of ", cross->SequenceLength(s), " to be of the source.");
    }
  }

  void CheckEncoderOfImages(const Recording& encoder) const
  {
    const std::string name(Name(AttentionKind::Encoder));
    CheckRecording(encoder, this->Source + ": " + name);
    this->FailIf(encoder.mask != AttentionMask::Bidirectional || encoder.encoder != nullptr ||
                   encoder.tokens.row.empty() || encoder.tokens.column.empty() ||
                   !encoder.tokens.picture.empty(),
      name,
      ": expected images with rows and columns of their patches, without a mask, words or parts of "
      "its own.");
  }

  void CheckPart(const Recording& part, AttentionKind kind, AttentionMask mask) const
  {
    const std::string name(Name(kind));
    CheckRecording(part, this->Source + ": " + name);
    this->FailIf(part.mask != mask || part.encoder != nullptr || part.cross != nullptr ||
                   part.SequenceCount() != this->Record.SequenceCount(),
      name, ": expected ", this->Record.SequenceCount(), " sequences with the mask ", Name(mask),
      " and no parts of its own, found ", part.SequenceCount(), " with the mask ", Name(part.mask),
      ".");
  }

  void CheckLayers() const
  {
    std::int32_t previous = -1;
    for (const RecordedLayer& layer : this->Record.layers)
    {
      this->FailIf(layer.index <= previous || layer.index >= this->Record.layerCount, NameOf(layer),
        ": expected layers in ascending order and below ", this->Record.layerCount, ".");
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
    this->FailIf(routing.chosen.IsRecorded() != routing.weights.IsRecorded(), name,
      "expected both experts and their weights or neither, found ",
      routing.chosen.IsRecorded() ? "experts" : "weights", " alone.");
    this->CheckRows(name + RoutingQuantities[0].name, routing.chosen);
    this->CheckRows(name + RoutingQuantities[1].name, routing.weights, routing.chosen.columns);
    this->CheckValues(
      name + RoutingQuantities[0].name, routing.chosen,
      [&](float expert)
      {
        return expert >= 0 && expert < static_cast<float>(routing.experts) &&
               expert == std::trunc(expert);
      },
      Concat("numbers of its ", routing.experts, " experts, from 0"));
    this->CheckValues(name + RoutingQuantities[1].name, routing.weights, IsFinite, Finite);
    if (routing.scores.IsRecorded())
    {
      this->CheckRows(name + RoutingQuantities[2].name, routing.scores, routing.chosen.columns);
      this->CheckValues(name + RoutingQuantities[2].name, routing.scores, IsFinite, Finite);
    }
    if (routing.bias.IsRecorded())
    {
      this->FailIf(routing.bias.rows != 1 || routing.bias.columns != routing.experts, name,
        ExpertBiasName, ": expected a number for each of ", routing.experts, " experts, found ",
        routing.bias.rows, " x ", routing.bias.columns, ".");
      this->CheckValues(name + ExpertBiasName, routing.bias, IsFinite, Finite, "row");
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
    this->FailIf(layer.scoreCap != 0 && !isSingle(layer.scoreCap), NameOf(layer),
      ": expected a score cap above 0, or 0 for none, found ", layer.scoreCap, ".");
    this->FailIf(layer.window < 0, NameOf(layer),
      ": expected a window of at least 1 key, or 0 for none, found ", layer.window, ".");
    this->FailIf(layer.window > 0 && this->Record.mask == AttentionMask::Cross, NameOf(layer),
      ": expected no window in cross attention, found one of ", layer.window, " keys.");
    this->FailIf(layer.chunk < 0 || (layer.chunk > 0 && this->Record.mask != AttentionMask::Causal),
      NameOf(layer),
      ": expected chunks of at least 1 token under a causal mask, or 0 for none, found ",
      layer.chunk, " under the mask ", Name(this->Record.mask), ".");
    const bool isOfImages = !this->Record.tokens.row.empty() && this->Record.tokens.picture.empty();
    this->FailIf(layer.patchWindow < 0 ||
                   (layer.patchWindow > 0 &&
                     (!isOfImages || this->Record.mask != AttentionMask::Bidirectional)),
      NameOf(layer),
      ": expected a window of at least 1 patch on a side, of images without a mask, or 0 for none, "
      "found ",
      layer.patchWindow, " under the mask ", Name(this->Record.mask), ".");
    this->FailIf(
      !layer.sinks.empty() && !layer.heads.empty() && layer.sinks.size() != layer.heads.size(),
      NameOf(layer), ": expected a sink for each of the ", layer.heads.size(), " heads, found ",
      layer.sinks.size(), ".");
    for (std::size_t h = 0; h < layer.sinks.size(); ++h)
    {
      this->FailIf(!std::isfinite(layer.sinks[h]), NameOf(layer, h),
        "expected a finite sink, found ", layer.sinks[h], ".");
    }
  }

  void CheckHeads(const RecordedLayer& layer) const
  {
    const RecordedLayer& first = this->Record.layers.front();
    this->CheckHeadCount(layer, first);
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      this->CheckHead(NameOf(layer, h), layer.heads[h]);
      this->CheckAsInFirstHead(
        NameOf(layer, h), layer.heads[h], first.heads.front(), layer.heads.front());
    }
  }

  void CheckHeadCount(const RecordedLayer& layer, const RecordedLayer& first) const
  {
    const std::size_t heads = first.heads.size();
    const std::vector<double>& slopes = this->Record.alibiSlopes;
    this->FailIf(layer.heads.size() != heads || heads == 0, NameOf(layer), ": expected ",
      heads == 0 ? "heads" : std::to_string(heads), " as in layer ", first.index, ", found ",
      layer.heads.size(), ".");
    this->CheckDistanceBias("the bias of distances", this->Record.distanceBias, heads);
    this->CheckOwnBiases(layer);
    this->FailIf(!slopes.empty() && slopes.size() != heads, NameOf(layer), ": expected ", heads,
      " ALiBi slopes, found ", slopes.size(), ".");
  }

  void CheckDistanceBias(const std::string& name, const SharedMatrix& bias, std::size_t heads) const
  {
    if (!bias.IsRecorded())
    {
      return;
    }
    this->FailIf(bias.rows != static_cast<std::int64_t>(heads) || bias.columns % 2 != 1, name,
      ": expected ", heads, " rows, one per head, of an odd number of values, found shape ",
      ToString({ bias.rows, bias.columns }), ".");
    this->CheckValues(name, bias, IsFinite, Finite, "row");
  }

  /// Checks what a layer adds to scores by the places of query and key.
  void CheckOwnBiases(const RecordedLayer& layer) const
  {
    const std::size_t heads = layer.heads.size();
    const std::string name = NameOf(layer) + ", ";
    this->CheckDistanceBias(name + "the bias of distances", layer.distanceBias, heads);
    this->CheckPatchBias(name + "the bias of patches", layer.patchBias, heads);
    for (const SharedMatrix* vectors : { &layer.positionKeys, &layer.positionQueries })
    {
      const std::int64_t rows = vectors->rows;
      const std::int64_t count = heads;
      const std::int64_t dimension = layer.heads.front().query.columns;
      const std::int64_t other = // both reach as far
        layer.positionKeys.IsRecorded() ? layer.positionKeys.rows : layer.positionQueries.rows;
      this->FailIf(vectors->IsRecorded() && (rows % count != 0 || rows / count % 2 != 1 ||
                                              rows != other || vectors->columns != dimension),
        name, "the vectors of distances: expected an odd number of vectors of ", dimension,
        " numbers for each of the ", count, " heads, found shape ",
        ToString({ rows, vectors->columns }), ".");
      this->CheckValues(name + "the vectors of distances", *vectors, IsFinite, Finite, "row");
    }
  }

  void CheckPatchBias(const std::string& name, const SharedMatrix& bias, std::size_t heads) const
  {
    if (!bias.IsRecorded())
    {
      return;
    }
    const RecordedTokens& tokens = this->Record.tokens;
    this->FailIf(tokens.row.empty() || !tokens.picture.empty() ||
                   this->Record.mask != AttentionMask::Bidirectional,
      name, ": expected a recording of images without a mask.");
    const auto sizeOf = [](const std::vector<std::int32_t>& places)
    { return std::int64_t{ 1 } + *std::max_element(places.begin(), places.end()); };
    const std::int64_t expected =
      (2 * sizeOf(tokens.row) - 1) * (2 * sizeOf(tokens.column) - 1) + 3;
    this->FailIf(bias.rows != static_cast<std::int64_t>(heads) || bias.columns != expected, name,
      ": expected shape ", ToString({ static_cast<std::int64_t>(heads), expected }), ", found ",
      ToString({ bias.rows, bias.columns }), ".");
    this->CheckValues(name, bias, IsFinite, Finite, "row");
  }

  /// Checks a single head.
  void CheckHead(const std::string& name, const RecordedHead& head) const
  {
    this->FailIf(head.query.IsRecorded() != head.key.IsRecorded(), name,
      "expected both queries and keys or neither, found ",
      head.query.IsRecorded() ? "queries" : "keys", " alone.");
    for (const HeadQuantity& quantity : HeadQuantities)
    {
      this->CheckRows(name + quantity.name, head.*quantity.matrix);
    }
    this->CheckRows(name + "key", head.key, head.query.columns);
    this->CheckRows(name + "value_norm", head.valueNorm, 1);
    for (const StoredQuantity& quantity : StoredQuantities)
    {
      this->CheckAttention(name + quantity.name, head.*quantity.matrices);
    }
  }

  /// Layers may have heads of other sizes than those of the first (Gemma 4), but of one size each.
  void CheckAsInFirstHead(const std::string& name, const RecordedHead& head,
    const RecordedHead& first, const RecordedHead& firstOfLayer) const
  {
    for (const HeadQuantity& quantity : HeadQuantities)
    {
      const bool isRecorded = (first.*quantity.matrix).IsRecorded();
      this->FailIf(isRecorded != (head.*quantity.matrix).IsRecorded(), name, quantity.name,
        ": expected to be recorded in all heads or in none.");
      this->CheckRows(name + quantity.name, head.*quantity.matrix,
        isRecorded ? (firstOfLayer.*quantity.matrix).columns : 0);
    }
  }

  void CheckAttention(const std::string& name, const std::vector<SharedMatrix>& attention) const
  {
    if (attention.empty())
    {
      return;
    }
    const std::size_t sequences = this->Record.SequenceCount();
    this->FailIf(attention.size() != sequences, name, ": expected a matrix for each of the ",
      sequences, " sequences, found ", attention.size(), ".");
    for (std::size_t s = 0; s < sequences; ++s)
    {
      const std::int64_t length = this->Record.SequenceLength(static_cast<std::int64_t>(s));
      const SharedMatrix& matrix = attention[s];
      this->FailIf(!matrix.IsRecorded() || matrix.rows != length || matrix.columns != length, name,
        " of sequence ", s, ": expected shape ", ToString({ length, length }), ", found ",
        ToString({ matrix.rows, matrix.columns }), ".");
    }
  }

  void CheckLayersWithoutHeads() const
  {
    std::int32_t previous = -1;
    for (const std::int32_t index : this->Record.layersWithoutHeads)
    {
      const bool isRecorded = std::any_of(this->Record.layers.begin(), this->Record.layers.end(),
        [index](const RecordedLayer& layer) { return layer.index == index; });
      this->FailIf(index <= previous || index >= this->Record.layerCount || isRecorded,
        "layers without heads: expected ascending ones below ", this->Record.layerCount,
        " that have none, found ", index, ".");
      previous = index;
    }
  }

  void CheckResidual() const
  {
    const std::vector<SharedMatrix>& residual = this->Record.residual;
    const auto expected = static_cast<std::size_t>(this->Record.layerCount) + 1;
    this->FailIf(!residual.empty() && residual.size() != expected, "expected ", expected,
      " residuals, one more than layers, found ", residual.size(), ".");
    std::int64_t columns = 0;
    for (std::size_t l = 0; l < residual.size(); ++l)
    {
      this->CheckRows(Concat(ResidualQuantity.name, " ", l), residual[l], columns);
      columns = residual[l].IsRecorded() ? residual[l].columns : columns;
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
  ThrowIf<OptionError>(part == nullptr, "expected the recording of a transformer with ",
    recording.encoder == nullptr ? "an encoder and a decoder"
                                 : "cross attention, which one of pictures among words has not,",
    " for the attention '", Name(kind), "', found one of ", recording.architecture, ".");
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
  const std::vector<std::int32_t>& without = recording.layersWithoutHeads;
  const bool hasNone = std::find(without.begin(), without.end(), layer) != without.end();
  const std::string recorded = Joined(
    recording.layers, [](const RecordedLayer& one) { return std::to_string(one.index); }, " ");
  throw OptionError("layer ", layer,
    hasNone ? " of the model has no heads" : " is not in the recording",
    hasNone ? "; the recording has " : ", which has ",
    recorded.empty() ? "no layers" : "layers " + recorded, ".");
}

const RecordedHead& FindHead(const Recording& recording, std::int64_t layer, std::int64_t head)
{
  const std::vector<RecordedHead>& heads = FindLayer(recording, layer).heads;
  ThrowIf<OptionError>(head < 0 || head >= static_cast<std::int64_t>(heads.size()),
    "expected a head from 0 to ", static_cast<std::int64_t>(heads.size()) - 1, ", found ", head,
    ".");
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
  ForEachTokenMatrix(recording, add);
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
