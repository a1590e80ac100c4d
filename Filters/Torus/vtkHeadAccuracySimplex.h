#ifndef vtkHeadAccuracySimplex_h
#define vtkHeadAccuracySimplex_h

#include "vtkTorusAlgorithm.h"

/**
 * @class vtkHeadAccuracySimplex
 * @brief The accuracy of mixtures of three heads of an attention-only transformer, on a triangle.
 *
 * Input: the model, with next_token. Output: a vtkPolyData, an equilateral triangle of side 1 in
 * the plane z = 0, cut into equal triangles. A point with the barycentric weights c_0, c_1, c_2 >=
 * 0, c_0 + c_1 + c_2 = 1, stands for the mixture
 *
 *     argmax W_U (residual + sum_i 3 c_i out_{h_i} + sum of out_h of the heads beyond the three)
 *
 * so that the centre is the model itself with that residual, and a corner of a model of three heads
 * without residual one head alone. c_0 is 1 at (1, 0), c_1 at (1/2, sqrt(3)/2), c_2 at (0, 0).
 * Point arrays:
 *
 * - Accuracy (float): the share of all pairs of tokens that the mixture has right, 0 to 1
 * - Accuracy Target k (float): of the pairs with the true next token k, for each k that occurs
 * - Correct Pair (int), Predicted (int): whether the mixture has the pair of the property Pair
 * right, 1 or 0, and what it predicts there; only if a pair is chosen
 * - Barycentric (float, 3): c_0, c_1, c_2
 *
 * Field data: the model's dimensions. Computed in double, in parallel; on a tie the lowest class is
 * predicted. On several ranks, rank 0 has the triangle.
 */
class ATTENTIONATLASTORUS_EXPORT vtkHeadAccuracySimplex : public vtkModelAlgorithm
{
public:
  static vtkHeadAccuracySimplex* New();
  vtkTypeMacro(vtkHeadAccuracySimplex, vtkModelAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  ///@{
  /**
   * The heads at the corners: three different ones, from 0 to H-1. Default: 0, 1, 2.
   */
  vtkSetVector3Macro(HeadIndices, int);
  vtkGetVector3Macro(HeadIndices, int);
  ///@}

  ///@{
  /**
   * Number of segments along each edge, at least 1. Default: 128.
   */
  vtkSetMacro(Resolution, int);
  vtkGetMacro(Resolution, int);
  ///@}

  ///@{
  /**
   * What the outputs of the heads are added to, one of vtkTorusAlgorithm::ResidualType. Default:
   * NONE.
   */
  vtkSetClampMacro(
    Residual, int, vtkTorusAlgorithm::EMBEDDING_POSITION, vtkTorusAlgorithm::RAW_EMBEDDING);
  vtkGetMacro(Residual, int);
  ///@}

  ///@{
  /**
   * The pair of tokens (t1, t2), each from 0 to N-1, of the arrays Correct Pair and Predicted; -1,
   * -1 for none. Default: -1, -1.
   */
  vtkSetVector2Macro(Pair, int);
  vtkGetVector2Macro(Pair, int);
  ///@}

protected:
  vtkHeadAccuracySimplex() = default;
  ~vtkHeadAccuracySimplex() override = default;

  int FillOutputPortInformation(int port, vtkInformation* info) override;
  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkHeadAccuracySimplex(const vtkHeadAccuracySimplex&) = delete;
  void operator=(const vtkHeadAccuracySimplex&) = delete;

  void CheckProperties(vtkIdType tokens) const;

  int HeadIndices[3] = { 0, 1, 2 };
  int Resolution = 128;
  int Residual = vtkTorusAlgorithm::NONE;
  int Pair[2] = { -1, -1 };
};

#endif
