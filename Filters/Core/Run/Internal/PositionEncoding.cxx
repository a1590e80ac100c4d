#include "PositionEncoding.h"

#include "Index.h"

#include <cmath>

namespace atlas
{

PositionEncoding::PositionEncoding(
  const TransformerConfig& config, const TransformerWeights& weights, std::int64_t length)
  : Width(config.modelDimension)
{
  switch (config.position)
  {
    case PositionKind::Learned:
    case PositionKind::None:
      break;
    case PositionKind::Shortformer:
      this->Vectors = FloatValues(weights.positionEmbedding);
      break;
    case PositionKind::Alibi:
      this->Slopes = AlibiSlopes(config.heads);
      break;
    case PositionKind::Rotary:
      this->MakeRotations(config, length);
      break;
  }
}

void PositionEncoding::MakeRotations(const TransformerConfig& config, std::int64_t length)
{
  const std::vector<float> frequencies = RotaryFrequencies(config);
  this->Pairs = static_cast<std::int64_t>(frequencies.size());
  this->Cosines.reserve(ToIndex(length * this->Pairs));
  this->Sines.reserve(this->Cosines.capacity());
  for (std::int64_t position = 0; position < length; ++position)
  {
    for (const float frequency : frequencies)
    {
      const float angle = static_cast<float>(position) * frequency;
      this->Cosines.push_back(std::cos(angle));
      this->Sines.push_back(std::sin(angle));
    }
  }
}

const float* PositionEncoding::Vector(std::int64_t position) const
{
  return this->Vectors.Data() == nullptr ? nullptr : this->Vectors.Data() + position * this->Width;
}

void PositionEncoding::Rotate(std::int64_t position, float* values) const
{
  const float* cosine = this->Cosines.data() + position * this->Pairs;
  const float* sine = this->Sines.data() + position * this->Pairs;
  for (std::int64_t i = 0; i < this->Pairs; ++i)
  {
    const float a = values[i];
    const float b = values[i + this->Pairs];
    values[i] = a * cosine[i] - b * sine[i];
    values[i + this->Pairs] = b * cosine[i] + a * sine[i];
  }
}

float PositionEncoding::Slope(std::int64_t head) const
{
  return this->Slopes.empty() ? 0 : static_cast<float>(this->Slopes[ToIndex(head)]);
}

}
