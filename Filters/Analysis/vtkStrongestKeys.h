#ifndef vtkStrongestKeys_h
#define vtkStrongestKeys_h

#include "AttentionAtlasAnalysisModule.h"
#include "RecordingRanges.h"

#include <vtkTaskAlgorithm.h>

#include <vector>

class vtkCellData;

namespace atlas
{
class Progress;
struct QueryFocus;
struct Recording;
}

/**
 * @class vtkStrongestKeys
 * @brief Frames around the key that each query attends to most, to lay over an attention map.
 *
 * Input: a recording (vtkMultiBlockDataSet, as produced by vtkTransformerRecorder and
 * vtkRecordingReader). Output: a vtkPolyData in the coordinates of vtkAttentionMap: for each query
 * of one head and sequence a closed line around the square at x = key, y = -query (Claus,
 * "Attention Focus Plots", Figure 1). Cell arrays:
 *
 * - Kind (unsigned char): 0 another key, 1 the query's own position, 2 the first token. The first
 *   query, whose own position is that of the first token, has 1
 * - KindColor (unsigned char, 3): orange, green, purple
 * - Layer, Head, Query, Key (int; positions), Weight (float)
 * - Score (float): before the softmax; absent if only weights are recorded
 * - Token Index (id type): the row of the query's token in the recording; also the pedigree id
 *
 * On several ranks the first one has the lines.
 */
class ATTENTIONATLASANALYSIS_EXPORT vtkStrongestKeys : public vtkTaskAlgorithm
{
public:
  static vtkStrongestKeys* New();
  vtkTypeMacro(vtkStrongestKeys, vtkTaskAlgorithm);

  enum KindType
  {
    OTHER = 0,
    SELF = 1,
    FIRST = 2
  };

  ///@{
  /**
   * The index of the sequence, from 0. Default: 0.
   */
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);
  ///@}

  ///@{
  /**
   * The index of the layer in the model, from 0. Default: 0.
   */
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);
  ///@}

  ///@{
  /**
   * The index of the head, from 0. Default: 0.
   */
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);
  ///@}

  ///@{
  /**
   * The first and last sequence, recorded layer and head of the input as of the last
   * UpdateInformation; 0, 0 without input.
   */
  int* GetSequenceRange() VTK_SIZEHINT(2) { return this->Ranges.sequence; }
  int* GetLayerRange() VTK_SIZEHINT(2) { return this->Ranges.layer; }
  int* GetHeadRange() VTK_SIZEHINT(2) { return this->Ranges.head; }
  ///@}

protected:
  vtkStrongestKeys();
  ~vtkStrongestKeys() override = default;

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  std::vector<atlas::QueryFocus> Measure(
    const atlas::Recording& recording, const atlas::Progress& progress) const;
  void AddArrays(const atlas::Recording& recording, const std::vector<atlas::QueryFocus>& queries,
    vtkCellData* arrays) const;

  vtkStrongestKeys(const vtkStrongestKeys&) = delete;
  void operator=(const vtkStrongestKeys&) = delete;

  int Sequence = 0;
  int Layer = 0;
  int Head = 0;
  AttentionAtlas::RecordingRanges Ranges;
};

#endif
