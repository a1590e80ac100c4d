#include "LabelFonts.h"

#include "Base/Utf8Text.h"

#include <fontconfig/fontconfig.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <utility>
#include <vector>

namespace AttentionAtlas
{
namespace
{

using Pattern = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;
using Charset = std::unique_ptr<FcCharSet, decltype(&FcCharSetDestroy)>;

/// Whether a letter is in one of these blocks, given by their first and last one.
bool IsIn(std::initializer_list<std::pair<char32_t, char32_t>> blocks, char32_t c)
{
  return std::any_of(blocks.begin(), blocks.end(),
    [c](const auto& block) { return c >= block.first && c <= block.second; });
}

/// Whether VTK's own font has a letter: those of Western European languages, with their quotation
/// marks and dashes. In Debian's font square brackets are round, so they are not among them.
bool IsInOwnFont(char32_t c)
{
  return IsIn({ { 0x20, 0x5A }, { 0x5C, 0x5C }, { 0x5E, 0x7E }, { 0xA0, 0xFF }, { 0x2013, 0x2014 },
                { 0x2018, 0x201A }, { 0x201C, 0x201E }, { 0x2026, 0x2026 } },
    c);
}

/// The package of Debian with a font that VTK can draw for a letter.
const char* PackageOf(char32_t c)
{
  const bool isEastAsian = IsIn({ { 0x1100, 0x11FF }, { 0x2E80, 0xA4CF }, { 0xAC00, 0xD7FF },
                                  { 0xF900, 0xFAFF }, { 0xFE30, 0xFFEF }, { 0x20000, 0x3FFFF } },
    c);
  const bool isSymbol = IsIn({ { 0x2190, 0x2E7F }, { 0x1F000, 0x1FFFF } }, c);
  return isEastAsian ? "fonts-noto-cjk" : isSymbol ? "fonts-symbola" : "fonts-noto-core";
}

std::string Escaped(char32_t c)
{
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "\\u{%04X}", static_cast<unsigned>(c));
  return text.data();
}

/// The letters of a text that VTK's own font does not have.
std::vector<char32_t> ForeignLetters(const std::string& text)
{
  std::vector<char32_t> letters;
  for (std::size_t position = 0; position < text.size();)
  {
    const char32_t c = atlas::NextCharacter(text, position);
    if (!IsInOwnFont(c))
    {
      letters.push_back(c);
    }
  }
  return letters;
}

/// A font and the letters that it has.
struct Font
{
  std::string file;
  Pattern pattern;
  FcCharSet* letters = nullptr; ///< of the pattern

  explicit Font(FcPattern* found)
    : pattern(found, FcPatternDestroy)
  {
    FcChar8* name = nullptr;
    FcBool isColored = FcFalse;
    if (found != nullptr && FcPatternGetString(found, FC_FILE, 0, &name) == FcResultMatch &&
        FcPatternGetCharSet(found, FC_CHARSET, 0, &this->letters) == FcResultMatch &&
        (FcPatternGetBool(found, FC_COLOR, 0, &isColored) != FcResultMatch || isColored == FcFalse))
    {
      this->file = reinterpret_cast<const char*>(name);
    }
  }

  bool IsUsable() const { return !this->file.empty(); }
  bool Has(char32_t c) const
  {
    return this->IsUsable() && FcCharSetHasChar(this->letters, c) == FcTrue;
  }
  bool HasAll(const std::vector<char32_t>& text) const
  {
    return std::all_of(text.begin(), text.end(), [this](char32_t c) { return this->Has(c); });
  }
};

/// The font without serifs that has most of some letters.
Font BestFont(const std::vector<char32_t>& text)
{
  const Charset letters(FcCharSetCreate(), FcCharSetDestroy);
  for (const char32_t c : text)
  {
    FcCharSetAddChar(letters.get(), c);
  }
  const Pattern wanted(FcPatternCreate(), FcPatternDestroy);
  FcPatternAddString(wanted.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>("sans-serif"));
  FcPatternAddCharSet(wanted.get(), FC_CHARSET, letters.get());
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(wanted.get(), FC_COLOR, FcFalse); // VTK draws outlines only
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultMatch;
  return Font(FcFontMatch(nullptr, wanted.get(), &result));
}

}

class LabelFonts::Search
{
public:
  std::set<std::string> packages;
  std::unique_ptr<Font> only; ///< the font of the user

  DrawnText Choose(const std::string& text)
  {
    std::vector<char32_t> letters = ForeignLetters(text);
    if (this->only != nullptr)
    {
      return Written(text, *this->only);
    }
    if (letters.empty())
    {
      return { text, {} };
    }
    letters.erase(std::remove_if(letters.begin(), letters.end(),
                    [this](char32_t c) { return this->missing.count(c) != 0; }),
      letters.end());
    return Written(text, this->FontOf(letters));
  }

private:
  std::vector<Font> fonts; ///< found so far; the first that has all letters is used
  std::set<char32_t> missing;

  const Font& FontOf(const std::vector<char32_t>& letters)
  {
    for (const Font& font : this->fonts)
    {
      if (font.IsUsable() && font.HasAll(letters))
      {
        return font;
      }
    }
    this->fonts.push_back(BestFont(letters));
    const Font& best = this->fonts.back();
    for (const char32_t c : letters)
    {
      if (!best.Has(c) && !BestFont({ c }).Has(c))
      {
        this->missing.insert(c);
        this->packages.insert(PackageOf(c));
      }
    }
    return best;
  }

  /// The text with escape sequences for what the font does not have.
  static DrawnText Written(const std::string& text, const Font& font)
  {
    DrawnText drawn{ {}, font.file };
    for (std::size_t position = 0; position < text.size();)
    {
      const char32_t c = atlas::NextCharacter(text, position);
      const bool isDrawn = font.IsUsable() ? font.Has(c) : c < 0x7F || IsInOwnFont(c);
      if (isDrawn)
      {
        atlas::Append(drawn.text, c);
      }
      else
      {
        drawn.text += Escaped(c);
      }
    }
    return drawn;
  }
};

LabelFonts::LabelFonts()
  : Found(std::make_unique<Search>())
{
}

LabelFonts::~LabelFonts() = default;

bool LabelFonts::SetFile(const std::string& file)
{
  this->Found = std::make_unique<Search>();
  if (file.empty())
  {
    return true;
  }
  int faces = 0;
  auto font = std::make_unique<Font>(
    FcFreeTypeQuery(reinterpret_cast<const FcChar8*>(file.c_str()), 0, nullptr, &faces));
  if (!font->IsUsable())
  {
    return false;
  }
  this->Found->only = std::move(font);
  return true;
}

DrawnText LabelFonts::Choose(const std::string& text)
{
  return this->Found->Choose(text);
}

const std::set<std::string>& LabelFonts::MissingPackages() const
{
  return this->Found->packages;
}

}
