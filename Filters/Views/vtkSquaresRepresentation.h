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

/// Shows a flat image as one even square per point, around the point, so that a matrix looks like a
/// matrix: nothing is interpolated, and the outer rows and columns are as large as the others.
///
/// The image of an AttentionMap, which has the field arrays Key Token and Query Token, gets a
/// frame, the names of its axes, and its tokens beside the rows and below the columns. They are
/// black on a light background and white on a dark one, and as large as the squares are. More than
/// MaximumLabels tokens are not labelled.
class ATTENTIONATLASVIEWS_EXPORT vtkSquaresRepresentation : public vtkImageSliceRepresentation
{
public:
  static vtkSquaresRepresentation* New();
  vtkTypeMacro(vtkSquaresRepresentation, vtkImageSliceRepresentation);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  static constexpr int MaximumLabels = 256;

  ///@{
  /**
   * Whether the tokens, the names of the axes and the frame are drawn. Default: true.
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
  vtkSquaresRepresentation(const vtkSquaresRepresentation&) = delete;
  void operator=(const vtkSquaresRepresentation&) = delete;

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
