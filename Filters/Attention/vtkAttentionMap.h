#ifndef vtkAttentionMap_h
#define vtkAttentionMap_h

#include "ArrayPool.h"
#include "AttentionAtlasAttentionModule.h"

#include <vtkHeadAlgorithm.h>

#include <vector>

namespace AttentionAtlas
{
struct StrongestKey;
}

namespace atlas
{
class Progress;
struct Recording;
}
class vtkFloatArray;

/**
 * @class vtkAttentionMap
 * @brief The attention of one head, or of their mean, as an image of tokens x tokens.
 *
 * Input: a recording (vtkMultiBlockDataSet, as produced by vtkTransformerRecorder and
 * vtkRecordingReader). Attention is recomputed from queries and keys (Vaswani et al. 2017), unless
 * the recording stores attention, which is then shown. Formulas: Core's RecordedAttention.h.
 *
 * Output 0: a vtkImageData with one point per key and query: x = key, y = -query, 0 for the first
 * token, so queries run downward as in printed matrices. The spacing is 1. One point array (float),
 * named after Quantity:
 *
 * - Weights: from 0 to 1; they add up to 1 over the keys, or to less where the layer has sinks; 0
 *   where the mask or the layer's window excludes the key
 * - Scores: scale * query . key + bias, before the mask; with the layer's cap c
 *   c tanh(scale * query . key / c) + bias
 * - Content: scale * query . key
 * - Bias: slope * position of the key (ALiBi, Press et al. 2022); 0 without ALiBi
 * - NormWeighted: weight * norm(v_j W_O), at least 0 (Kobayashi et al. 2020). Needs the norms that
 *   vtkTransformerRecorder records
 * - Rollout: the product of (mean of Weights over heads + identity) / 2 over the layers, from the
 *   first recorded one to Layer (Abnar and Zuidema 2020), from 0 to 1; the same for all heads. All
 *   layers in between must have been recorded. Computed from all heads of these layers
 *
 * Of cross attention (AttentionKind CROSS) x are the tokens of the source and -y those of the
 * target, and positions are those in their own text. It has no mean over sequences.
 *
 * Field data: Key Token and Query Token (string, in the order of the positions: the tokens or, if
 * unknown, their places in the image, their ids, or their positions from 0; of all sequences, the
 * positions), Sequence, Layer and Head (int).
 *
 * The mean over the sequences (Sequence -1) is over those that have both positions; its rows of
 * Weights and Rollout are divided by their sum.
 *
 * Output 1: a vtkPolyData with a closed line for each query, a frame around the square of the key
 * with the largest value among those that mask and window allow (Claus, "Attention Focus Plots",
 * Figure 1); the first of several. A query without a finite value has none. Cell arrays:
 *
 * - Kind (unsigned char): 0 another key, 1 the query's own position, not of cross attention, 2 the
 *   first token. The first query, whose own position is that of the first token, has 1
 * - KindColor (unsigned char, 3): orange, green, purple
 * - Query, Key (int; positions)
 * - Weight, Score, Content, Bias, NormWeighted or Rollout (float): the value, by Quantity
 * - Token Index (id type): the row of the query's token in the recording; also the pedigree id. Not
 *   of all sequences
 *
 * Field data: Sequence, Layer and Head (int).
 *
 * The size of the image depends on the recording, so UpdateInformation updates the input. On
 * several ranks the first one has both outputs.
 */
class ATTENTIONATLASATTENTION_EXPORT vtkAttentionMap : public vtkHeadAlgorithm
{
public:
  static vtkAttentionMap* New();
  vtkTypeMacro(vtkAttentionMap, vtkHeadAlgorithm);

  enum QuantityType
  {
    WEIGHTS = 0,
    SCORES = 1,
    CONTENT = 2,
    BIAS = 3,
    NORM_WEIGHTED = 4,
    ROLLOUT = 5
  };

  ///@{
  /**
   * The quantity to show: WEIGHTS, SCORES, CONTENT, BIAS, NORM_WEIGHTED or ROLLOUT, see above.
   * Default: WEIGHTS.
   */
  vtkSetClampMacro(Quantity, int, WEIGHTS, ROLLOUT);
  vtkGetMacro(Quantity, int);
  ///@}

protected:
  vtkAttentionMap();
  ~vtkAttentionMap() override = default;

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Rows;
  std::vector<AttentionAtlas::StrongestKey> EvaluateRows(const atlas::Recording& recording,
    const Rows& rows, bool frames, vtkFloatArray* image, const atlas::Progress& progress) const;

  int Quantity = WEIGHTS;
  AttentionAtlas::ArrayPool Pool;
};

#endif
