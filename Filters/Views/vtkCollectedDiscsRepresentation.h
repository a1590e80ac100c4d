#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkPointGaussianRepresentation.h>

/// A Point Gaussian representation for few points next to large data on several ranks, which the
/// view gathers on one rank. Point Gaussian itself requests ordered compositing, which cuts off
/// discs at the boundaries between ranks and, in ParaView 5.11, can deadlock if a rank has no
/// points. Discs are still cut off at the bounds of everything that the view shows.
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
};
