#include "TemporaryDirectory.h"

#include <filesystem>
#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace
{

bool IncludesVtk(const std::string& source)
{
  static const std::regex include("(^|\n)[ \t]*#[ \t]*include[ \t]*[<\"]vtk");
  return std::regex_search(source, include);
}

TEST(Architecture, IncludesOfVtkAreRecognized)
{
  EXPECT_TRUE(IncludesVtk("#include <vtkTable.h>"));
  EXPECT_TRUE(IncludesVtk("#pragma once\n#include \"vtkTable.h\"\n"));
  EXPECT_TRUE(IncludesVtk("\n  # include <vtk_jsoncpp.h>\n"));
  EXPECT_FALSE(IncludesVtk("#include <vector>\n// not #include <vtkTable.h>\n"));
}

TEST(Architecture, CoreIncludesNoVtk)
{
  int files = 0;
  for (const auto& entry :
    std::filesystem::recursive_directory_iterator(ATLAS_SOURCE_DIR "/Filters/Core"))
  {
    if (entry.is_regular_file())
    {
      ++files;
      EXPECT_FALSE(IncludesVtk(atlas::test::ReadBytes(entry.path()))) << entry.path();
    }
  }
  EXPECT_GT(files, 10);
}

}
