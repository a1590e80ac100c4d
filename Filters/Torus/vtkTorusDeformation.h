#pragma once

#include "AttentionAtlasTorusModule.h"

#include <vtkTaskAlgorithm.h>

#include <memory>

namespace AttentionAtlas
{
class DeformedChart;
}

/// Maps a chart of the torus of word pairs, and datasets on it, to a surface in space. Input port
/// 0: any dataset with angles: its point arrays Theta1 and Theta2 or, without those, its x and y
/// are theta_1 and theta_2 in radians. Input port 1 (optional): Reference, a dataset whose Vectors
/// determine the normalizations PerAxis and Whitened instead of those of the input. Token pairs or
/// a decision boundary then lie on the surface of the chart that they belong to. If Reference is a
/// chart and the input has no Vectors, as for a contour, they are interpolated from the chart.
///
/// Output: a vtkPolyData with the cells and arrays of the input at their new positions, and the
/// point arrays Theta1 and Theta2 (float), in [-pi, pi). A chart (an image from AttentionTorus)
/// becomes quads. Where it spans -pi to pi (with 4 points or more), its ends are joined and the
/// surface is closed. Surfaces get Normals (float, 3), which are smooth across the joint too. Other
/// datasets give their outer surface. The deformation is that of the post "Visualizing small
/// Attention-only Transformers".
///
/// On several ranks a chart is split by rows, and all other data comes from rank 0. Each rank reads
/// the whole chart, so the shape does not depend on the number of ranks.
class ATTENTIONATLASTORUS_EXPORT vtkTorusDeformation : public vtkTaskAlgorithm
{
public:
  static vtkTorusDeformation* New();
  vtkTypeMacro(vtkTorusDeformation, vtkTaskAlgorithm);

  enum ShapeType
  {
    DONUT = 0,
    VECTORS = 1
  };

  enum NormalizationType
  {
    NONE = 0,
    PER_AXIS = 1,
    WHITENED = 2,
    UNIT_SPHERE = 3
  };

  /// DONUT: points are placed on a ring torus by their angles. VECTORS: points are placed at the
  /// vectors of the array chosen with SetInputArrayToProcess(0, ...). Default: DONUT.
  vtkSetClampMacro(Shape, int, DONUT, VECTORS);
  vtkGetMacro(Shape, int);

  /// How the vectors x_i of VECTORS are normalized: NONE, x_i; PER_AXIS, each component divided by
  /// its root mean square; WHITENED, row i of U V^T, where U S V^T is the singular value
  /// decomposition of the matrix of all x_i; UNIT_SPHERE, x_i / |x_i|. Core's Deformation.h has the
  /// details. Default: NONE.
  vtkSetClampMacro(Normalization, int, NONE, UNIT_SPHERE);
  vtkGetMacro(Normalization, int);

  /// Radii of DONUT: from the axis to the center of the tube, and of the tube itself; 0 <
  /// MinorRadius < MajorRadius. Default: 2 and 1.
  vtkSetMacro(MajorRadius, double);
  vtkGetMacro(MajorRadius, double);
  vtkSetMacro(MinorRadius, double);
  vtkGetMacro(MinorRadius, double);

  /// Connects the optional second input; nullptr disconnects it.
  void SetReferenceConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }

protected:
  vtkTorusDeformation();

  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  int Shape = DONUT;
  int Normalization = NONE;
  double MajorRadius = 2;
  double MinorRadius = 1;
  std::shared_ptr<AttentionAtlas::DeformedChart> Chart;
};
