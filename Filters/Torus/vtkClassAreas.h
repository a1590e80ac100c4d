#ifndef vtkClassAreas_h
#define vtkClassAreas_h

#include "vtkTorusAlgorithm.h"

/**
 * @class vtkClassAreas
 * @brief Tells how much of the torus each class takes, in charts of any size.
 *
 * Input port 0: the model. Output: a vtkTable with a row per class:
 *
 * - Class (int), 0 to N - 1
 * - Area (double): the share of the torus where it is predicted, 0 to 1
 * - Probability (double): its mean probability there, 0 where it is never predicted
 * - Predicted Pairs (int): pairs of tokens for which it is predicted
 * - Target Pairs, Correct Pairs (int): those whose true next token it is, and those of them that
 * are predicted so; if the model tells the true next tokens
 *
 * Field data: the model's dimensions; Accuracy (double), if the model tells the true next tokens.
 *
 * Areas are shares of Resolution points, evaluated row by row and not kept: memory does not grow
 * with their number. The error of an area is about the length of its border times the distance of
 * the points. On several ranks, rank 0 has the table.
 */
class ATTENTIONATLASTORUS_EXPORT vtkClassAreas : public vtkTorusAlgorithm
{
public:
  static vtkClassAreas* New();
  vtkTypeMacro(vtkClassAreas, vtkTorusAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  ///@{
  /**
   * The number of points along theta_1 and theta_2, each at least 1, together at most 2^33.
   * Default: 1024 1024.
   */
  vtkSetVector2Macro(Resolution, int);
  vtkGetVector2Macro(Resolution, int);
  ///@}

protected:
  vtkClassAreas() = default;
  ~vtkClassAreas() override = default;

  int FillOutputPortInformation(int port, vtkInformation* info) override;
  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkClassAreas(const vtkClassAreas&) = delete;
  void operator=(const vtkClassAreas&) = delete;

  int Resolution[2] = { 1024, 1024 };
};

#endif
