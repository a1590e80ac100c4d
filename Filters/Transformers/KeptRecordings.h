#pragma once

#include "AttentionAtlasTransformersModule.h"
#include "Recorder/OpenTransformer.h"
#include "Recorder/RecorderInput.h"
#include "Recording/Recording.h"
#include "Run/RecordTransformer.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

/// The recordings that vtkTransformerRecorder made last, for models over time.
namespace AttentionAtlas
{

/// What determines a recording.
struct ATTENTIONATLASTRANSFORMERS_EXPORT RecordingKey
{
  std::weak_ptr<const atlas::OpenTransformer> model; ///< another one once its files have changed
  atlas::RecorderInput input;
  atlas::RecordChoice choice;
  std::string source; ///< PatchFrom, as the recording names it
  bool recordPictures = true;

  bool operator==(const RecordingKey& other) const;
};

/// A number that differs, almost certainly, between recordings of different models, of different
/// sequences, and of matrices of different shapes, whose rows ranks cannot exchange.
std::size_t Fingerprint(const atlas::Transformer& model, const atlas::Recording& recording);

/// Recordings by what determines them, up to a limit of memory. The least recently used leave
/// first, and those of models that nobody holds any more.
class ATTENTIONATLASTRANSFORMERS_EXPORT KeptRecordings
{
public:
  struct Item
  {
    RecordingKey key;
    atlas::Recording recording; ///< shares its matrices
    std::size_t fingerprint = 0;
    std::uint64_t bytes = 0;
  };

  /// Limits the memory, in bytes. 0: nothing is kept.
  void SetLimit(std::uint64_t bytes);

  /// The recording of a key, which counts as used; nullptr if there is none.
  const Item* Find(const RecordingKey& key);

  /// Keeps a recording if it fits into the limit.
  void Keep(const RecordingKey& key, const atlas::Recording& recording, std::size_t fingerprint);

private:
  std::list<Item> Items; ///< the last used first
  std::uint64_t Limit = 0;

  void Trim();
};

}
