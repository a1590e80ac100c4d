#pragma once

#include "AttentionAtlasAnalysisModule.h"

#include <vtkTaskAlgorithm.h>

/// How many attention tokens any two heads share, and which. Input: the first output of
/// vtkAttentionTokens, a vtkTable with a row per vector and the columns Layer, Head, Vector, Rank,
/// TokenId and Token. Of each vector the token of rank 1 counts.
///
/// Output 0: a vtkImageData of heads x heads, in the order of layers and heads: x = one head, y =
/// -the other, 0 for the first. The spacing is 1. Point array Shared Tokens (int): the number of
/// different tokens that both heads have; on the diagonal those of the head. Field data: Head Name,
/// Query Token and Key Token (string: "layer.head" in the order of the places; the last two are the
/// labels of rows and columns), Query Title and Key Title (string).
///
/// Output 1: a vtkTable with a row per pair of two heads, those that share most first: Layer, Head,
/// Other Layer, Other Head, Shared Tokens (int) and Tokens (string: those that both have, by their
/// ids, between commas).
///
/// Output 2: vtkPolyData with a vertex beside each row of the image, whose point array Token
/// (string) is the head.
///
/// The size of the image depends on the input, so UpdateInformation updates it. On several ranks
/// the first one has the outputs.
class ATTENTIONATLASANALYSIS_EXPORT vtkSharedTokens : public vtkTaskAlgorithm
{
public:
  static vtkSharedTokens* New();
  vtkTypeMacro(vtkSharedTokens, vtkTaskAlgorithm);

  /// The vectors whose tokens are compared, a VectorType of vtkAttentionTokens. Default: QUERY_KEY.
  vtkSetClampMacro(Vector, int, 0, 5);
  vtkGetMacro(Vector, int);

protected:
  vtkSharedTokens();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  int Vector = 4;
};
