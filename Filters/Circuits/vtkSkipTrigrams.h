#pragma once

#include "AttentionAtlasCircuitsModule.h"
#include "PropertyList.h"

#include <vtkTaskAlgorithm.h>

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{
class OpenTransformer;
struct SkipTrigramList;
}

/// The strongest skip-trigrams of a head. Input: a language model. A skip-trigram "source ...
/// destination output" (Elhage et al. 2021): the head attends from the destination back to the
/// source and so raises the logit of the output. Its score is QK * OV, where QK is the entry of the
/// circuit of queries and keys at (destination, source) minus the mean of its row over all sources,
/// and OV that of the circuit of outputs and values at (source, output) minus the mean of its row
/// over all outputs; both are positive. Formulas: Core's SkipTrigrams.h.
///
/// Output: a vtkTable by falling score: Rank (int, from 1), Source, Destination, Output (string),
/// Score, QK, OV (double), Source TokenId, Destination TokenId, Output TokenId, Layer, Head (int).
/// Field data: Processing, Left Out (string), and Sources (string), which tokens the list is of:
/// "all 50257 tokens", "the 3 given tokens" or, where SourceLimit left out sources that might have
/// a place in it, "the 2048 of 50257 tokens with the longest keys and values".
///
/// On several ranks the sources are shared among them, and the first rank has the table. Canceling
/// leaves it empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkSkipTrigrams : public vtkTaskAlgorithm
{
public:
  static vtkSkipTrigrams* New();
  vtkTypeMacro(vtkSkipTrigrams, vtkTaskAlgorithm);

  /// The index of the layer, from 0. Default: 0.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The index of the head, from 0. Default: 0.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// How many skip-trigrams the table has, at least 1; less if fewer have a positive score.
  /// Default: 50.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// The most tokens of the vocabulary that are searched as sources, those with the longest keys
  /// and values, more exactly the largest product of both lengths: they can have the largest
  /// scores. 0: all. Not for Tokens. Default: 2048.
  vtkSetMacro(SourceLimit, int);
  vtkGetMacro(SourceLimit, int);

  /// The sources, by text or id (Core's TokenFinder.h). Destinations and outputs are always of the
  /// whole vocabulary. Default: none, which means those of SourceLimit.
  void AddToken(const char* token)
  {
    AttentionAtlas::Append(this, this->Tokens, token == nullptr ? "" : token);
  }
  void ClearTokens() { AttentionAtlas::Clear(this, this->Tokens); }
  const std::vector<std::string>& GetTokens() const { return this->Tokens; }

  /// Whether weights are processed as TransformerLens does. Default: true.
  vtkSetMacro(Processing, bool);
  vtkGetMacro(Processing, bool);

  /// The first and last layer and head of the model as of the last UpdateInformation; 0, 0 without
  /// input.
  int* GetLayerRange() VTK_SIZEHINT(2) { return this->LayerRange; }
  int* GetHeadRange() VTK_SIZEHINT(2) { return this->HeadRange; }

protected:
  vtkSkipTrigrams();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  atlas::SkipTrigramList Find(
    const atlas::OpenTransformer& model, const AttentionAtlas::Task& task) const;
  std::string DescribeSources(std::int64_t vocabulary, bool areAll) const;

  int Layer = 0;
  int Head = 0;
  int Top = 50;
  int SourceLimit = 2048;
  std::vector<std::string> Tokens;
  bool Processing = true;
  int LayerRange[2] = { 0, 0 };
  int HeadRange[2] = { 0, 0 };
};
