#include "FileContent.h"

#include "Base/NamedValues.h"
#include "Base/TextEnds.h"

#include <algorithm>
#include <array>

namespace atlas
{
namespace
{

using namespace std::string_view_literals;

/// How files of a kind begin.
constexpr std::array<Named<std::string_view>, 20> Beginnings = { {
  { "a PNG picture", "\x89PNG\r\n\x1a\n"sv },
  { "a JPEG picture", "\xff\xd8\xff"sv },
  { "a GIF picture", "GIF8"sv },
  { "a PDF document", "%PDF-"sv },
  { "a sound or a video", "RIFF"sv },
  { "a FLAC sound", "fLaC"sv },
  { "an Ogg sound or video", "OggS"sv },
  { "a GGUF model", "GGUF"sv },
  { "a NumPy array", "\x93NUMPY"sv },
  { "an HDF5 file", "\x89HDF\r\n\x1a\n"sv },
  { "a ZIP archive", "PK\x03\x04"sv },
  { "a gzip archive", "\x1f\x8b"sv },
  { "a Zstandard archive", "\x28\xb5\x2f\xfd"sv },
  { "a pickle of Python", "\x80\x02"sv },
  { "a pickle of Python", "\x80\x04"sv },
  { "a program", "\x7f"
                 "ELF"sv },
  { "the pointer of Git LFS to a file that was not downloaded", "version https://git-lfs"sv },
  { "a web page", "<!DOCTYPE html"sv },
  { "a web page", "<!doctype html"sv },
  { "a web page", "<html"sv },
} };

/// Whether no byte is one that UTF-8 does not have, nor a control character.
bool IsText(std::string_view content)
{
  return std::all_of(content.begin(), content.end(),
    [](char letter)
    {
      const auto byte = static_cast<unsigned char>(letter);
      return byte >= 32 ? byte != 0x7f && byte != 0xc0 && byte != 0xc1 && byte <= 0xf4
                        : byte >= 9 && byte <= 13;
    });
}

}

std::string DescribeContent(std::string_view content)
{
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  const std::string_view begun = content.substr(std::min(first, content.size()));
  for (const auto& [name, beginning] : Beginnings)
  {
    if (BeginsWith(content, beginning) || BeginsWith(begun, beginning))
    {
      return std::string(name);
    }
  }
  if (begun.empty() || !IsText(content.substr(0, 512)))
  {
    return {};
  }
  return begun.front() == '{' || begun.front() == '[' ? "JSON" : "a text";
}

std::string WhyNoJson(std::string_view content, const std::string& parser)
{
  const std::string found = DescribeContent(content);
  return found.empty() || found == "JSON" || found == "a text" ? parser : "found " + found;
}

}
