#pragma once

#include "AttentionAtlasAttentionModule.h"

#include <vtkRecordingAlgorithm.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

class vtkMultiBlockDataSet;

namespace AttentionAtlas
{
class MatrixPanels;
}
namespace atlas
{
struct HeadPlace;
struct MapCells;
struct Recording;
}

/// The attention of all heads on one sequence, as panels of one image. Input port 0: a recording.
/// Input port 1 (optional): a vtkTable with a row per head and the columns Layer and Head, such as
/// that of vtkHeadScores or the second output of vtkHeadEmbedding, to sort by.
///
/// Each panel is the map of a head as vtkAttentionMap shows it: queries downward, keys rightward. A
/// sequence with more tokens than MaximumSize is pooled: bin b of B holds the tokens from floor(b T
/// / B) on, and a point shows the maximum or mean of a bin of queries and a bin of keys. With a
/// window (QueryWindow, KeyWindow) panels show that part of the maps, pooled to cells of 2^a
/// queries and 2^b keys, which begin at multiples of these: the smallest with which the window,
/// extended to whole cells, has at most MaximumSize of them along each side. What makes further
/// windows fast is kept for each head: Core's ZoomedAttention.h.
///
/// Layers run downward and heads rightward, with gaps between panels. Formulas: Core's
/// PooledAttention.h.
///
/// Output port 0: a vtkImageData with x = column and y = -row, from 0 at the top left; the spacing
/// is
/// 1. Point arrays: one named after Quantity (float; NaN in gaps), and Layer, Head, Query and Key
///    (int; -1 in gaps), where Query and Key are the first positions of the bins. Rollout has one
///    panel per layer, of Head -1. Field data: Sequence, Sequence Text (string: how the text
///    begins, if it is known), Panel Size (bins along a side), Column Step and Row Step (points
///    from one panel to the next) and Tokens (T). Where each point stands for one query and one
///    key, the texts of tokens are known, and the image has at most 256 points on a side, also Key
///    Token and Query Token (string): the texts of the columns from the left and of the rows from
///    the top, empty in gaps. The representation Squares labels them.
///
/// Output port 1: the titles of layers and heads, a vtkPolyData with vertices and the point array
/// Token (string), to be shown as Token Labels. If the heads are sorted, each panel has its own.
///
/// The size of the image depends on the recording, so UpdateInformation updates the input. Ranks
/// that each ask for their piece share the heads; each has its part of the image, and the first one
/// has the titles. Panels that are known are not computed again when only the order changes.
/// Canceling leaves all empty.
class ATTENTIONATLASATTENTION_EXPORT vtkAttentionMatrix : public vtkRecordingAlgorithm
{
public:
  static vtkAttentionMatrix* New();
  vtkTypeMacro(vtkAttentionMatrix, vtkRecordingAlgorithm);

  enum QuantityType
  {
    WEIGHTS = 0,
    SCORES = 1,
    CONTENT = 2,
    BIAS = 3,
    NORM_WEIGHTED = 4,
    ROLLOUT = 5
  };

  enum PoolingType
  {
    MAXIMUM = 0,
    MEAN = 1
  };

  /// Connects the table of heads to sort by.
  void SetScoresConnection(vtkAlgorithmOutput* scores) { this->SetInputConnection(1, scores); }

  /// The index of the sequence or image, from 0. -1: the mean over the sequences that have both
  /// positions, as vtkAttentionMap shows it. Default: 0.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// The index of the layer in the model, from 0. -1: all recorded layers. Default: -1.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The quantity to show: WEIGHTS, SCORES, CONTENT, BIAS, NORM_WEIGHTED or ROLLOUT, as
  /// vtkAttentionMap defines them. Default: WEIGHTS.
  vtkSetClampMacro(Quantity, int, WEIGHTS, ROLLOUT);
  vtkGetMacro(Quantity, int);

  /// The largest number of points along a side of a panel, at least 1. More tokens are pooled.
  /// Default: 64.
  vtkSetClampMacro(MaximumSize, int, 1, VTK_INT_MAX);
  vtkGetMacro(MaximumSize, int);

  /// The queries that are shown: the first position, and the one behind the last. If the second is
  /// not larger, all. Default: 0, 0.
  vtkSetVector2Macro(QueryWindow, int);
  vtkGetVector2Macro(QueryWindow, int);

  /// The keys that are shown, likewise. Default: 0, 0.
  vtkSetVector2Macro(KeyWindow, int);
  vtkGetVector2Macro(KeyWindow, int);

  /// How values are pooled: MAXIMUM, or MEAN, of all queries and keys of a bin, also where the mask
  /// excludes a key. Values that are not finite are left out. Default: MAXIMUM.
  vtkSetClampMacro(Pooling, int, MAXIMUM, MEAN);
  vtkGetMacro(Pooling, int);

  /// The column of the table of heads by which the heads of each layer are sorted, the largest
  /// number first; heads that have none are last, in their order. Null or empty, or without a
  /// table: heads are in their order, as they are by the column Layer. Default: none.
  vtkSetStdStringFromCharMacro(SortBy);
  vtkGetCharFromStdStringMacro(SortBy);

  /// -1 and the last sequence, and -1 and the last recorded layer of the input as of the last
  /// UpdateInformation; 0, 0 without input.
  vtkGetVector2Macro(SequenceRange, int);
  vtkGetVector2Macro(LayerRange, int);

protected:
  vtkAttentionMatrix();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Pooled;
  struct LastOutput;

  bool IsSorted();
  bool HasWindow() const;
  atlas::MapCells CellsOf(std::int64_t source, std::int64_t tokens, std::int64_t heads) const;
  AttentionAtlas::MatrixPanels PanelsOf(vtkMultiBlockDataSet* recording, int tokens);
  std::vector<float> PoolWindow(const atlas::Recording& recording,
    const std::vector<atlas::HeadPlace>& heads, std::int64_t all, const atlas::MapCells& cells,
    const AttentionAtlas::Task& task);
  Pooled Pool(const AttentionAtlas::Task& task);
  void MakeImage(const AttentionAtlas::MatrixPanels& panels, const Pooled& pooled,
    const AttentionAtlas::Task& task) const;
  static bool HasLabels(const AttentionAtlas::MatrixPanels& panels, const Pooled& pooled);

  int Sequence = 0;
  int Layer = -1;
  int Quantity = WEIGHTS;
  int MaximumSize = 64;
  int QueryWindow[2] = { 0, 0 };
  int KeyWindow[2] = { 0, 0 };
  int Pooling = MAXIMUM;
  std::string SortBy;
  int SequenceRange[2] = { 0, 0 };
  int LayerRange[2] = { 0, 0 };
  std::shared_ptr<LastOutput> Last;
};
