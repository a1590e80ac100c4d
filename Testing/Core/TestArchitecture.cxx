#include "TemporaryDirectory.h"

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace
{

using Names = std::vector<std::string>;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* CoreFolder = ATLAS_SOURCE_DIR "/Filters/Core";

/// The includes of a source, as written between quotes or brackets.
Names Includes(const std::string& source)
{
  static const std::regex include("(?:^|\n)[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]");
  Names names;
  for (std::sregex_iterator i(source.begin(), source.end(), include), end; i != end; ++i)
  {
    names.push_back((*i)[1]);
  }
  return names;
}

/// The rooms of a CMakeLists.txt that calls atlas_add_room, with what each DEPENDS on.
std::map<std::string, std::set<std::string>> DeclaredRooms(const std::string& cmake)
{
  static const std::regex call("\natlas_add_room\\((\\w+)([^)]*)\\)");
  static const std::regex depends("DEPENDS((?:\\s+[A-Z][a-z]\\w*)+)");
  std::map<std::string, std::set<std::string>> rooms;
  for (std::sregex_iterator i(cmake.begin(), cmake.end(), call), end; i != end; ++i)
  {
    std::set<std::string>& floors = rooms[(*i)[1]];
    const std::string arguments = (*i)[2];
    std::smatch found;
    if (std::regex_search(arguments, found, depends))
    {
      std::istringstream words(found[1]);
      for (std::string word; words >> word;)
      {
        floors.insert(word);
      }
    }
  }
  return rooms;
}

struct Source
{
  std::string room; ///< of Core
  std::string name; ///< Tensor.h
  bool isInternal;
  Names includes;
};

std::vector<Source> SourcesOf(const std::string& room)
{
  std::vector<Source> sources;
  const std::filesystem::path folder = std::filesystem::path(CoreFolder) / room;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
  {
    if (entry.is_regular_file())
    {
      sources.push_back({ room, entry.path().filename().string(),
        entry.path().parent_path().filename() == "Internal",
        Includes(atlas::test::ReadBytes(entry.path())) });
    }
  }
  return sources;
}

/// The actual rooms: the sources of each, and the rules that they must follow.
class House
{
public:
  explicit House(std::map<std::string, std::set<std::string>> depends)
    : Depends(std::move(depends))
  {
    for (const auto& [room, ignored] : this->Depends)
    {
      this->Add(SourcesOf(room));
    }
  }

  void Add(const std::vector<Source>& sources)
  {
    for (const Source& source : sources)
    {
      this->Sources.push_back(source);
      if (source.name.find(".h") != std::string::npos)
      {
        this->Headers[source.name] = { source.room, source.isInternal };
      }
    }
  }

  const std::vector<Source>& GetSources() const { return this->Sources; }

  /// A line for each include that breaks a rule.
  Names Faults() const
  {
    Names faults;
    for (const Source& source : this->Sources)
    {
      for (const std::string& include : source.includes)
      {
        const std::string fault = this->FaultOf(source, include);
        if (!fault.empty())
        {
          faults.push_back(source.room + "/" + source.name + " includes " + include + fault);
        }
      }
    }
    return faults;
  }

private:
  struct Header
  {
    std::string room;
    bool isInternal;
  };

  std::map<std::string, std::set<std::string>> Depends;
  std::vector<Source> Sources;
  std::map<std::string, Header> Headers;

  std::string FaultOf(const Source& source, const std::string& include) const
  {
    if (include.rfind("vtk", 0) == 0)
    {
      return ": Core knows no VTK";
    }
    const auto found = this->Headers.find(std::filesystem::path(include).filename().string());
    if (found == this->Headers.end())
    {
      return {};
    }
    const Header& header = found->second;
    const bool isOwn = header.room == source.room;
    if (include.find('/') != std::string::npos)
    {
      return ": name the header alone";
    }
    if (!isOwn && header.isInternal)
    {
      return ", which is internal to " + header.room;
    }
    if (!isOwn && this->Depends.at(source.room).count(header.room) == 0)
    {
      return " of " + header.room + ", on which " + source.room + " does not depend";
    }
    if (isOwn && header.isInternal && !source.isInternal &&
        source.name.find(".h") != std::string::npos)
    {
      return ": a public header shows an internal one";
    }
    return {};
  }
};

const std::map<std::string, std::set<std::string>>& Rooms()
{
  static const auto rooms =
    DeclaredRooms(atlas::test::ReadBytes(std::string(CoreFolder) + "/CMakeLists.txt"));
  return rooms;
}

TEST(Architecture, IncludesAreRecognized)
{
  EXPECT_THAT(Includes("#include <vector>\n#pragma once\n  # include \"Tensor.h\"\n"),
    ElementsAre("vector", "Tensor.h"));
  EXPECT_THAT(Includes("// not #include <vtkTable.h>\n"), IsEmpty());
}

TEST(Architecture, RoomsAreRead)
{
  const auto rooms = DeclaredRooms("\natlas_add_room(Base\n  UNITS Error)\n"
                                   "\natlas_add_room(Run\n  DEPENDS Base\n    Files\n  UNITS A B)");
  EXPECT_EQ(rooms, (std::map<std::string, std::set<std::string>>{
                     { "Base", {} }, { "Run", { "Base", "Files" } } }));
}

/// The rooms in floor order: each depends on rooms below it.
TEST(Architecture, EachRoomStandsOnFloorsBelow)
{
  const Names floors = { "Base", "Files", "Numerics", "AttentionOnly", "Text", "Recording",
    "Weights", "Run", "Embedding", "Analysis", "Circuits", "Learning" };
  ASSERT_THAT(Rooms(), SizeIs(floors.size()));
  std::set<std::string> below;
  for (const std::string& room : floors)
  {
    ASSERT_EQ(Rooms().count(room), 1U) << room;
    for (const std::string& other : Rooms().at(room))
    {
      EXPECT_EQ(below.count(other), 1U) << room << " depends on " << other;
    }
    below.insert(room);
  }
}

TEST(Architecture, RoomsIncludeWhatTheyDependOn)
{
  const House house(Rooms());
  EXPECT_GT(house.GetSources().size(), 100U);
  EXPECT_THAT(house.Faults(), IsEmpty());
}

TEST(Architecture, AForbiddenIncludeIsFound)
{
  House house(Rooms());
  house.Add({ { "Base", "Added.h", false, { "Tensor.h" } },
    { "Files", "Added.cxx", false, { "FieldKernel.h", "vtkTable.h" } },
    { "Text", "Added2.h", false, { "WordModel.h" } },
    { "Run", "Added.cxx", false, { "Internal/ForeignNames.h" } } });
  EXPECT_THAT(house.Faults(),
    ElementsAre("Base/Added.h includes Tensor.h of Files, on which Base does not depend",
      "Files/Added.cxx includes FieldKernel.h, which is internal to AttentionOnly",
      "Files/Added.cxx includes vtkTable.h: Core knows no VTK",
      "Text/Added2.h includes WordModel.h: a public header shows an internal one",
      "Run/Added.cxx includes Internal/ForeignNames.h: name the header alone"));
}

/// All folders of Core are rooms but Tools, which holds programs.
TEST(Architecture, EachFolderIsARoom)
{
  for (const auto& entry : std::filesystem::directory_iterator(CoreFolder))
  {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name != "Tools")
    {
      EXPECT_EQ(Rooms().count(name), 1U) << name;
    }
    EXPECT_FALSE(entry.path().extension() == ".cxx" || entry.path().extension() == ".h") << name;
  }
}

}
