#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkSMRenderViewExporterProxy.h>

/// Exports the views of vtkSMAtlasDiagramViewProxy alone.
class ATTENTIONATLASVIEWS_EXPORT vtkSMAtlasDiagramExporterProxy
  : public vtkSMRenderViewExporterProxy
{
public:
  static vtkSMAtlasDiagramExporterProxy* New();
  vtkTypeMacro(vtkSMAtlasDiagramExporterProxy, vtkSMRenderViewExporterProxy);

  bool CanExport(vtkSMProxy* view) override;

protected:
  vtkSMAtlasDiagramExporterProxy() = default;
};
