#pragma once

#include "AttentionAtlasTokensModule.h"
#include "PropertyList.h"

#include <vtkTaskAlgorithm.h>

#include <vector>

/// Lines from each query of a joint embedding to the keys that it attends to most. Input port 0:
/// the embedding, a vtkDataSet with a point per query and key and the point arrays Kind (0 query, 1
/// key), Token Index (row of the token in the recording), Layer and Head, such as vtkHeadEmbedding
/// makes. It may be a part of it, in any order; lines join points that are both there. Input port
/// 1: the recording that was embedded (vtkMultiBlockDataSet). Input port 2 (optional): a
/// vtkSelection of points of the embedding, whose tokens are selected in all heads.
///
/// Attention is recomputed from queries and keys in blocks of 64 queries (Core's
/// RecordedAttention.h) and not stored. Of each query the Top largest weights are kept that are at
/// least MinimumWeight, ties by lower key, and never those of 0. If a key is not in the embedding,
/// its line is left out.
///
/// Output: vtkPolyData with a line per query and key, from the query to the key. Cell arrays:
/// Weight (float, 0 to 1), Layer, Head (int), Query and Key (64-bit integer, rows in the
/// recording's tokens). The points are those of the embedding that have lines, with all arrays.
///
/// The lines of a head are made on the rank that has its points; the points of a head must be on
/// one rank. The result does not depend on the number of threads. Canceling leaves it empty.
class ATTENTIONATLASTOKENS_EXPORT vtkAttentionLines : public vtkTaskAlgorithm
{
public:
  static vtkAttentionLines* New();
  vtkTypeMacro(vtkAttentionLines, vtkTaskAlgorithm);

  /// Connects the recording.
  void SetRecordingConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }

  /// Connects the selection of points.
  void SetSelectionConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(2, data); }

  /// The most lines per query, at least 1. Default: 2.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// The smallest weight of a line, 0 to 1. Default: 0.1.
  vtkSetMacro(MinimumWeight, double);
  vtkGetMacro(MinimumWeight, double);

  /// The tokens whose queries have lines, as rows in the recording's tokens, from 0; together with
  /// those of the selection. None, without a selection: all tokens. Default: none.
  void AddSelectedToken(vtkIdType row) { AttentionAtlas::Append(this, this->SelectedTokens, row); }
  void ClearSelectedTokens() { AttentionAtlas::Clear(this, this->SelectedTokens); }
  const std::vector<vtkIdType>& GetSelectedTokens() const { return this->SelectedTokens; }

protected:
  vtkAttentionLines();

  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Lines;
  std::vector<vtkIdType> FindSelected(const AttentionAtlas::Task& task) const;
  Lines FindLines(const AttentionAtlas::Task& task, const std::vector<vtkIdType>& selected) const;

  int Top = 2;
  double MinimumWeight = 0.1;
  std::vector<vtkIdType> SelectedTokens;
};
