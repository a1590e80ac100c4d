#include "Files/MappedFile.h"

#include "ErrorMessage.h"
#include "Files/ArrayFile.h"
#include "Files/Safetensors.h"
#include "NumpyBytes.h"
#include "Recording/RecordedAttention.h"
#include "Recording/RecordingFile.h"
#include "TemporaryDirectory.h"
#include "TinyTransformer.h"

#include <chrono>
#include <csignal>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

constexpr std::size_t Large = 1'000'000; // many pages, of any size

std::string Truncated(const std::filesystem::path& path)
{
  return path.string() + ": the file was truncated while in use.";
}

/// Sums all bytes, as an example of reading them.
unsigned Sum(const MappedFile& file)
{
  return std::accumulate(file.Data(), file.Data() + file.Size(), 0U,
    [](unsigned sum, std::byte byte) { return sum + std::to_integer<unsigned>(byte); });
}

TEST(MappedFile, TruncatedFilesAreZeroFromThereOnAndNoLongerIntact)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", std::string(Large, '\1'));
  const MappedFile file(folder / "x");
  EXPECT_EQ(Sum(file), Large);
  EXPECT_NO_THROW(file.RequireIntact());
  std::filesystem::resize_file(folder / "x", 10);
  EXPECT_EQ(Sum(file), 10U);
  EXPECT_EQ(file.Size(), Large);
  EXPECT_EQ(MessageOf<FileError>([&] { file.RequireIntact(); }), Truncated(folder / "x"));

  // What was cut off does not come back.
  std::filesystem::resize_file(folder / "x", Large);
  EXPECT_EQ(MessageOf<FileError>([&] { file.RequireIntact(); }), Truncated(folder / "x"));
}

TEST(MappedFile, ThreadsMayMeetTheEndAtTheSameTime)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", std::string(Large, '\1'));
  for (int i = 0; i < 20; ++i)
  {
    const MappedFile file(folder / "x");
    std::filesystem::resize_file(folder / "x", 0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
    {
      threads.emplace_back([&] { EXPECT_EQ(Sum(file), 0U); });
    }
    for (std::thread& thread : threads)
    {
      thread.join();
    }
    EXPECT_THROW(file.RequireIntact(), FileError);
    WriteBytes(folder / "x", std::string(Large, '\1'));
  }
}

TEST(MappedFile, OthersStayIntact)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", std::string(Large, '\1'));
  WriteBytes(folder / "y", std::string(Large, '\2'));
  const MappedFile x(folder / "x");
  const MappedFile y(folder / "y");
  std::filesystem::resize_file(folder / "x", 0);
  EXPECT_EQ(Sum(x), 0U);
  EXPECT_EQ(Sum(y), 2 * Large);
  EXPECT_NO_THROW(y.RequireIntact());
  EXPECT_NO_THROW(RequireIntact(y.Data() + Large - 1));
  EXPECT_NO_THROW(RequireIntact(&folder));
  EXPECT_NO_THROW(RequireIntact(nullptr));
  EXPECT_EQ(
    MessageOf<FileError>([&] { RequireIntact(x.Data() + Large - 1); }), Truncated(folder / "x"));
}

TEST(MappedFile, MemoryIsUsedAgain)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", std::string(Large, '\1'));
  {
    const MappedFile file(folder / "x");
    std::filesystem::resize_file(folder / "x", 0);
    EXPECT_EQ(Sum(file), 0U);
  }
  WriteBytes(folder / "x", std::string(Large, '\1'));
  const MappedFile again(folder / "x");
  EXPECT_EQ(Sum(again), Large);
  EXPECT_NO_THROW(again.RequireIntact());
}

TEST(MappedFile, ChangedFilesAreNoLongerIntact)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", "before");
  const MappedFile file(folder / "x");
  const auto time = std::filesystem::last_write_time(folder / "x");
  std::filesystem::last_write_time(folder / "x", time + std::chrono::seconds(1));
  EXPECT_EQ(MessageOf<FileError>([&] { file.RequireIntact(); }),
    (folder / "x").string() + ": the file was changed while in use.");
  std::filesystem::last_write_time(folder / "x", time);
  EXPECT_NO_THROW(file.RequireIntact());
  std::filesystem::resize_file(folder / "x", 100);
  EXPECT_THROW(file.RequireIntact(), FileError);
}

TEST(MappedFile, ReplacedFilesAreIntact)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", "before");
  WriteBytes(folder / "y", "y");
  const MappedFile file(folder / "x");
  std::filesystem::rename(folder / "y", folder / "x");
  EXPECT_NO_THROW(file.RequireIntact());
  std::filesystem::remove(folder / "x");
  EXPECT_NO_THROW(file.RequireIntact());
}

TEST(MappedFile, TheFileIsBlamedBeforeItsContent)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", "before");
  const MappedFile file(folder / "x");
  EXPECT_EQ(ReadIntact(file, [] { return 5; }), 5);
  const auto fail = []() -> int { throw FormatError("zeros"); };
  EXPECT_EQ(MessageOf<FormatError>([&] { ReadIntact(file, fail); }), "zeros");
  std::filesystem::resize_file(folder / "x", 0);
  EXPECT_EQ(MessageOf<FileError>([&] { ReadIntact(file, fail); }), Truncated(folder / "x"));
}

/// Reads beyond the end of a file through a mapping that is not ours.
void MeetAnotherBusError(const std::filesystem::path& path)
{
  const int file = ::open(path.c_str(), O_RDONLY);
  void* address = ::mmap(nullptr, Large, PROT_READ, MAP_PRIVATE, file, 0);
  std::filesystem::resize_file(path, 0);
  [[maybe_unused]] const char value = *static_cast<volatile char*>(address);
}

extern "C" void EndWith42(int)
{
  ::_exit(42);
}

TEST(MappedFileDeathTest, OtherBusErrorsGoToTheEarlierHandler)
{
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // in a process that mapped nothing before
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", std::string(Large, '\1'));
  const auto meet = [&](void (*handler)(int))
  {
    std::signal(SIGBUS, handler);
    const MappedFile file(folder / "x");
    WriteBytes(folder / "y", std::string(Large, '\1'));
    MeetAnotherBusError(folder / "y");
  };
  EXPECT_EXIT(meet(EndWith42), testing::ExitedWithCode(42), "");
  EXPECT_EXIT(meet(SIG_DFL), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(meet(SIG_IGN), testing::KilledBySignal(SIGBUS), "");
}

TEST(ReadFile, GivesTheBytesOfAFile)
{
  const TemporaryDirectory folder;
  const std::string bytes = std::string(Large, 'x') + '\0' + "end";
  WriteBytes(folder / "x", bytes);
  EXPECT_EQ(ReadFile(folder / "x"), bytes);
  WriteBytes(folder / "x", "");
  EXPECT_EQ(ReadFile(folder / "x"), "");
  EXPECT_THAT(MessageOf<FileError>([&] { ReadFile(folder / "missing"); }),
    HasSubstr("missing: cannot open file"));
  EXPECT_THAT(
    MessageOf<FileError>([&] { ReadFile(folder.Path()); }), HasSubstr("expected a regular file"));
}

TEST(Truncation, OfSafetensors)
{
  const TemporaryDirectory folder;
  const std::vector<double> ones(Large, 1);
  WriteSafetensors(folder / "x", { { "x", Tensor::FromDouble(DType::F32, { Large }, ones) } }, {});
  const SafetensorsFile file(folder / "x");
  std::filesystem::resize_file(folder / "x", 8);
  EXPECT_THAT(file.GetTensors().at("x").ToDouble(), testing::Contains(0));
  EXPECT_EQ(MessageOf<FileError>([&] { file.RequireIntact(); }), Truncated(folder / "x"));
  EXPECT_EQ(
    MessageOf<FileError>([&] { WriteSafetensorViews(folder / "y", file.GetTensors(), {}); }),
    Truncated(folder / "x"));
  EXPECT_THAT(folder.Entries(), ElementsAre("x"));
}

TEST(Truncation, OfWeights)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "config.json", TinyTransformer::Config());
  WriteSafetensors(folder / "model.safetensors", TinyTransformer().tensors, {});
  const Transformer model = Transformer::Read(folder.Path());
  RecordOptions options;
  options.threads = 2;
  EXPECT_NO_THROW(RecordTransformer(model, TinyInput({ 5, 9 }), options));
  std::filesystem::resize_file(folder / "model.safetensors", 8);
  EXPECT_EQ(MessageOf<FileError>([&] { RecordTransformer(model, TinyInput({ 5 }), options); }),
    Truncated(folder / "model.safetensors"));
}

/// A recording of one head that attends to queries and keys of many numbers.
Tensors LongRecording()
{
  constexpr std::int64_t width = 10'000;
  std::vector<double> values(4 * width, 0.5);
  const Tensor tensor = Tensor::FromDouble(DType::F32, { 1, 4, 1, width }, values);
  return { { "blocks.0.attn.hook_q", tensor }, { "blocks.0.attn.hook_k", tensor } };
}

TEST(Truncation, OfRecordings)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "r.safetensors", LongRecording(), {});
  const Recording recording = ReadRecording(folder / "r.safetensors").recording;
  std::vector<float> values(16);
  const auto evaluate = [&]
  { EvaluateAttention(recording, 0, 0, 0, AttentionQuantity::Scores, 0, 4, values.data()); };
  evaluate();
  EXPECT_THAT(values, Each(testing::FloatNear(25, 1e-4F))); // 10,000 x 0.5 x 0.5 / 100
  std::filesystem::resize_file(folder / "r.safetensors", 8);
  EXPECT_EQ(MessageOf<FileError>(evaluate), Truncated(folder / "r.safetensors"));
  EXPECT_EQ(MessageOf<FileError>([&] { WriteRecording(folder / "w", recording); }),
    Truncated(folder / "r.safetensors"));
  EXPECT_THAT(folder.Entries(), ElementsAre("r.safetensors"));
}

TEST(Truncation, OfArrays)
{
  const TemporaryDirectory folder;
  const std::string array =
    NpyFile(NpyHeader("<f4", "(10000,)"), FloatBytes(std::vector<float>(10'000, 1)));
  for (const auto& [name, bytes] : { std::pair<std::string, std::string>("x.npy", array),
         std::pair<std::string, std::string>("x.npz", ZipFile({ { "array.npy", array } })) })
  {
    WriteBytes(folder / name, bytes);
    const ArrayFile file(folder / name);
    EXPECT_NO_THROW(file.RequireIntact());
    std::filesystem::resize_file(folder / name, 8);
    const auto load = [&, &entries = file.GetEntries()]
    { return ReadIntact(file, [&] { return entries.at("array").load().view.ToDouble(); }); };
    EXPECT_EQ(MessageOf<FileError>(load), Truncated(folder / name));
  }
}

}
