#include "Files/FileStamp.h"

#include "Files/MappedFile.h"
#include "TemporaryDirectory.h"

#include <chrono>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

namespace fs = std::filesystem;

/// A file that was written an hour ago.
void WriteOld(const fs::path& path, const std::string& bytes)
{
  WriteBytes(path, bytes);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST(FileStamp, StaysWhileNothingChanges)
{
  const TemporaryDirectory folder;
  WriteOld(folder / "x", "old");
  const FileStamp stamp(folder / "x");
  EXPECT_TRUE(stamp.IsCurrent());
  EXPECT_EQ(ReadBytes(folder / "x"), "old");
  WriteBytes(folder / "y", "another");
  EXPECT_TRUE(stamp.IsCurrent());
}

TEST(FileStamp, NoticesEachChange)
{
  const TemporaryDirectory folder;
  const fs::path path = folder / "x";
  WriteOld(path, "old");
  const FileStamp before(path);
  WriteBytes(path, "new"); // of equal size
  EXPECT_FALSE(before.IsCurrent());

  WriteOld(path, "old");
  const FileStamp older(path);
  WriteBytes(folder / "y", "new");
  fs::last_write_time(folder / "y", fs::last_write_time(path));
  fs::rename(folder / "y", path); // of equal size and time
  EXPECT_FALSE(older.IsCurrent());

  const FileStamp last(path);
  fs::remove(path);
  EXPECT_FALSE(last.IsCurrent());
}

TEST(FileStamp, OfNoFileIsCurrentUntilThereIsOne)
{
  const TemporaryDirectory folder;
  const FileStamp stamp(folder / "x");
  EXPECT_TRUE(stamp.IsCurrent());
  WriteBytes(folder / "x", "");
  EXPECT_FALSE(stamp.IsCurrent());
}

TEST(FileStamp, FollowsLinks)
{
  const TemporaryDirectory folder;
  WriteOld(folder / "x", "one");
  WriteOld(folder / "y", "two");
  fs::create_symlink("x", folder / "link");
  const FileStamp stamp(folder / "link");
  EXPECT_TRUE(stamp.IsCurrent());
  fs::remove(folder / "link");
  fs::create_symlink("y", folder / "link");
  EXPECT_FALSE(stamp.IsCurrent());
}

TEST(FileStamp, OfAMappedFileIsThatOfItsOpening)
{
  const TemporaryDirectory folder;
  WriteOld(folder / "x", "old");
  const MappedFile file(folder / "x");
  EXPECT_TRUE(file.Stamp().IsCurrent());
  WriteBytes(folder / "y", "new");
  fs::rename(folder / "y", folder / "x");
  EXPECT_FALSE(file.Stamp().IsCurrent());
}

}
