#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkImageData.h>
#include <vtkImageSliceRepresentation.h>
#include <vtkNew.h>
#include <vtkSmartPointer.h>
#include <vtkWeakPointer.h>

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
/// then rectangles. Texts are black on a light background and white on a dark one, and scale with
/// the squares. If there are more than MaximumLabels rows or columns, they are not labeled.
class ATTENTIONATLASVIEWS_EXPORT vtkSquaresRepresentation : public vtkImageSliceRepresentation
{
public:
  static vtkSquaresRepresentation* New();
  vtkTypeMacro(vtkSquaresRepresentation, vtkImageSliceRepresentation);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  static constexpr int MaximumLabels = 256;

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
  void ClearLabels();

  bool TokenLabels = true;
  vtkWeakPointer<vtkRenderer> Renderer;
  vtkNew<vtkActor> Frame;
  std::vector<vtkSmartPointer<vtkActor>> Labels;
  vtkNew<vtkImageData> Squares;
  vtkMTimeType ShownTime = 0; ///< of the image that these and the labels belong to
};
