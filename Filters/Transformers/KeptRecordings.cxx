#include "KeptRecordings.h"

#include <iterator>
#include <utility>

namespace AttentionAtlas
{
namespace
{

std::uint64_t BytesOf(const RecorderInput& input)
{
  std::uint64_t bytes = input.input.pixels.size() * sizeof(float);
  for (const std::vector<std::int64_t>& sequence : input.input.tokens)
  {
    bytes += sequence.size() * sizeof(std::int64_t);
  }
  return bytes;
}

std::uint64_t BytesOf(const atlas::Recording& recording)
{
  std::uint64_t bytes = 0;
  for (const atlas::SharedMatrix& matrix : atlas::TokenMatrices(recording))
  {
    bytes += matrix.Count() * sizeof(float);
  }
  if (recording.pictures.pixels != nullptr)
  {
    bytes +=
      static_cast<std::uint64_t>(recording.pictures.count) * recording.pictures.BytesPerPicture();
  }
  return bytes;
}

}

bool RecordingKey::operator==(const RecordingKey& other) const
{
  return !this->model.expired() && this->model.lock() == other.model.lock() &&
         this->choice == other.choice && this->source == other.source &&
         this->recordPictures == other.recordPictures && this->input.input == other.input.input &&
         this->input.labels == other.input.labels && this->input.pictures == other.input.pictures;
}

void KeptRecordings::SetLimit(std::uint64_t bytes)
{
  this->Limit = bytes;
  this->Trim();
}

const KeptRecordings::Item* KeptRecordings::Find(const RecordingKey& key)
{
  for (auto item = this->Items.begin(); item != this->Items.end(); ++item)
  {
    if (item->key == key)
    {
      this->Items.splice(this->Items.begin(), this->Items, item);
      return &this->Items.front();
    }
  }
  return nullptr;
}

void KeptRecordings::Keep(
  const RecordingKey& key, const atlas::Recording& recording, std::size_t fingerprint)
{
  const std::uint64_t bytes = BytesOf(key.input) + BytesOf(recording);
  if (bytes <= this->Limit)
  {
    this->Items.push_front({ key, recording, fingerprint, bytes });
    this->Trim();
  }
}

void KeptRecordings::Trim()
{
  std::uint64_t bytes = 0;
  for (auto item = this->Items.begin(); item != this->Items.end();)
  {
    bytes += item->key.model.expired() ? 0 : item->bytes;
    const bool stays = !item->key.model.expired() && bytes <= this->Limit;
    item = stays ? std::next(item) : this->Items.erase(item);
  }
}

}
