#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

namespace atlas::test
{

/// Where expected values are: Testing/Oracle, and ../shared/oracle for those that are too large for
/// the project.
inline std::array<std::filesystem::path, 2> OracleFolders()
{
  const std::filesystem::path source = ATLAS_SOURCE_DIR;
  return { std::filesystem::path(ATLAS_ORACLE_DIR), source.parent_path() / "shared" / "oracle" };
}

/// A file or folder of expected values, by its place in these. An empty path if it is in neither;
/// tests skip then.
inline std::filesystem::path AnyOracle(const std::filesystem::path& place)
{
  for (const std::filesystem::path& folder : OracleFolders())
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
