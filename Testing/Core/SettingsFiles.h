#pragma once

#include "Files/JsonText.h"
#include "Files/MappedFile.h"

#include <filesystem>
#include <functional>
#include <string>

namespace atlas::test
{

/// Calls `call(path, settings)` for each file of this name in Testing/Oracle, in Data and, if it is
/// there, in ../shared/oracle/v5, which has models as transformers 5 saves them. Returns their
/// number.
inline int ForEachSettingsFile(const std::string& name,
  const std::function<void(const std::string& path, const nlohmann::json& settings)>& call)
{
  const std::filesystem::path source = ATLAS_SOURCE_DIR;
  int files = 0;
  for (const std::filesystem::path& folder : { std::filesystem::path(ATLAS_ORACLE_DIR),
         source / "Data", source.parent_path() / "shared" / "oracle" / "v5" })
  {
    if (!std::filesystem::exists(folder))
    {
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    {
      if (entry.path().filename() == name)
      {
        ++files;
        call(entry.path().string(), ParseJson(ReadFile(entry.path()), entry.path().string()));
      }
    }
  }
  return files;
}

}
