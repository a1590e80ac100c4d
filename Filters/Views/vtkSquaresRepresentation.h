#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkImageData.h>
#include <vtkImageSliceRepresentation.h>
#include <vtkNew.h>
#include <vtkWeakPointer.h>

#include <memory>

class vtkActor;
class vtkRenderer;

/// Shows a 2D image as one uniform square centered at each point, a rectangle if columns are
/// further apart than rows: nothing is interpolated, and the outer rows and columns have the size
/// of the others.
///
/// An image with the field arrays Key Token and Query Token, such as that of an AttentionMap, gets
/// a frame, axis titles (the field arrays Key Title and Query Title, or "Key" and "Query"), and
/// these texts below the columns and beside the rows. Empty ones, as in the gaps of an
/// AttentionMatrix, have no label. Texts are black on a light background and white on a dark one,
/// and remain text in an exported figure.
///
/// Letters have TextSize; those of an AttentionMatrix shrink with the image, down to SmallestText.
/// Where there is no room for all labels, every second, third ... one is shown, so zooming in shows
/// more, and those beside panels are cut where they would lie on the titles of layers. Of more than
/// MaximumLabels rows or columns, an even choice can have labels.
class ATTENTIONATLASVIEWS_EXPORT vtkSquaresRepresentation : public vtkImageSliceRepresentation
{
public:
  static vtkSquaresRepresentation* New();
  vtkTypeMacro(vtkSquaresRepresentation, vtkImageSliceRepresentation);

  static constexpr int MaximumLabels = 256;
  /// The sizes of letters, in points.
  static constexpr int TextSize = 12;
  static constexpr int SmallestText = 9;

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
  double WidestOf(const char* axis);
  void Render(vtkInformation* input);
  void BuildLabels(vtkImageData* image);
  void UpdateFrame();

  bool TokenLabels = true;
  vtkWeakPointer<vtkRenderer> Renderer;
  vtkNew<vtkActor> Frame;
  struct Label;
  struct Labels;
  std::unique_ptr<Labels> Shown;
  vtkNew<vtkImageData> Squares;
  vtkMTimeType ShownTime = 0; ///< of the image that these and the labels belong to
};
