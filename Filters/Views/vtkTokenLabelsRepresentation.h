#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkGeometryRepresentationWithFaces.h>

#include <memory>
#include <set>
#include <string>

/// Shows points, and beside them the texts of the point array Token as far as they do not overlap:
/// zooming in shows more of them. Which come first does not depend on the camera: an even choice of
/// the points, those with 1 in the array Match before others. Of more than MaximumCandidates
/// points, an even choice can have labels. An exported PDF or SVG has them as text or paths.
///
/// Labels are to the upper right of their points. By the array Side they end at the left of the
/// point (0), begin at its right (1), or are centered below (4) or above it (5). By the array
/// Hidden those of points with 1 are gray; the others are black on a light background and white on
/// a dark one.
///
/// Points with the array MarkColor are the pieces of texts, one below another: those of one height
/// are a row, in their order. They are drawn right behind each other with the smallest letters of
/// words at least, those with a Kind of 0 or more on their MarkColor. Where the view is too narrow,
/// what is farthest from these is cut; where it is too low, a note says how many texts it has room
/// for. Words on both sides, as of an AttentionSentence, are cut to the room that the bounds have
/// for them.
///
/// A leading space is shown as a middle dot, control characters as escape sequences. Texts of any
/// script are written in a font that has their letters, found by Fontconfig; those from right to
/// left are ordered for the screen. A letter that no font has is shown as an escape sequence such
/// as \u{4F60}, and a warning names the package with such a font.
///
/// On several ranks, the view gathers the points on one rank and renders them there.
class ATTENTIONATLASVIEWS_EXPORT vtkTokenLabelsRepresentation
  : public vtkGeometryRepresentationWithFaces
{
public:
  static vtkTokenLabelsRepresentation* New();
  vtkTypeMacro(vtkTokenLabelsRepresentation, vtkGeometryRepresentationWithFaces);

  static constexpr vtkIdType MaximumCandidates = vtkIdType{ 1 } << 20;

  ///@{
  /**
   * The largest number of labels at a time, at least 0. Default: 200.
   */
  void SetMaximumLabels(int count);
  vtkGetMacro(MaximumLabels, int);
  ///@}

  ///@{
  /**
   * The size of the letters, in points. Default: 12.
   */
  void SetLabelFontSize(int size);
  vtkGetMacro(LabelFontSize, int);
  ///@}

  ///@{
  /**
   * The height of a line of text in units of the scene, so that letters grow and shrink with it, up
   * to LabelFontSize and down to 9 points. The view then has room for the labels at both sides of
   * the points. Titles of panels that begin with the same word have it once in a row where there is
   * no room for more. 0: letters have LabelFontSize. Default: 0.
   */
  void SetLabelHeight(double height);
  vtkGetMacro(LabelHeight, double);
  ///@}

  ///@{
  /**
   * The file of the font of all labels (TrueType or OpenType). Empty: fonts are found. Default:
   * empty.
   */
  void SetFontFile(const char* file);
  const char* GetFontFile() const { return this->FontFile.c_str(); }
  ///@}

  void SetVisibility(bool visible) override;
  int ProcessViewRequest(
    vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output) override;

protected:
  vtkTokenLabelsRepresentation();
  ~vtkTokenLabelsRepresentation() override;

  bool AddToView(vtkView* view) override;
  bool RemoveFromView(vtkView* view) override;

private:
  void UpdateBounds(vtkInformation* input);
  void WarnOfMissingFonts();

  struct Labels;
  std::unique_ptr<Labels> Shown;
  int MaximumLabels = 200;
  int LabelFontSize = 12;
  double LabelHeight = 0;
  std::string FontFile;
  std::set<std::string> NamedPackages; ///< in warnings
};
