#pragma once

#include <functional>
#include <string>
#include <vector>

class vtkSMProxy;
class vtkSMViewProxy;

/// The titles that views have by themselves.
namespace AttentionAtlas
{

class ViewTexts;

/// The first visible representation of our data in a view from which no other of them is made, as
/// the colors of points are made from these; null if there is none.
vtkSMProxy* FirstShown(vtkSMProxy* view);

/// What a view says of the first that it shows of our data: the source, those of its settings that
/// decide what it shows, such as layer, head, quantity and sequence, then the model and how the
/// text begins. Where a setting chooses by itself, as the last token does, it says what was chosen.
/// Empty if there are no such data.
///
/// The model is called what the field array Model Name of a source before this one says, or else as
/// the file that was read, without the ending. Settings in a title are those that most sources
/// have, see Titles.cxx, and those with the hint AtlasTitle, which may have a `prefix`, or a `text`
/// for a `value`.
std::string MakeTitle(vtkSMProxy* view);

/// What the picture means: what the hint Explanation of the source of what is shown first says, see
/// RepresentationHints.h, then the field arrays Signs of all that is visible, each once.
std::string MakeExplanation(vtkSMProxy* view);

/// Titles a view that can be, unless its property Title, or that of a chart, is the user's. That of
/// a chart is ours if it is empty at first, and as long as nobody has changed it, also in a state
/// file; the annotation AtlasTitle of the view remembers it.
void ShowTitle(vtkSMViewProxy* view);

/// Switches the title on of a render view that begins to show a representation, the first whose
/// source has the hint Title, see RepresentationHints.h, unless color bars are shown by hand.
/// Diagrams have theirs from the beginning.
void SwitchTitleOn(vtkSMProxy* representation, vtkSMViewProxy* view);

/// What stands for what is cut from a text.
inline constexpr const char* Ellipsis = "\u2026";

/// Which part of a text is kept where it is cut.
enum class KeptPart
{
  Begin,
  End,
  Both
};

/// A text in UTF-8, or as many of its whole characters, and an ellipsis in place of the others, as
/// are at most `width` wide; found by bisection, since titles may be of any length.
std::string CutText(const std::string& text, double width,
  const std::function<double(const std::string&)>& widthOf, KeptPart kept = KeptPart::Begin);

/// A title at the upper left of a view, in two lines if it needs them, the second cut to the width,
/// and below it an explanation in as many lines as it needs.
class TitleLines
{
public:
  /// `beside`: what else takes room at their right, in points.
  TitleLines(
    ViewTexts& texts, const std::string& title, const std::string& explanation, double beside = 0);

  /// The height of the title, which may be empty, and its explanation with the room around them, in
  /// points.
  double Height() const;
  /// Shows them for the rendering that is about to begin.
  void Show(ViewTexts& texts) const;

private:
  std::vector<std::string> Title;
  std::vector<std::string> Explanation;
};

}
