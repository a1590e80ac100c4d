#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkCorpusAlgorithm.h>

/// What a head computes over a corpus as a sum of products of two features. SCORES: the scores as a
/// sum of products of one query and one key feature; the leading parts by what they add to the
/// variance of scores (formulas: Core's ScoreParts.h).
///
/// OUTPUTS: what the head writes into the residual stream, as a sum of products of one feature of
/// what it reads and one direction that it writes; the leading parts by what they add to the
/// variance of v W_O, with the value v of a token. These are the singular values of W_V W_O,
/// weighted by what the head reads (formulas: Core's OutputParts.h). Needs the model, and
/// statistics with values (vtkCorpusStatistics::SampleValues).
///
/// Output port 0, a vtkTable with a row per part: Part (int, from 1), Strength, Variance, Share (of
/// the variance of all parts) and Cumulative (double). Field data: Layer, Head, Variance.
///
/// Output port 1, a vtkTable of the tokens at the ends of the parts: Part, Kind (int: 0 query, 1
/// key, 2 embedding, 3 logit, 4 value), End (string: Lowest, Highest), Rank (int, from 1),
/// Coordinate (double), Token (string), TokenId (int), Document and Position (id type: in the
/// document; -1 of a token of the vocabulary). Queries, keys and values are those of the tokens
/// that were drawn. An embedding is one of all tokens, with the coordinate that its value would
/// have alone; the coordinate of a logit is what the part adds to the logit of a token at a
/// coordinate of 1.
///
/// Output port 2, a vtkPolyData with a point for each query and each key that was drawn: its
/// coordinates of the first three parts times the root of their strength, so that the inner product
/// of a query and a key is what these parts add to their score. For OUTPUTS, with a point for each
/// value that was drawn: its coordinates times the strengths, what is written along the directions.
/// Point arrays: Kind, Token, TokenId, Document, Position.
class ATTENTIONATLASCORPUS_EXPORT vtkScoreParts : public vtkCorpusAlgorithm
{
public:
  static vtkScoreParts* New();
  vtkTypeMacro(vtkScoreParts, vtkCorpusAlgorithm);

  enum CircuitType
  {
    SCORES = 0,
    OUTPUTS = 1
  };

  /// Sets the transformer that was measured, for OUTPUTS. Default: none.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// What is split. Default: SCORES.
  vtkSetClampMacro(Circuit, int, SCORES, OUTPUTS);
  vtkGetMacro(Circuit, int);

  /// The largest number of parts, at least 1. Default: 8.
  vtkSetClampMacro(Parts, int, 1, VTK_INT_MAX);
  vtkGetMacro(Parts, int);

  /// Tokens at each end of a part, at least 1. Default: 10.
  vtkSetClampMacro(Ends, int, 1, VTK_INT_MAX);
  vtkGetMacro(Ends, int);

protected:
  vtkScoreParts();

  void Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task) override;

private:
  int Circuit = SCORES;
  int Parts = 8;
  int Ends = 10;
};
