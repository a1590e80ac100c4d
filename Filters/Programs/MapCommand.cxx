// Writes the class map of a small attention-only transformer as a PNG of any size, a few rows at a
// time, without ParaView: memory does not grow with its height.

#include "AttentionOnly/ClassAreas.h"
#include "Base/Error.h"
#include "Base/Parallel.h"
#include "Commands.h"
#include "Files/AtomicFile.h"
#include "ProgramOptions.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

#include <png.h>

namespace atlas::programs
{
namespace
{

namespace fs = std::filesystem;

/// Writes a PNG of RGB rows, top row first, completely or not at all.
class PngFile
{
public:
  PngFile(const fs::path& path, std::int64_t columns, std::int64_t rows)
    : File(path)
  {
    this->Png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, &PngFile::Fail, nullptr);
    this->Info = png_create_info_struct(this->Png);
    png_set_write_fn(this->Png, &this->File, &PngFile::Write, nullptr);
    png_set_user_limits(this->Png, 0x7fffffff, 0x7fffffff);
    png_set_IHDR(this->Png, this->Info, static_cast<png_uint_32>(columns),
      static_cast<png_uint_32>(rows), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
      PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(this->Png, 2);
    png_set_filter(this->Png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_write_info(this->Png, this->Info);
  }
  ~PngFile() { png_destroy_write_struct(&this->Png, &this->Info); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  void WriteRow(const std::uint8_t* row) { png_write_row(this->Png, row); }

  void Commit()
  {
    png_write_end(this->Png, this->Info);
    this->File.Commit();
  }

private:
  AtomicFile File;
  png_structp Png = nullptr;
  png_infop Info = nullptr;

  static void Write(png_structp png, png_bytep bytes, std::size_t size)
  {
    static_cast<AtomicFile*>(png_get_io_ptr(png))
      ->Write(reinterpret_cast<const char*>(bytes), size);
  }

  [[noreturn]] static void Fail(png_structp, png_const_charp message)
  {
    throw FileError(std::string("PNG: ") + message + ".");
  }
};

/// The number of rows that all threads together evaluate at a time.
constexpr std::int64_t BlockRows = 64;

void WriteMap(const AttentionOnlyModel& model, const EvaluationOptions& options, std::int64_t size,
  int threads, const fs::path& path)
{
  FieldEvaluator evaluator(model, options);
  evaluator.SetColumns(MiddleAngles(size));
  const std::size_t width = size;
  std::vector<std::uint8_t> block(3 * width * BlockRows);
  FieldArrays arrays;
  arrays.classColor = block.data();
  PngFile png(path, size, size);
  for (std::int64_t top = 0; top < size; top += BlockRows)
  {
    const std::int64_t count = std::min(BlockRows, size - top);
    ParallelFor(count, threads,
      [&](std::int64_t row)
      {
        // The top row has the largest angle theta_2.
        evaluator.EvaluateRow(
          MiddleAngle(size - 1 - top - row, size), arrays, static_cast<std::size_t>(row) * width);
      });
    for (std::int64_t row = 0; row < count; ++row)
    {
      png.WriteRow(block.data() + 3 * width * static_cast<std::size_t>(row));
    }
  }
  png.Commit();
}

void PrintAreas(
  const AttentionOnlyModel& model, const EvaluationOptions& options, std::int64_t size, int threads)
{
  const ClassCounter counter(model, options, size, size);
  const auto parts = std::min<std::int64_t>(size, 256);
  std::vector<ClassCounts> counts(parts);
  ParallelFor(parts, threads, [&](std::int64_t part)
    { counts[part] = counter.Count(size * part / parts, size * (part + 1) / parts); });
  for (std::size_t part = 1; part < counts.size(); ++part)
  {
    counts.front().Add(counts[part]);
  }
  std::cout << "Class,Area,Probability\n";
  std::cout.precision(12);
  for (std::size_t k = 0; k < counts.front().points.size(); ++k)
  {
    std::cout << k << "," << counts.front().Area(k) << "," << counts.front().MeanProbability(k)
              << "\n";
  }
}

/// The most points along each side: the square of one more is above 2^33.
constexpr std::int64_t MostPoints = 92681;

/// Throws OptionError unless there is one model.
void RequireOneModel(const cxxopts::ParseResult& parsed)
{
  const std::size_t count = parsed.count("model");
  const std::vector<std::string>& others = parsed.unmatched();
  ThrowIf<OptionError>(count != 1 || !others.empty(), "expected the file of one model, found ",
    count == 1 && !others.empty() ? "another: '" + others.front() + "'" : std::to_string(count),
    "; --help shows how.");
}

}

int Map(const std::vector<std::string>& words)
{
  using cxxopts::value;
  cxxopts::Options arguments("attention-atlas map",
    "The class map of a small attention-only transformer, of any size: as a PNG, theta_1 to the\n"
    "right and theta_2 upward from -pi to pi, and the share of each class on standard output.\n");
  auto add = arguments.add_options();
  add("model", "a .safetensors file", value<std::string>());
  AddNumber(add, "size", "points along each side, at most " + std::to_string(MostPoints), "4096");
  add("hardmax", "use hardmax instead of softmax");
  add(
    "o,output", "PNG file to write; without it only the shares are written", value<std::string>());
  AddThreads(add);
  arguments.parse_positional({ "model" });
  arguments.positional_help("MODEL");
  const auto found =
    Parse(std::move(arguments), words, { "model.safetensors --size 8192 -o map.png" });
  if (!found)
  {
    return 0;
  }
  const cxxopts::ParseResult& parsed = *found;
  RequireOneModel(parsed);
  const auto size =
    Checked<std::int64_t>(parsed, "size", "1 to " + std::to_string(MostPoints) + " points",
      [](std::int64_t points) { return points >= 1 && points <= MostPoints; });
  const int threads = AtLeast(parsed, "threads", 0);
  const AttentionOnlyModel model = ReadAttentionOnlyModel(parsed["model"].as<std::string>());
  EvaluationOptions options;
  options.pattern = parsed.count("hardmax") != 0 ? Pattern::Hardmax : Pattern::Softmax;
  PrintAreas(model, options, size, threads);
  if (parsed.count("output") != 0)
  {
    WriteMap(model, options, size, threads, parsed["output"].as<std::string>());
  }
  return 0;
}

}
