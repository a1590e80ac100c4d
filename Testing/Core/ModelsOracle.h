#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace atlas::test
{

/// A file or folder of expected values, by its place below Testing/Oracle. Those that are too large
/// for the project may lie beside it, in ../shared/oracle. An empty path if it is in neither; tests
/// skip then.
inline std::filesystem::path AnyOracle(const std::filesystem::path& place)
{
  const std::filesystem::path source = ATLAS_SOURCE_DIR;
  for (const std::filesystem::path& folder :
    { std::filesystem::path(ATLAS_ORACLE_DIR), source.parent_path() / "shared" / "oracle" })
  {
    std::error_code ignored;
    if (std::filesystem::exists(folder / place, ignored))
    {
      return folder / place;
    }
  }
  return {};
}

/// Likewise, by the place in `models`: of architectures, model files and tokenizers.
inline std::filesystem::path ModelsOracle(const std::string& place)
{
  return AnyOracle(std::filesystem::path("models") / place);
}

}
