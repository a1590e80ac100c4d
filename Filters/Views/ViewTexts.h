#pragma once

#include "LabelFonts.h"
#include "Titles.h"

#include <vtkSmartPointer.h>
#include <vtkTextProperty.h>
#include <vtkWeakPointer.h>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

class vtkMatrix4x4;
class vtkPVRenderView;
class vtkRenderer;
class vtkTextActor;

namespace AttentionAtlas
{

/// The luminance of a color in RGB, 0 to 1 (ITU-R BT.601).
inline double Lightness(const double* color)
{
  return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2];
}

/// The gray, black (0) or white (1), that is legible on a background in RGB.
inline double InkOn(const double* back)
{
  return Lightness(back) > 0.5 ? 0 : 1;
}

/// Texts that lie over the scene of a render view, in fonts that have their letters. They are black
/// on a light background and white on a dark one. Sizes are in points, places in pixels from the
/// lower left of the view; of a picture that is rendered tile by tile, from that of the whole.
class ViewTexts
{
public:
  /// Which point of a text is at its place.
  enum class Along
  {
    Left = VTK_TEXT_LEFT,
    Middle = VTK_TEXT_CENTERED,
    Right = VTK_TEXT_RIGHT
  };
  enum class Across
  {
    Bottom = VTK_TEXT_BOTTOM,
    Middle = VTK_TEXT_CENTERED,
    Top = VTK_TEXT_TOP
  };

  /// How a text looks and lies.
  struct Style
  {
    int fontSize;
    Along along;
    Across across;
    bool isUpwards = false; ///< rotated by 90 degrees; its bottom is then at the right
    bool isFaint = false;   ///< gray
    std::optional<std::array<double, 3>> back = std::nullopt; ///< what black letters lie on, in RGB
  };

  /// Calls `place`, which shows the texts, before each rendering of a view.
  void Enter(vtkPVRenderView* view, std::function<void()> place);
  void Leave();

  /// The font of all texts. Empty: found for each. Returns false if the file is no font.
  bool SetFontFile(const std::string& file);
  LabelFonts& GetFonts() { return this->Fonts; }

  /// The width and height in pixels of a text that is not rotated.
  std::array<int, 2> Measure(const std::string& text, int fontSize);
  /// The text, or as many of its first characters, and an ellipsis, as are at most `width` pixels
  /// wide; or of its last or outer ones. UTF-8.
  std::string Cut(
    const std::string& text, int fontSize, double width, KeptPart kept = KeptPart::Begin);
  /// The size of a pixel, in points.
  double GetPoint() const;
  /// The size of a picture, in pixels: of a tile, whose letters are larger by the number of tiles.
  std::array<int, 2> GetSize() const;
  std::array<int, 2> GetTiles() const;
  /// From the scene to the picture, x and y from 0 to 1.
  vtkSmartPointer<vtkMatrix4x4> ToScreen(vtkMatrix4x4* placed) const;

  /// Shows a text for the rendering that is about to begin.
  void Show(const std::string& text, const Style& style, const std::array<double, 2>& at);
  /// Says at the lower left what is left out for want of room.
  void ShowNote(const std::string& note);
  void Hide() { this->HideFrom(0); }

private:
  /// How a text is written.
  struct Written
  {
    DrawnText drawn;
    std::array<int, 2> extent = { 0, 0 };
    int fontSize = 0; ///< for which that is
  };

  const Written& Write(const std::string& text, int fontSize);
  void Place();
  void HideFrom(std::size_t first);

  vtkWeakPointer<vtkRenderer> Renderer; ///< of what lies over the scene
  vtkWeakPointer<vtkRenderer> Scene;
  unsigned long Observer = 0;
  std::function<void()> OnPlace;
  std::vector<vtkSmartPointer<vtkTextActor>> Actors;
  std::size_t Used = 0; ///< of the actors
  LabelFonts Fonts;
  std::unordered_map<std::string, Written> Texts;
  int Dpi = 0; ///< for which the extents are
  std::array<double, 3> Ink = { 0, 0, 0 };
  std::array<double, 3> Faint = { 0, 0, 0 };
};

}
