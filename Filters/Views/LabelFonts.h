#pragma once

#include <memory>
#include <set>
#include <string>

/// Fonts for texts of any script. VTK's own font has those of Western Europe only.
namespace AttentionAtlas
{

/// A text, and the file of the font that has its letters; empty: VTK's own font.
struct DrawnText
{
  std::string text;
  std::string font;
};

/// Finds fonts by Fontconfig. A letter that no font has is replaced by an escape sequence such as
/// \u{4F60}.
class LabelFonts
{
public:
  LabelFonts();
  ~LabelFonts();
  LabelFonts(const LabelFonts&) = delete;
  LabelFonts& operator=(const LabelFonts&) = delete;

  /// Uses one font for all texts. Empty: those that are found. Returns false if the file is no
  /// font.
  bool SetFile(const std::string& file);

  /// The font for a text (UTF-8), which is about the same for all texts of a script.
  DrawnText Choose(const std::string& text);

  /// Debian's packages of fonts that would have had letters of the texts so far.
  const std::set<std::string>& MissingPackages() const;

private:
  class Search;
  std::unique_ptr<Search> Found;
};

}
