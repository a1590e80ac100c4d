#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace atlas::test
{

/// A file or folder of the expected values of architectures, model files and tokenizers
/// (Testing/Oracle/models) by its place in that folder. Those that are too large for the project
/// may lie beside it, in ../shared/oracle/models. An empty path if it is in neither; tests skip
/// then.
inline std::filesystem::path ModelsOracle(const std::string& place)
{
  const std::filesystem::path source = ATLAS_SOURCE_DIR;
  for (const std::filesystem::path& folder : { std::filesystem::path(ATLAS_ORACLE_DIR) / "models",
         source.parent_path() / "shared" / "oracle" / "models" })
  {
    std::error_code ignored;
    if (std::filesystem::exists(folder / place, ignored))
    {
      return folder / place;
    }
  }
  return {};
}

}
