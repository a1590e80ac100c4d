#pragma once

#include "Files/Safetensors.h"
#include "Files/Tensor.h"
#include "NumpyBytes.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

class SeedWriter
{
public:
  explicit SeedWriter(std::filesystem::path folder)
    : Folder(std::move(folder))
  {
  }

  using Files = std::initializer_list<std::pair<const char*, std::string>>;

  void Write(const std::string& target, const Files& files) const
  {
    for (const auto& [name, bytes] : files)
    {
      this->Write(target, name, bytes);
    }
  }

  void Write(const std::string& target, const std::string& name, const std::string& bytes) const
  {
    std::filesystem::create_directories(this->Folder / target);
    std::ofstream stream(this->Folder / target / name, std::ios::binary);
    stream.exceptions(std::ios::failbit | std::ios::badbit);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  /// For each target that reads safetensors.
  void WriteSafetensorsSeed(const std::string& name, const std::string& bytes) const
  {
    for (const char* target : { "ArrayFile", "AttentionOnlyModel", "RoundTrip", "Safetensors" })
    {
      this->Write(target, name, bytes);
    }
  }

private:
  std::filesystem::path Folder;
};

/// A safetensors file.
inline std::string Safetensors(const Tensors& tensors, const Metadata& metadata = {})
{
  std::ostringstream stream;
  WriteSafetensorViews(stream, ViewsOf(tensors), metadata);
  return stream.str();
}

/// A safetensors file with a header as it is given.
inline std::string SafetensorsWith(const std::string& header, const std::string& data)
{
  return LittleEndian(header.size(), 8) + header + data;
}

/// A tensor of small numbers that are all different.
inline Tensor Numbers(const Shape& shape, DType dtype = DType::F32)
{
  std::vector<double> values(ElementCount(shape).value());
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    values[i] = (static_cast<double>(i % 7) - 3) / 8 + static_cast<double>(i) / 64;
  }
  return Tensor::FromDouble(dtype, shape, values);
}

/// A tensor of integers 0, 1, ... below `bound`.
inline Tensor Integers(const Shape& shape, std::int64_t bound)
{
  std::vector<std::int64_t> values(ElementCount(shape).value());
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    values[i] = static_cast<std::int64_t>(i) % bound;
  }
  return Tensor::FromInteger(shape, values);
}

/// Writes the seeds of transformers and their tokenizers.
void WriteModelSeeds(const SeedWriter& seeds);

}
