#pragma once

#include "AttentionAtlasAnalysisModule.h"
#include "PropertyList.h"

#include <vtkHeadAlgorithm.h>

#include <vector>

namespace atlas
{
class Progress;
struct AttentionTokenOptions;
struct HeadTokens;
struct Recording;
}

namespace AttentionAtlas
{
class RankGroup;
class TokenNames;
}

/// The tokens that the vectors of heads stand for. Input port 0: a recording. Input port 1: the
/// transformer that was recorded; a causal language model. A vector of a head is multiplied with
/// W_O W_U of that head, which gives a logit for each token of the vocabulary; its attention token
/// is that of the largest. Formulas: Core's AttentionTokens.h.
///
/// Output 0: a vtkTable with a row per vector and rank: Layer, Head, Sequence, Position, Key
/// Position (int; -1 but for QueryKey and DotProduct), Token Index (id type: the row of the token
/// in the recording; also the pedigree id), Vector (string: the names of VectorType as in the
/// interface), Rank (int, from 1), TokenId (int), Token (string) and Logit (float).
///
/// Output 1: vtkPolyData, per head an image of tokens x tokens of the first chosen sequence: a cell
/// for each query (downward) and key (rightward) that the mask allows, with the attention token of
/// the first of QueryKey and DotProduct among the vectors or, without them, of the first vector,
/// which fills the row of its token. Layers go downward and heads rightward. Around a cell is a
/// white border whose width grows with the attention of the query to the key. Cell arrays: Layer,
/// Head, Sequence, Query, Key (int; positions), Token Index, TokenId, Token, Logit, Discovery (int:
/// the number of the token, from 0, in the order of first appearance, row by row), Weight (float, 0
/// to 1), TokenColor (unsigned char [3]: from dark to bright by Discovery; white for borders) and
/// Border (unsigned char: 1 for borders).
///
/// Output 2: a vtkTable of how often each token occurs in a head: Layer, Head, Vector, TokenId,
/// Token, Count (int64: cells; Query, Key and Value i count for the i + 1 cells of row i),
/// Positions (int64: vectors) and Rank (int, 1 for the most frequent; equal counts have equal
/// ranks).
///
/// Output 3: a vtkTable of the number of different tokens: Layer, Head (-1: all heads of the layer
/// together), Vector and Unique (int64).
///
/// Output 4: vtkPolyData with labels of the image as points: Token (string), Axis (string), Layer,
/// Head, Position. Of a single head, clockwise from the top, the attention tokens of queries, keys
/// and values, as far as they are among the vectors, and the tokens of the sequence; of several
/// heads their numbers.
///
/// Sequence, Layer and Head: -1 means all. Defaults: sequence 0, layer 0, all heads.
///
/// The tables have the field arrays Reading and Processing (string). On several ranks the
/// vocabulary is shared among them; the first one has the outputs. Results do not depend on ranks
/// or threads.
class ATTENTIONATLASANALYSIS_EXPORT vtkAttentionTokens : public vtkHeadAlgorithm
{
public:
  static vtkAttentionTokens* New();
  vtkTypeMacro(vtkAttentionTokens, vtkHeadAlgorithm);

  enum VectorType
  {
    QUERY = 0,
    KEY = 1,
    VALUE = 2,
    OUTPUT = 3,
    QUERY_KEY = 4,
    DOT_PRODUCT = 5
  };

  enum ReadingType
  {
    PLAIN = 0,
    REFACTORED = 1,
    PUBLISHED_CODE = 2
  };

  enum ProcessingType
  {
    NONE = 0,
    TRANSFORMER_LENS = 1
  };

  /// Sets the transformer of the recording.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// The vectors that are read as tokens, each a VectorType. OUTPUT is what the head writes,
  /// QUERY_KEY the product of a query and a key, component by component, DOT_PRODUCT their dot
  /// product in every component. Default: QUERY, KEY, VALUE, QUERY_KEY.
  void AddVector(int vector) { AttentionAtlas::Append(this, this->Vectors, vector); }
  void ClearVectors() { AttentionAtlas::Clear(this, this->Vectors); }
  const std::vector<int>& GetVectors() const { return this->Vectors; }

  /// How vectors become logits. PLAIN: by W_O W_U. REFACTORED: the same of weights whose factors
  /// W_Q, W_K, W_V, W_O are replaced by those of singular value decompositions. PUBLISHED_CODE: as
  /// the code behind the published figures. Default: PLAIN.
  vtkSetClampMacro(Reading, int, PLAIN, PUBLISHED_CODE);
  vtkGetMacro(Reading, int);

  /// The weights that PLAIN reads: NONE, as they are stored, or TRANSFORMER_LENS, with the final
  /// normalization folded and centered. Default: TRANSFORMER_LENS.
  vtkSetClampMacro(Processing, int, NONE, TRANSFORMER_LENS);
  vtkGetMacro(Processing, int);

  /// How many tokens of each vector, at least 1. Default: 1.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// The number of tokens after which a sequence is cut off, since the number of cells grows with
  /// the square; 0: none is. Default: 32.
  vtkSetMacro(MaximumTokens, int);
  vtkGetMacro(MaximumTokens, int);

protected:
  vtkAttentionTokens();

  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  atlas::AttentionTokenOptions MakeOptions(
    const AttentionAtlas::RankGroup& ranks, const atlas::Progress& progress) const;
  void FillOutputs(const atlas::Recording& recording, const AttentionAtlas::TokenNames& names,
    const std::vector<atlas::HeadTokens>& tokens, const AttentionAtlas::Task& task) const;

  std::vector<int> Vectors = { QUERY, KEY, VALUE, QUERY_KEY };
  int Reading = PLAIN;
  int Processing = TRANSFORMER_LENS;
  int Top = 1;
  int MaximumTokens = 32;
};
