#pragma once

#include "AttentionAtlasAnalysisModule.h"

#include <vtkTaskAlgorithm.h>

/// The embeddings of the attention tokens of heads, laid out in a plane. Input port 0: the first
/// output of vtkAttentionTokens, of which the tokens of rank 1 count. Input port 1: the
/// transformer.
///
/// Output: vtkPolyData with a vertex for each head and each of its different tokens, at the place
/// that t-SNE (van der Maaten and Hinton 2008; Core's TSne.h) gives to the token's row of the
/// embedding W_E among those of all heads, by Euclidean distance. A token that several heads have
/// is there several times, and these points are neighbors of each other. Point arrays: Layer, Head,
/// TokenId (int) and Token (string). Field data: KL Divergence (double).
///
/// On several ranks the first one has the points.
class ATTENTIONATLASANALYSIS_EXPORT vtkAttentionTokenLayout : public vtkTaskAlgorithm
{
public:
  static vtkAttentionTokenLayout* New();
  vtkTypeMacro(vtkAttentionTokenLayout, vtkTaskAlgorithm);

  /// Sets the transformer.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// The vectors whose tokens are shown, a VectorType of vtkAttentionTokens. Default: QUERY.
  vtkSetClampMacro(Vector, int, 0, 5);
  vtkGetMacro(Vector, int);

  /// The effective number of neighbors, at least 1; a third of the points if that is less. Default:
  /// 30.
  vtkSetMacro(Perplexity, double);
  vtkGetMacro(Perplexity, double);

  /// The number of iterations, at least 1. Default: 1000.
  vtkSetMacro(Iterations, int);
  vtkGetMacro(Iterations, int);

  /// The seed of random numbers, at least 0. Default: 0.
  vtkSetMacro(Seed, int);
  vtkGetMacro(Seed, int);

protected:
  vtkAttentionTokenLayout();

  void Execute(AttentionAtlas::Task& task) override;

private:
  int Vector = 0;
  double Perplexity = 30;
  int Iterations = 1000;
  int Seed = 0;
};
