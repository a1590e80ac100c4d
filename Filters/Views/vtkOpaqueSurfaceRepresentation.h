#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkGeometryRepresentationWithFaces.h>

/// A surface on several ranks whose colors are those of an array, which has no opacity.
///
/// ParaView assumes that such colors may be translucent, and lets the ranks exchange their parts,
/// to draw them in order: as XML, which 5.11 cannot read with some versions of expat (VTK issue
/// 19258); 5.13 and 6.1 lose a part of the cells that they cut. Opaque parts need no order.
class ATTENTIONATLASVIEWS_EXPORT vtkOpaqueSurfaceRepresentation
  : public vtkGeometryRepresentationWithFaces
{
public:
  static vtkOpaqueSurfaceRepresentation* New();
  vtkTypeMacro(vtkOpaqueSurfaceRepresentation, vtkGeometryRepresentationWithFaces);

protected:
  vtkOpaqueSurfaceRepresentation() = default;
  ~vtkOpaqueSurfaceRepresentation() override = default;

  /// Only with a property Opacity below 1.
  bool NeedsOrderedCompositing() override;
};
