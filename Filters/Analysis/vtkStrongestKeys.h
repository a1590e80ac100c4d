#ifndef vtkStrongestKeys_h
#define vtkStrongestKeys_h

#include "AttentionAtlasAnalysisModule.h"

#include <vtkHeadAlgorithm.h>

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
class ATTENTIONATLASANALYSIS_EXPORT vtkStrongestKeys : public vtkHeadAlgorithm
{
public:
  static vtkStrongestKeys* New();
  vtkTypeMacro(vtkStrongestKeys, vtkHeadAlgorithm);

  enum KindType
  {
    OTHER = 0,
    SELF = 1,
    FIRST = 2
  };

protected:
  vtkStrongestKeys();
  ~vtkStrongestKeys() override = default;

  void Execute(AttentionAtlas::Task& task) override;

private:
  std::vector<atlas::QueryFocus> Measure(
    const atlas::Recording& recording, const atlas::Progress& progress) const;
  void AddArrays(const atlas::Recording& recording, const std::vector<atlas::QueryFocus>& queries,
    vtkCellData* arrays) const;

  vtkStrongestKeys(const vtkStrongestKeys&) = delete;
  void operator=(const vtkStrongestKeys&) = delete;
};

#endif
