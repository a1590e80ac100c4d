#pragma once

#include "AttentionAtlasCircuitsModule.h"
#include "PropertyList.h"

#include <vtkTaskAlgorithm.h>

#include <string>
#include <vector>

/// One head's circuit of queries and keys, or of outputs and values, on some tokens. Input: a
/// language model. The circuits of a head are matrices over the vocabulary (Elhage et al. 2021;
/// formulas: Core's HeadCircuit.h):
/// - QUERY_KEY: the score of a destination (query) with a source (key) token
/// - OUTPUT_VALUE: what attention to a source token adds to the logit of an output token
/// - POSITION_QUERY_KEY: as QUERY_KEY, of the position embedding
///
/// Output port 0: a vtkTable with the largest entries of each chosen token, or of each position. A
/// row has Layer, Head (int), Token (string) and TokenId (int), Direction (string), Rank (int, from
/// 1), Other Token and Other TokenId, and Value (float); of positions, Position and Other Position
/// in place of the tokens. Direction says what the other token is: the Source or the Destination,
/// where the token is the other one, or the Output.
///
/// Output port 1: a vtkImageData with a point per pair of chosen tokens, or of positions: columns x
/// = 0 ... n - 1, rows y = 0 ... -(n - 1). Its point array is QK, OV or PositionQK (float). Rows
/// are destinations and columns sources; of OUTPUT_VALUE, sources and outputs. Field arrays: Query
/// Token and Key Token, the labels of rows and columns, Query Title and Key Title (string), Layer
/// and Head (int).
///
/// Field data of both: Processing, Left Out (string). On several ranks the first one has the table,
/// and each its part of the image. Canceling leaves both empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkHeadCircuit : public vtkTaskAlgorithm
{
public:
  static vtkHeadCircuit* New();
  vtkTypeMacro(vtkHeadCircuit, vtkTaskAlgorithm);

  enum CircuitType
  {
    QUERY_KEY = 0,
    OUTPUT_VALUE = 1,
    POSITION_QUERY_KEY = 2
  };

  /// The circuit: QUERY_KEY, OUTPUT_VALUE or POSITION_QUERY_KEY, see above. Default: QUERY_KEY.
  vtkSetClampMacro(Circuit, int, QUERY_KEY, POSITION_QUERY_KEY);
  vtkGetMacro(Circuit, int);

  /// The index of the layer, from 0. Default: 0.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The index of the head, from 0. Default: 0.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// The tokens, by text or id (Core's TokenFinder.h). Default: none, which means the sample of
  /// Core's SampleTokens.
  void AddToken(const char* token)
  {
    AttentionAtlas::Append(this, this->Tokens, token == nullptr ? "" : token);
  }
  void ClearTokens() { AttentionAtlas::Clear(this, this->Tokens); }
  const std::vector<std::string>& GetTokens() const { return this->Tokens; }

  /// How many entries the table has of a token and direction, at least 1. Default: 10.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// Whether weights are processed as TransformerLens does. Default: true.
  vtkSetMacro(Processing, bool);
  vtkGetMacro(Processing, bool);

  /// The first and last layer and head of the model as of the last UpdateInformation; 0, 0 without
  /// input.
  int* GetLayerRange() VTK_SIZEHINT(2) { return this->LayerRange; }
  int* GetHeadRange() VTK_SIZEHINT(2) { return this->HeadRange; }

protected:
  vtkHeadCircuit();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Result;

  int Circuit = QUERY_KEY;
  int Layer = 0;
  int Head = 0;
  std::vector<std::string> Tokens;
  int Top = 10;
  bool Processing = true;
  int LayerRange[2] = { 0, 0 };
  int HeadRange[2] = { 0, 0 };
};
