#include "CrossPart.h"

#include "Base/Index.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// A quantity of a head that has rows for tokens of the source, or for those of the target.
struct CrossQuantity
{
  SharedMatrix RecordedHead::* matrix;
  bool isOfSource;
  std::int64_t columns;
};

/// Whether the heads of a group share a quantity.
bool IsShared(const CrossQuantity& one)
{
  return one.matrix == &RecordedHead::key || one.matrix == &RecordedHead::value;
}

/// Gives each head a matrix of so many rows, and the heads of a group the same one if they share
/// it.
void Allocate(const TransformerConfig& config, const CrossQuantity& one, std::int64_t rows,
  std::vector<RecordedHead>& heads)
{
  const std::size_t group = config.heads / config.keyHeads;
  for (std::size_t h = 0; h < heads.size(); ++h)
  {
    const bool isFirst = !IsShared(one) || h % group == 0;
    heads[h].*one.matrix =
      isFirst ? SharedMatrix::Zero(rows, one.columns) : heads[h - h % group].*one.matrix;
  }
}

/// Those that are computed; which of them are recorded is up to the choice.
std::vector<CrossQuantity> Computed(const TransformerConfig& config)
{
  return { { &RecordedHead::query, false, config.headDimension },
    { &RecordedHead::key, true, config.headDimension },
    { &RecordedHead::value, true, config.headDimension } };
}

std::vector<CrossQuantity> Recorded(const TransformerConfig& config, const RecordChoice& choice)
{
  std::vector<CrossQuantity> quantities;
  for (const CrossQuantity& one : Computed(config))
  {
    if (one.matrix == &RecordedHead::value ? choice.values : choice.queriesAndKeys)
    {
      quantities.push_back(one);
    }
  }
  if (choice.headOutputs)
  {
    quantities.push_back({ &RecordedHead::output, false, config.modelDimension });
  }
  if (choice.queriesAndKeys && choice.valueNorms)
  {
    quantities.push_back({ &RecordedHead::valueNorm, true, 1 });
  }
  return quantities;
}

}

CrossPart::CrossPart(const TransformerConfig& config, const RecordChoice& choice,
  const PackedSequences& sequences, const std::vector<std::int64_t>& lengths)
  : Config(config)
  , Choice(choice)
  , Sequences(sequences)
  , Sources(sequences.Sources(lengths))
{
}

std::uint64_t CrossPart::RecordedFloats() const
{
  std::int64_t columns = 0;
  for (const CrossQuantity& one : Recorded(this->Config, this->Choice))
  {
    columns += one.columns;
  }
  return ToIndex(this->Sequences.offsets.back() + this->Sources.offsets.back()) *
         ToIndex(this->Config.heads * columns);
}

std::int64_t CrossPart::WorkingFloats() const
{
  std::int64_t columns = 0;
  for (const auto& quantities :
    { Computed(this->Config), Recorded(this->Config, this->Choice) }) // some are in both
  {
    for (const CrossQuantity& one : quantities)
    {
      columns += one.columns;
    }
  }
  const std::int64_t rows = std::max(this->Sequences.LargestGroup(), this->Sources.LargestGroup());
  return this->Sources.Rows() * this->Config.encoder->modelDimension +
         rows * this->Config.heads * columns;
}

void CrossPart::Begin(
  const Recording& encoder, const Recording& decoder, const SharedMatrix& encoded)
{
  this->Encoded = encoded;
  this->Describe(encoder, decoder);
  this->MakeSpare();
}

void CrossPart::Describe(const Recording& encoder, const Recording& decoder)
{
  this->Record = std::make_shared<Recording>();
  Recording& record = *this->Record;
  record.architecture = decoder.architecture;
  record.model = decoder.model;
  record.mask = AttentionMask::Cross;
  record.processing = decoder.processing;
  record.products = decoder.products;
  record.interventions = decoder.interventions;
  record.layerCount = decoder.layerCount;
  record.sequenceOffsets = { 0 };
  for (std::int64_t s = 0; s < decoder.SequenceCount(); ++s)
  {
    const std::int64_t source = encoder.SequenceLength(s);
    const std::int64_t length = source + decoder.SequenceLength(s);
    for (std::int64_t i = 0; i < length; ++i)
    {
      const bool isSource = i < source;
      const Recording& of = isSource ? encoder : decoder;
      const std::size_t row = of.sequenceOffsets[s] + (isSource ? i : i - source);
      record.tokens.sequence.push_back(static_cast<std::int32_t>(s));
      record.tokens.position.push_back(static_cast<std::int32_t>(isSource ? i : i - source));
      record.tokens.id.push_back(of.tokens.id.empty() ? -1 : of.tokens.id[row]); // -1: sound
    }
    record.sourceLengths.push_back(source);
    record.sequenceOffsets.push_back(record.sequenceOffsets.back() + length);
  }
}

/// Allocates memory for the heads of the largest group.
void CrossPart::MakeSpare()
{
  this->Spare.assign(this->Config.heads, {});
  for (const auto& quantities : { Computed(this->Config), Recorded(this->Config, this->Choice) })
  {
    for (const CrossQuantity& one : quantities)
    {
      const PackedSequences& rows = one.isOfSource ? this->Sources : this->Sequences;
      Allocate(this->Config, one, rows.LargestGroup(), this->Spare);
    }
  }
}

void CrossPart::BeginLayer(std::int64_t l, bool isRecorded)
{
  this->IsRecorded = isRecorded;
  if (!isRecorded)
  {
    return;
  }
  RecordedLayer& layer = this->Record->layers.emplace_back();
  layer.index = static_cast<std::int32_t>(l);
  layer.scoreScale = this->Config.ScoreScale(l);
  layer.scoreCap = this->Config.scoreCap;
  layer.heads.resize(this->Config.heads);
  for (const CrossQuantity& one : Recorded(this->Config, this->Choice))
  {
    Allocate(this->Config, one, this->Record->tokens.Count(), layer.heads);
  }
}

CrossSource CrossPart::SourceOf(std::size_t group) const
{
  CrossSource source;
  source.group = &this->Sources.groups[group];
  source.rows = this->Encoded.Row(source.group->begin - this->Sources.FirstRow());
  for (const RecordedHead& head : this->Spare)
  {
    HeadRows rows = { head.query.values.get(), head.key.values.get(), head.value.values.get(),
      nullptr, nullptr };
    if (this->IsRecorded)
    {
      rows.output = head.output.values.get();
      rows.valueNorm = head.valueNorm.values.get();
    }
    source.heads.push_back(rows);
  }
  return source;
}

void CrossPart::Keep(std::size_t group) const
{
  if (!this->IsRecorded)
  {
    return;
  }
  const RowGroup& targets = this->Sequences.groups[group];
  const RowGroup& sources = this->Sources.groups[group];
  const std::int64_t first = this->Sequences.SequenceAt(targets.begin);
  std::vector<RecordedHead>& heads = this->Record->layers.back().heads;
  for (const CrossQuantity& one : Recorded(this->Config, this->Choice))
  {
    const RowGroup& rows = one.isOfSource ? sources : targets;
    for (std::size_t s = 0; s + 1 < rows.offsets.size(); ++s)
    {
      const std::int64_t sequence = first + static_cast<std::int64_t>(s);
      const std::int64_t to = this->Record->sequenceOffsets[sequence] +
                              (one.isOfSource ? 0 : this->Record->sourceLengths[sequence]);
      const std::int64_t count = (rows.offsets[s + 1] - rows.offsets[s]) * one.columns;
      for (std::size_t h = 0; h < heads.size(); ++h)
      {
        std::copy_n(
          (this->Spare[h].*one.matrix).Row(rows.offsets[s]), count, (heads[h].*one.matrix).Row(to));
      }
    }
  }
}

}
