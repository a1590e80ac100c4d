#include "FuzzTarget.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// Runs a fuzz target without libFuzzer: on each file of a folder of seeds, then on a number of
// mutations of them, which are the same each time.

namespace
{

using Input = std::vector<std::uint8_t>;
using Generator = std::mt19937;

/// From 0 to count - 1; the same with every standard library, unlike its distributions.
std::size_t Below(Generator& generator, std::size_t count)
{
  return count == 0 ? 0 : generator() % count;
}

std::vector<Input> ReadSeeds(const std::filesystem::path& folder)
{
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
  {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds;
  for (const std::filesystem::path& path : paths)
  {
    std::ifstream stream(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return seeds;
}

/// Writes other digits in the place of a number in the text.
void EditNumber(Input& input, Generator& generator)
{
  const auto isDigit = [](std::uint8_t c) { return c >= '0' && c <= '9'; };
  const auto start = input.begin() + static_cast<std::ptrdiff_t>(Below(generator, input.size()));
  const auto begin = std::find_if(start, input.end(), isDigit);
  const auto end = std::find_if_not(begin, input.end(), isDigit);
  constexpr const char* numbers[] = { "0", "1", "2", "3", "-1", "255", "65536", "1e400",
    "2147483648", "4294967296", "9223372036854775807", "18446744073709551615" };
  const std::string_view number = numbers[Below(generator, std::size(numbers))];
  const auto place = input.erase(begin, end);
  input.insert(place, number.begin(), number.end());
}

void Mutate(Input& input, const Input& other, Generator& generator)
{
  const std::size_t place = Below(generator, input.size());
  const auto at = input.begin() + static_cast<std::ptrdiff_t>(place);
  const std::size_t length = Below(generator, std::min<std::size_t>(input.size() - place, 32) + 1);
  const auto end = at + static_cast<std::ptrdiff_t>(length);
  switch (generator() % 7)
  {
    case 0:
      input.resize(place);
      break;
    case 1:
      input.erase(at, end);
      break;
    case 2:
    {
      const Input copy(at, end);
      input.insert(at, copy.begin(), copy.end());
      break;
    }
    case 3:
      input.insert(at, static_cast<std::uint8_t>(generator()));
      break;
    case 4: // the rest of another seed
      input.resize(place);
      input.insert(input.end(),
        other.begin() + static_cast<std::ptrdiff_t>(std::min(place, other.size())), other.end());
      break;
    case 5:
      EditNumber(input, generator);
      break;
    default:
      if (!input.empty())
      {
        *at ^= static_cast<std::uint8_t>(1U << generator() % 8);
      }
      break;
  }
}

/// Returns false, and saves the input to a file, after an exception that is not an error of Core.
bool Run(const Input& input, const std::string& name)
{
  try
  {
    LLVMFuzzerTestOneInput(input.data(), input.size());
    return true;
  }
  catch (const std::exception& e)
  {
    std::ofstream("failed-input", std::ios::binary)
      .write(
        reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
    std::fprintf(stderr,
      "%s, in the file failed-input: expected no error, or one of Core, found %s.\n", name.c_str(),
      e.what());
    return false;
  }
}

}

int main(int argc, char** argv)
{
  if (argc != 3)
  {
    std::fprintf(stderr, "Usage: %s FOLDER-OF-SEEDS MUTATIONS\n", argv[0]);
    return 2;
  }
  const std::vector<Input> seeds = ReadSeeds(argv[1]);
  if (seeds.empty())
  {
    std::fprintf(stderr, "%s: expected seeds, found none.\n", argv[1]);
    return 2;
  }
  bool passes = true;
  for (std::size_t i = 0; i < seeds.size(); ++i)
  {
    passes = Run(seeds[i], "Seed " + std::to_string(i)) && passes;
  }
  const long count = std::strtol(argv[2], nullptr, 10);
  for (long i = 0; i < count && passes; ++i)
  {
    Generator generator(static_cast<Generator::result_type>(i));
    Input input = seeds[Below(generator, seeds.size())];
    for (std::size_t n = 1 + Below(generator, 3); n > 0; --n)
    {
      Mutate(input, seeds[Below(generator, seeds.size())], generator);
    }
    passes = Run(input, "Mutation " + std::to_string(i));
  }
  return passes ? 0 : 1;
}
