#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkGeometryRepresentationWithFaces.h>

#include <memory>

/// Shows lines that are the wider, the larger the cell array Opacity, 0 to 1: lines of 1 have
/// LineWidth pixels, and there are five widths. Their colors, and all data without lines or without
/// this array, are as with Surface. On several ranks, which cannot draw translucent lines, colors
/// with an opacity are mixed with the background instead.
///
/// The view makes room for the field array View Bounds (least and largest x and y), such as that of
/// the words of an AttentionSentence. What is selected is found on lines that are drawn only for
/// this purpose, so that numbers of cells are those of the data.
class ATTENTIONATLASVIEWS_EXPORT vtkWeightedLinesRepresentation
  : public vtkGeometryRepresentationWithFaces
{
public:
  static vtkWeightedLinesRepresentation* New();
  vtkTypeMacro(vtkWeightedLinesRepresentation, vtkGeometryRepresentationWithFaces);

  int ProcessViewRequest(
    vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output) override;

protected:
  vtkWeightedLinesRepresentation();
  ~vtkWeightedLinesRepresentation() override;

  /// No: what is drawn on several ranks is opaque.
  bool NeedsOrderedCompositing() override;

  bool AddToView(vtkView* view) override;
  bool RemoveFromView(vtkView* view) override;

private:
  struct Lines;
  std::unique_ptr<Lines> Shown;
};
