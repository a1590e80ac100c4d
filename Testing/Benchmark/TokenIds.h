#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

namespace atlas::benchmarks
{

/// Token ids by Zipf's law, a document a row, as a .npy file.
inline std::string WriteIds(std::int64_t documents, std::int64_t length, std::int64_t vocabulary)
{
  std::mt19937 random(3);
  std::vector<double> weights(vocabulary);
  for (std::int64_t i = 0; i < vocabulary; ++i)
  {
    weights[i] = 1 / static_cast<double>(i + 1);
  }
  std::discrete_distribution<std::int64_t> draw(weights.begin(), weights.end());
  const std::filesystem::path path =
    std::filesystem::temp_directory_path() /
    ("corpus-" + std::to_string(getpid()) + "-" + std::to_string(length) + ".npy");
  std::ofstream stream(path, std::ios::binary);
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (" +
                       std::to_string(documents) + ", " + std::to_string(length) + "), }";
  header.resize(117, ' ');
  header += '\n';
  stream.write("\x93NUMPY\x01\x00\x76\x00", 10);
  stream << header;
  for (std::int64_t i = 0; i < documents * length; ++i)
  {
    const std::int64_t id = draw(random);
    stream.write(reinterpret_cast<const char*>(&id), sizeof(id));
  }
  return path.string();
}

}
