#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkSVGExporter.h>

#include <string>

/// Writes what an Attention Diagram shows as vector graphics, with text as text: lines, areas,
/// discs, squares, texts, color bars and legends, in the order of their depth. The name of the file
/// decides the format: .svg, where a pixel of the view is a pixel, or .pdf, where it is 1/72 inch.
///
/// An area has the mean color of its points. Of a map of more than MaximumSquares squares, the
/// colors are written as a picture. What else is in a view, such as volumes, is left out with a
/// warning that names it.
class ATTENTIONATLASVIEWS_EXPORT vtkDiagramExporter : public vtkSVGExporter
{
public:
  static vtkDiagramExporter* New();
  vtkTypeMacro(vtkDiagramExporter, vtkSVGExporter);

  static constexpr vtkIdType MaximumSquares = vtkIdType{ 1 } << 16;

protected:
  vtkDiagramExporter();

  void WriteData() override;

private:
  std::string MakeDocument();
};
