#include "TemporaryDirectory.h"

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fs = std::filesystem;
using atlas::test::ReadBytes;
using atlas::test::TemporaryDirectory;
using atlas::test::WriteBytes;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

namespace
{

const fs::path Source = ATLAS_SOURCE_DIR;

/// The units of Core by their rooms: what has a header. Headers without code that could be tested
/// are left out.
std::map<std::string, std::set<std::string>> UnitsByRoom(const fs::path& core)
{
  const std::set<std::string> trivial = { "Error", "Index", "Pi" };
  std::map<std::string, std::set<std::string>> rooms;
  for (const auto& entry : fs::recursive_directory_iterator(core))
  {
    const fs::path path = entry.path().lexically_relative(core);
    std::string unit = path.stem().string();
    if (path.extension() != ".h" || trivial.count(unit) != 0)
    {
      continue;
    }
    const std::size_t suffix = unit.rfind("-inl");
    rooms[path.begin()->string()].insert(unit.substr(0, suffix));
  }
  return rooms;
}

/// What a test says that it tests too: the words behind "// Also tests:" at its top, and those of
/// the lines that go on with "//   ".
std::vector<std::string> AlsoTested(const std::string& source)
{
  const std::string claim = "// Also tests:";
  std::istringstream lines(source);
  std::string line;
  std::vector<std::string> units;
  for (bool goesOn = false; std::getline(lines, line) && line.rfind("//", 0) == 0;)
  {
    const bool begins = line.rfind(claim, 0) == 0;
    goesOn = begins || (goesOn && line.rfind("//   ", 0) == 0);
    std::istringstream words(line.substr(begins ? claim.size() : 2));
    for (std::string word; goesOn && words >> word;)
    {
      units.push_back(word);
    }
  }
  return units;
}

/// The units that tests are for: of TestName.cxx, Name in the room where the test is, and those
/// that it tests also, in whatever room.
struct Tested
{
  std::map<std::string, std::set<std::string>> byRoom;
  std::multiset<std::string> also;

  explicit Tested(const fs::path& tests)
  {
    for (const auto& entry : fs::recursive_directory_iterator(tests))
    {
      const fs::path path = entry.path().lexically_relative(tests);
      if (path.extension() == ".cxx" && path.stem().string().rfind("Test", 0) == 0)
      {
        this->byRoom[path.begin()->string()].insert(path.stem().string().substr(4));
        const std::vector<std::string> units = AlsoTested(ReadBytes(entry.path()));
        this->also.insert(units.begin(), units.end());
      }
    }
  }
};

/// What is wrong with the tests of units.
std::vector<std::string> Untested(
  const std::map<std::string, std::set<std::string>>& rooms, const Tested& tested)
{
  std::vector<std::string> complaints;
  std::set<std::string> known;
  for (const auto& [room, units] : rooms)
  {
    known.insert(units.begin(), units.end());
    const auto tests = tested.byRoom.find(room);
    for (const std::string& unit : units)
    {
      const bool isOwn = tests != tested.byRoom.end() && tests->second.count(unit) != 0;
      if (!isOwn && tested.also.count(unit) == 0)
      {
        complaints.push_back(room + "/" + unit + " has no test");
      }
      if (isOwn && tested.also.count(unit) != 0)
      {
        complaints.push_back(unit + " has a test of its own, and another that claims it");
      }
    }
  }
  for (const std::string& unit : tested.also)
  {
    if (known.count(unit) == 0)
    {
      complaints.push_back(unit + " is tested, but no unit");
    }
  }
  return complaints;
}

TEST(Units, WithoutATestAreFound)
{
  const TemporaryDirectory folder;
  const fs::path core = folder / "Core";
  const fs::path tests = folder / "Testing";
  for (const char* path : { "Core/A/Internal", "Core/B", "Testing/A", "Testing/B" })
  {
    fs::create_directories(folder / path);
  }
  for (const char* unit : { "A/One.h", "A/Internal/Two.h", "A/Error.h", "B/Three.h",
         "B/Three-inl.h", "B/Four.h", "B/Four.cxx" })
  {
    WriteBytes(core / unit, "");
  }
  EXPECT_THAT(Untested(UnitsByRoom(core), Tested(tests)),
    UnorderedElementsAre(
      "A/One has no test", "A/Two has no test", "B/Three has no test", "B/Four has no test"));
  WriteBytes(tests / "A/TestOne.cxx", "// Also tests: Two\n//   Three\n\n// Also tests: Four\n");
  EXPECT_THAT(Untested(UnitsByRoom(core), Tested(tests)), ElementsAre("B/Four has no test"));
  WriteBytes(tests / "A/TestFour.cxx", "#include <Four.h>\n"); // in another room
  EXPECT_THAT(Untested(UnitsByRoom(core), Tested(tests)), ElementsAre("B/Four has no test"));
  WriteBytes(tests / "B/TestFour.cxx", "// A text.\n// Also tests: Five One\n");
  EXPECT_THAT(Untested(UnitsByRoom(core), Tested(tests)),
    UnorderedElementsAre(
      "Five is tested, but no unit", "One has a test of its own, and another that claims it"));
}

TEST(Units, OfCoreAllHaveATest)
{
  const auto rooms = UnitsByRoom(Source / "Filters/Core");
  EXPECT_GE(rooms.size(), 8U);
  EXPECT_THAT(Untested(rooms, Tested(Source / "Testing/Core")), IsEmpty());
}

}
