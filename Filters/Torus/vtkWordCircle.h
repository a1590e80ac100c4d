#pragma once

#include "vtkModelAlgorithm.h"

/// Layer normalization as geometry: word embeddings, and the circle to which it maps them. Input:
/// the model. e(t) = LN(word_embedding[t]) = (x - mean(x)) / sqrt(mean((x - mean(x))^2)): the
/// embedding is projected to the plane orthogonal to (1, 1, 1) and scaled to length sqrt(3) (layer
/// normalization: Ba et al. 2016). If all components of an embedding are equal, e(t) = 0, as in the
/// evaluation. The formulas are in Core's TorusAngles.h. Outputs, both vtkPolyData in double
/// precision:
/// - port 0, tokens: a vertex at each word_embedding[t] (point t), then at each e(t) (point N + t),
///   and a line between the two. Point arrays Token (int), Angle (float: theta(t) = atan2(e . v, e
///   . u) in (-pi, pi], in radians; 0 where e(t) = 0), Normalized (int: 1 for e(t), else 0),
///   ClassColor (unsigned char, 3: the class color of t).
/// - port 1, circle: the circle of radius sqrt(3) as a closed polyline from -pi to pi, including
///   both ends, and a square of the plane that contains the projections of all embeddings. Point
///   array Angle (float), cell array CircleColor (unsigned char, 3).
///
/// Field data of each: the model's dimensions. On several ranks, rank 0 has all.
class ATTENTIONATLASTORUS_EXPORT vtkWordCircle : public vtkModelAlgorithm
{
public:
  static vtkWordCircle* New();
  vtkTypeMacro(vtkWordCircle, vtkModelAlgorithm);

  enum OutputPort
  {
    TOKENS = 0,
    CIRCLE = 1
  };

protected:
  vtkWordCircle();

  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;
};
