#pragma once

#include "Run/RecordOptions.h"
#include "TransformerLayer.h"

#include <memory>

namespace atlas
{

/// The cross attention of a run: what it reads, and what is recorded of it.
class CrossPart
{
public:
  /// `sequences` are the texts of the decoder, in groups that suit the sources of these lengths.
  /// The arguments but the last must outlive this object.
  CrossPart(const TransformerConfig& config, const RecordChoice& choice,
    const PackedSequences& sequences, const std::vector<std::int64_t>& lengths);

  const PackedSequences& GetSources() const { return this->Sources; }

  /// The floats of the recording of one layer.
  std::uint64_t RecordedFloats() const;

  /// The floats that are allocated besides, those that the encoder returns included.
  std::int64_t WorkingFloats() const;

  /// Begins the recording, whose sequences are the tokens of the encoder's, then those of the
  /// decoder's. `encoded` [source rows to run, d_model] is what the encoder returns.
  void Begin(const Recording& encoder, const Recording& decoder, const SharedMatrix& encoded);

  /// Begins layer l, which is recorded or not.
  void BeginLayer(std::int64_t l, bool isRecorded);

  /// What the layer reads and writes for a group of the sequences.
  CrossSource SourceOf(std::size_t group) const;

  /// Records what it wrote for this group.
  void Keep(std::size_t group) const;

  /// The recording.
  std::shared_ptr<const Recording> GetRecording() const { return this->Record; }

private:
  const TransformerConfig& Config;
  const RecordChoice& Choice;
  const PackedSequences& Sequences;
  PackedSequences Sources;
  SharedMatrix Encoded;
  std::shared_ptr<Recording> Record;
  std::vector<RecordedHead> Spare; ///< of a group: its rows, or those of its sources
  bool IsRecorded = false;

  void Describe(const Recording& encoder, const Recording& decoder);
  void MakeSpare();
};

}
