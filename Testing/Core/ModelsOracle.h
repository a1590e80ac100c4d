#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace atlas::test
{

/// Where a file or folder of expected values is, by its place below Testing/Oracle. Those that are
/// too large for the project may lie beside it, in ../shared/oracle.
inline std::vector<std::filesystem::path> AllOracles(const std::filesystem::path& place)
{
  const std::filesystem::path source = ATLAS_SOURCE_DIR;
  std::vector<std::filesystem::path> found;
  for (const std::filesystem::path& folder :
    { std::filesystem::path(ATLAS_ORACLE_DIR), source.parent_path() / "shared" / "oracle" })
  {
    std::error_code ignored;
    if (std::filesystem::exists(folder / place, ignored))
    {
      found.push_back(folder / place);
    }
  }
  return found;
}

/// The first of these. An empty path if there is none; tests skip then.
inline std::filesystem::path AnyOracle(const std::filesystem::path& place)
{
  const std::vector<std::filesystem::path> found = AllOracles(place);
  return found.empty() ? std::filesystem::path() : found.front();
}

/// Likewise, by the place in `models`: of architectures, model files and tokenizers.
inline std::filesystem::path ModelsOracle(const std::string& place)
{
  return AnyOracle(std::filesystem::path("models") / place);
}

}
