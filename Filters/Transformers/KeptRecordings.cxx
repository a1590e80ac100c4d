#include "KeptRecordings.h"

#include "Files/Tensor.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace AttentionAtlas
{
namespace
{

std::uint64_t BytesOf(const atlas::RecorderInput& input)
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
  for (const atlas::Recording* part : atlas::WithParts(recording))
  {
    for (const atlas::SharedMatrix& matrix : atlas::TokenMatrices(*part))
    {
      bytes += matrix.Count() * sizeof(float);
    }
    const atlas::RecordedPictures& pictures = part->pictures;
    bytes += pictures.pixels != nullptr ? pictures.FirstByte(pictures.count) : 0;
  }
  return bytes;
}

/// A number that differs, almost certainly, between models: of names, types and shapes of all
/// tensors, and of the bytes of small ones and of parts of large ones. Times of files do not count,
/// since each machine may have its own copy.
std::size_t FingerprintOf(const atlas::Transformer& model)
{
  constexpr std::uint64_t sample = 4096; // bytes
  std::string text = model.GetConfig().architecture;
  for (const auto& [name, tensor] : model.GetFiles().GetTensors())
  {
    text +=
      name + ' ' + std::to_string(static_cast<int>(tensor.dtype)) + atlas::ToString(tensor.shape);
    const std::uint64_t bytes = tensor.Bytes();
    const auto* data = reinterpret_cast<const char*>(tensor.data);
    const std::uint64_t part = std::min(bytes, sample);
    text.append(data, part);
    text.append(data + (bytes - part), part);
  }
  return std::hash<std::string>()(text);
}

/// A number that differs, almost certainly, between recordings of different sequences, and of
/// matrices of different shapes, whose rows ranks cannot exchange.
std::size_t FingerprintOf(const atlas::Recording& recording)
{
  std::string numbers;
  for (const atlas::Recording* part : atlas::WithParts(recording))
  {
    for (const std::vector<std::int64_t>* list : { &part->sequenceOffsets, &part->tokens.id })
    {
      for (const std::int64_t number : *list)
      {
        numbers += std::to_string(number) + ' ';
      }
    }
    for (const atlas::SharedMatrix& matrix : atlas::TokenMatrices(*part))
    {
      numbers += atlas::ToString({ matrix.rows, matrix.columns });
    }
  }
  return std::hash<std::string>()(numbers);
}

}

std::size_t Fingerprint(const atlas::Transformer& model, const atlas::Recording& recording)
{
  return FingerprintOf(model) ^ (FingerprintOf(recording) << 1U);
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
