#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkSMRenderViewProxy.h>

#include <array>
#include <optional>

/**
 * @class vtkSMAtlasDiagramViewProxy
 * @brief A view of flat data that frames them by itself.
 *
 * While its property FitToData is on, each still rendering shows all visible data, with room for
 * color bars, legends and the title. Whoever pans or zooms turns it off, and whoever resets the
 * camera on again, so that a state file keeps what one has zoomed to.
 *
 * The title, unless the property Title is set, names what is shown first; see Titles.h.
 */
class ATTENTIONATLASVIEWS_EXPORT vtkSMAtlasDiagramViewProxy : public vtkSMRenderViewProxy
{
public:
  static vtkSMAtlasDiagramViewProxy* New();
  vtkTypeMacro(vtkSMAtlasDiagramViewProxy, vtkSMRenderViewProxy);

protected:
  vtkSMAtlasDiagramViewProxy();

  vtkTypeUInt32 PreRender(bool interactive) override;

private:
  /// What decides what the camera shows: x and y of its focal point, and its scale.
  using Frame = std::array<double, 3>;

  Frame GetFrame();
  void Fit();
  void SetFit(bool on);
  void FitAgain();

  std::optional<Frame> Fitted; ///< as of the last rendering that has fitted
  bool IsFitting = false;
};
