#pragma once

#include "ArrayPool.h"
#include "AttentionAtlasAttentionModule.h"

#include <vtkHeadAlgorithm.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace AttentionAtlas
{
struct StrongestKey;
}

namespace atlas
{
class Progress;
struct MapCells;
struct Recording;
}
class vtkFloatArray;

/// The attention of one head, or of their mean, as an image of tokens x tokens. Input: a recording.
/// Attention is recomputed from queries and keys (Vaswani et al. 2017), unless the recording stores
/// attention, which is then shown. Formulas: Core's RecordedAttention.h.
///
/// Output 0: a vtkImageData with one point per key and query: x = key, y = -query, 0 for the first
/// token, so queries run downward as in printed matrices. The spacing is 1. One point array
/// (float), named after Quantity:
/// - Weights: from 0 to 1; they add up to 1 over the keys, or to less where the layer has sinks; 0
///   where the mask or the layer's window excludes the key
/// - Scores: scale * query . key + bias, before the mask; with the layer's cap c c tanh(scale *
///   query . key / c) + bias
/// - Content: scale * query . key
/// - Bias: slope * position of the key (ALiBi, Press et al. 2022); 0 without ALiBi
/// - NormWeighted: weight * norm(v_j W_O), at least 0 (Kobayashi et al. 2020). Needs the norms that
///   vtkTransformerRecorder records
/// - Rollout: the product of (mean of Weights over heads + identity) / 2 over the layers, from the
///   first recorded one to Layer (Abnar and Zuidema 2020), from 0 to 1; the same for all heads. All
///   layers in between must have been recorded. Computed from all heads of these layers
///
/// Of cross attention (AttentionKind CROSS) x are the tokens of the source and -y those of the
/// target, and positions are those in their own text. It has no mean over sequences.
///
/// Field data: Key Token and Query Token (string, in the order of the positions: the tokens or, if
/// unknown, their places in the image, their ids, or their positions from 0; of all sequences, the
/// positions), Sequence, Layer and Head (int), and Sequence Text (string: how the text begins, if
/// it is known).
///
/// The mean over the sequences (Sequence -1) is over those that have both positions; its rows of
/// Weights and Rollout are divided by their sum.
///
/// Output 1: a vtkPolyData with a closed line for each query, a frame around the square of the key
/// with the largest value among those that mask and window allow (Claus, "Attention Focus Plots",
/// Figure 1); the first of several. A query without a finite value, or whose key is not in the
/// window, has none. Cell arrays:
/// - Kind (unsigned char): 0 another key, 1 the query's own position, not of cross attention, 2 the
///   first token. The first query, whose own position is that of the first token, has 1
/// - KindColor (unsigned char, 3): orange, green, purple
/// - Query, Key (int; positions)
/// - Weight, Score, Content, Bias, NormWeighted or Rollout (float): the value, by Quantity
/// - Token Index (id type): the row of the query's token in the recording; also the pedigree id.
///   Not of all sequences
///
/// Field data: Sequence, Sequence Text, Layer and Head, as in output 0.
///
/// Output 2: a vtkPolyData with bands above and left of the map, a rectangle for each run of tokens
/// of a picture among words; of other recordings, and of all sequences, without cells. Cell arrays:
/// Picture (int, among those of the sequence), Side (unsigned char: 0 query, 1 key), First Token,
/// Last Token (int, positions), MarkColor (unsigned char, 3, by picture). Field data: MarkColor
/// Legend (string), Sequence, Sequence Text, Layer and Head.
///
/// QueryWindow and KeyWindow show a part of the map, at its place: point (x, y) is the same pair of
/// positions in any window. If there are more than MaximumSize queries or keys, windowed or not,
/// the map is pooled: a point shows the maximum or mean of a cell of 2^a queries and 2^b keys,
/// which begin at multiples of these, and is in its middle; the spacing is 2^b and 2^a. Cells are
/// the smallest with which the window, extended to whole ones, has at most Resolution of them along
/// each side; of very many pairs they are larger. Key Token and Query Token are then those of the
/// first tokens of cells, Cell Size (field data, int) is 2^b and 2^a, and there are no frames. All
/// pairs take part: formulas and what is kept of a head, so that another window of it is there at
/// once, are in Core's ZoomedAttention.h. Means over heads and sequences, and attention that is
/// stored, keep nothing; Rollout needs memory for all pairs.
///
/// The size of the image depends on the recording, so UpdateInformation updates the input. On
/// several ranks the first one has all outputs.
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

  /// The quantity to show: WEIGHTS, SCORES, CONTENT, BIAS, NORM_WEIGHTED or ROLLOUT, see above.
  /// Default: WEIGHTS.
  vtkSetClampMacro(Quantity, int, WEIGHTS, ROLLOUT);
  vtkGetMacro(Quantity, int);

  enum PoolingType
  {
    MAXIMUM = 0,
    MEAN = 1
  };

  /// The queries that are shown: the first position, and the one behind the last. If the second is
  /// not larger, all. Default: 0, 0.
  vtkSetVector2Macro(QueryWindow, int);
  vtkGetVector2Macro(QueryWindow, int);

  /// The keys that are shown, likewise. Default: 0, 0.
  vtkSetVector2Macro(KeyWindow, int);
  vtkGetVector2Macro(KeyWindow, int);

  /// The largest number of queries or keys of which each has a point, at least 1. Maps of more are
  /// pooled. Default: 4096.
  vtkSetClampMacro(MaximumSize, int, 1, VTK_INT_MAX);
  vtkGetMacro(MaximumSize, int);

  /// The largest number of points along a side of what is shown of a map that is pooled, from 1 to
  /// 4096. Default: 1024.
  vtkSetClampMacro(Resolution, int, 1, 4096);
  vtkGetMacro(Resolution, int);

  /// How values are pooled: MAXIMUM, or MEAN, of all queries and keys of a cell, also where the
  /// mask excludes a key. Default: MAXIMUM.
  vtkSetClampMacro(Pooling, int, MAXIMUM, MEAN);
  vtkGetMacro(Pooling, int);

  /// Whether ParaView sets the windows of a pooled map to what is visible of it (pqZoomBehavior of
  /// the plugin). Changes nothing else. Default: on.
  vtkSetMacro(FollowCamera, bool);
  vtkGetMacro(FollowCamera, bool);

protected:
  vtkAttentionMap();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Rows;
  struct LastOutput;
  std::vector<AttentionAtlas::StrongestKey> EvaluateRows(const atlas::Recording& recording,
    const Rows& rows, bool frames, vtkFloatArray* image, const atlas::Progress& progress) const;

  atlas::MapCells CellsOf(std::int64_t source, std::int64_t tokens) const;
  bool IsPooled(std::int64_t source, std::int64_t tokens) const;
  void ShowCells(
    const atlas::Recording& recording, const atlas::MapCells& cells, AttentionAtlas::Task& task);
  void ShowRows(
    const atlas::Recording& recording, const atlas::MapCells& cells, AttentionAtlas::Task& task);

  int Quantity = WEIGHTS;
  int QueryWindow[2] = { 0, 0 };
  int KeyWindow[2] = { 0, 0 };
  int MaximumSize = 4096;
  int Resolution = 1024;
  int Pooling = MAXIMUM;
  bool FollowCamera = true;
  AttentionAtlas::ArrayPool Pool;
  std::shared_ptr<LastOutput> Last;
};
