#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkPointGaussianRepresentation.h>

/// Point Gaussian for a few points among large data on several ranks: the view gathers what it
/// shows on one rank and renders it there.
///
/// Point Gaussian itself asks for ordered compositing, which cuts discs off at the borders of the
/// ranks and, in ParaView 5.11, can wait forever where a rank has no points. What remains: discs
/// that reach beyond the bounds of all that the view shows are cut off there.
class ATTENTIONATLASVIEWS_EXPORT vtkCollectedDiscsRepresentation
  : public vtkPointGaussianRepresentation
{
public:
  static vtkCollectedDiscsRepresentation* New();
  vtkTypeMacro(vtkCollectedDiscsRepresentation, vtkPointGaussianRepresentation);

  int ProcessViewRequest(
    vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output) override;

protected:
  vtkCollectedDiscsRepresentation() = default;
  ~vtkCollectedDiscsRepresentation() override = default;

private:
  vtkCollectedDiscsRepresentation(const vtkCollectedDiscsRepresentation&) = delete;
  void operator=(const vtkCollectedDiscsRepresentation&) = delete;
};
