#include "vtkSMAtlasDiagramExporterProxy.h"

#include "vtkSMAtlasDiagramViewProxy.h"

#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkSMAtlasDiagramExporterProxy);

bool vtkSMAtlasDiagramExporterProxy::CanExport(vtkSMProxy* view)
{
  return vtkSMAtlasDiagramViewProxy::SafeDownCast(view) != nullptr;
}
