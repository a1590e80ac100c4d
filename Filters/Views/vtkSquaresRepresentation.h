#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkImageData.h>
#include <vtkImageSliceRepresentation.h>
#include <vtkNew.h>
#include <vtkWeakPointer.h>

#include <memory>
#include <string>
#include <vector>

class vtkActor;
class vtkRenderer;

/// Shows a 2D image as one uniform square centered at each point, so that a matrix looks like a
/// matrix: nothing is interpolated, and the outer rows and columns have the same size as the
/// others.
///
/// An image with the field arrays Key Token and Query Token, such as that of an AttentionMap, gets
/// a frame, axis titles, and these texts below the columns and beside the rows. The field arrays
/// Key Title and Query Title replace the titles "Key" and "Query". Empty texts, as in the gaps of
/// an AttentionMatrix, have no label. Columns may be further apart than rows, as the squares are
/// then rectangles. Texts are black on a light background and white on a dark one.
///
/// In a diagram, letters have TextSize. Where rows or columns are too narrow for that, every
/// second, third ... one has a label, so zooming in shows more of them; those of an AttentionMatrix
/// shrink with the squares instead, down to SmallestText, below which they are left out. In other
/// views, texts scale with the squares. Of more than MaximumLabels rows or columns, an even choice
/// can have labels in a diagram, and none in other views.
class ATTENTIONATLASVIEWS_EXPORT vtkSquaresRepresentation : public vtkImageSliceRepresentation
{
public:
  static vtkSquaresRepresentation* New();
  vtkTypeMacro(vtkSquaresRepresentation, vtkImageSliceRepresentation);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  static constexpr int MaximumLabels = 256;
  /// The sizes of letters in a diagram, in points.
  static constexpr double TextSize = 12;
  static constexpr double SmallestText = 6;

  ///@{
  /**
   * Whether the tokens, the axis titles and the frame are drawn. Default: true.
   */
  void SetTokenLabels(bool shown);
  vtkGetMacro(TokenLabels, bool);
  ///@}

  void SetVisibility(bool visible) override;
  int ProcessViewRequest(
    vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output) override;

protected:
  vtkSquaresRepresentation();
  ~vtkSquaresRepresentation() override;

  bool AddToView(vtkView* view) override;
  bool RemoveFromView(vtkView* view) override;

private:
  void UpdateBounds(vtkInformation* input);
  void Render(vtkInformation* input);
  void BuildLabels(vtkImageData* image);
  void UpdateLabels();
  void PlaceLabels();
  void ClearLabels();

  bool TokenLabels = true;
  vtkWeakPointer<vtkRenderer> Renderer;
  vtkNew<vtkActor> Frame;
  struct Label;
  struct Grid;
  std::vector<Label> Labels;
  std::string Texts;           ///< of these, and where they are
  std::unique_ptr<Grid> Shown; ///< where the squares are that these belong to
  bool IsDiagram = false;      ///< the view
  unsigned long Observer = 0;
  vtkNew<vtkImageData> Squares;
  vtkMTimeType ShownTime = 0; ///< of the image that these and the labels belong to
};
