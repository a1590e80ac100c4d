#include "Files/AtomicFile.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "TemporaryDirectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

TEST(AtomicFile, AppearsWhole)
{
  const TemporaryDirectory folder;
  const std::string bytes("a\0\n\r\xFF", 5);
  {
    AtomicFile file(folder / "x");
    file.Write(bytes.data(), bytes.size());
    file.GetStream() << 17;
    EXPECT_FALSE(std::filesystem::exists(folder / "x"));
    EXPECT_EQ(folder.Entries().size(), 1U) << "what is written so far is in the same folder";
    file.Commit();
  }
  EXPECT_THAT(folder.Entries(), ElementsAre("x"));
  EXPECT_EQ(ReadBytes(folder / "x"), bytes + "17");
}

TEST(AtomicFile, ReplacesAnotherOnlyWhenItIsCommitted)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", "before");
  AtomicFile file(folder / "x");
  file.GetStream() << "after" << std::flush;
  EXPECT_EQ(ReadBytes(folder / "x"), "before");
  file.Commit();
  EXPECT_EQ(ReadBytes(folder / "x"), "after");
}

TEST(AtomicFile, LeavesNothingWithoutCommit)
{
  const TemporaryDirectory folder;
  {
    AtomicFile file(folder / "x");
    file.GetStream() << "half of it";
  }
  EXPECT_THAT(folder.Entries(), IsEmpty());
}

TEST(AtomicFile, TwoWritersDoNotMeet)
{
  const TemporaryDirectory folder;
  AtomicFile first(folder / "x");
  AtomicFile second(folder / "x");
  first.GetStream() << "first";
  second.GetStream() << "second";
  first.Commit();
  EXPECT_EQ(ReadBytes(folder / "x"), "first");
  second.Commit();
  EXPECT_EQ(ReadBytes(folder / "x"), "second");
}

TEST(AtomicFile, ErrorsNameTheFile)
{
  const TemporaryDirectory folder;
  const auto refusal = [](const std::filesystem::path& path)
  {
    return MessageOf<FileError>(
      [&]
      {
        AtomicFile file(path);
        file.GetStream() << "text";
        file.Commit();
      });
  };
  const std::filesystem::path missing = (folder / "no") / "x";
  EXPECT_THAT(refusal(missing), StartsWith(missing.string() + ": cannot write file"));
  // A folder with a file in it cannot be replaced.
  std::filesystem::create_directory(folder / "full");
  WriteBytes((folder / "full") / "y", "");
  EXPECT_THAT(
    refusal(folder / "full"), StartsWith((folder / "full").string() + ": cannot write file"));
  EXPECT_THAT(folder.Entries(), ElementsAre("full"));
}

TEST(AtomicFile, AStreamThatFailedIsNotCommitted)
{
  const TemporaryDirectory folder;
  {
    AtomicFile file(folder / "x");
    file.GetStream().setstate(std::ios::badbit); // as after a disk is full
    EXPECT_THROW(file.Commit(), FileError);
  }
  EXPECT_THAT(folder.Entries(), IsEmpty());
}

}
