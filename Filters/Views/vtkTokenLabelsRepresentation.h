#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkGeometryRepresentationWithFaces.h>
#include <vtkNew.h>
#include <vtkTextProperty.h>

#include <memory>

/// Shows points, and beside them the texts of the point array Token as far as they do not overlap.
/// Labels are thinned for every rendering, so zooming in shows more of them. Which come first does
/// not depend on the camera: an even choice of the points, in their order. Where the array Match
/// is, points with 1 come before all others. An exported PDF or SVG has them as text or paths.
///
/// A leading space is shown as a middle dot, control characters as escape sequences. Labels are
/// black on a light background and white on a dark one. Of more than MaximumCandidates points,
/// those of an even choice can have labels.
///
/// On several ranks, the view gathers the points on one rank and renders them there.
class ATTENTIONATLASVIEWS_EXPORT vtkTokenLabelsRepresentation
  : public vtkGeometryRepresentationWithFaces
{
public:
  static vtkTokenLabelsRepresentation* New();
  vtkTypeMacro(vtkTokenLabelsRepresentation, vtkGeometryRepresentationWithFaces);
  void PrintSelf(ostream& os, vtkIndent indent) override;

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

  void SetVisibility(bool visible) override;
  int ProcessViewRequest(
    vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output) override;

protected:
  vtkTokenLabelsRepresentation();
  ~vtkTokenLabelsRepresentation() override;

  bool AddToView(vtkView* view) override;
  bool RemoveFromView(vtkView* view) override;

private:
  vtkTokenLabelsRepresentation(const vtkTokenLabelsRepresentation&) = delete;
  void operator=(const vtkTokenLabelsRepresentation&) = delete;

  struct Labels;
  std::unique_ptr<Labels> Shown;
  int MaximumLabels = 200;
  int LabelFontSize = 12;
};
