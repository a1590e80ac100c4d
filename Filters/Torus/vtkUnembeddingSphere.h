#pragma once

#include "vtkModelAlgorithm.h"

class vtkPolyData;

/// The unit sphere, partitioned by the class that the unembedding of a transformer predicts. Input:
/// the model. Its unembedding W_U [N, 3] with rows w_c predicts class c in the directions x of the
/// cell V(c) = {x : |x| = 1, w_c . x >= w_c' . x for all c'}, an exact weighted Voronoi cell (shown
/// in "Visualizing small Attention-only Transformers"). The formulas are in Core's
/// SphericalVoronoi.h. A class without a cell can never be predicted: its row is inside the convex
/// hull of the others, or on it without being a corner, or equal to the row of a lower class.
/// Outputs, all vtkPolyData in double precision:
/// - port 0, cells: polygons whose corners lie on the sphere. Neighboring polygons share points.
///   Cell arrays Class (int) and ClassColor (unsigned char, 3); point array Normals (float, 3).
/// - port 1, centers: one vertex w_c / |w_c| per row, in order of rows; a row of zeros, which has
///   no direction, is at the origin. Point arrays Class (int), Reachable (int: 1 if the class has a
///   cell, else 0), ClassColor (unsigned char, 3).
/// - port 2, arcs: one polyline per arc between two cells. Its points are the first points of port
///   0, with the same ids. Cell arrays First and Second (int): the two classes, the lower first.
///
/// Field data of each: the model's dimensions. On several ranks, rank 0 has all.
class ATTENTIONATLASTORUS_EXPORT vtkUnembeddingSphere : public vtkModelAlgorithm
{
public:
  static vtkUnembeddingSphere* New();
  vtkTypeMacro(vtkUnembeddingSphere, vtkModelAlgorithm);

  enum OutputPort
  {
    CELLS = 0,
    CENTRES = 1,
    ARCS = 2
  };

  /// The number of segments of a full great circle, at least 8. It sets the fineness of arcs and of
  /// the inside of cells. Default: 128.
  vtkSetMacro(Resolution, int);
  vtkGetMacro(Resolution, int);

protected:
  vtkUnembeddingSphere();

  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;

private:
  int Resolution = 128;
};
