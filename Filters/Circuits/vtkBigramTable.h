#pragma once

#include "AttentionAtlasCircuitsModule.h"
#include "PropertyList.h"

#include <vtkTaskAlgorithm.h>

#include <string>
#include <vector>

/// Which tokens follow others in the model without its layers. Input: a language model. For each of
/// the chosen tokens, the tokens with the largest logits E U, where E is the embedding and U the
/// unembedding (Elhage et al. 2021; formulas: Core's Bigrams.h).
///
/// Output: a vtkTable with a row per token and next token: Token (string), TokenId (int), Rank
/// (int, from 1), Next Token (string), Next TokenId (int), Logit (float). Field data: Processing,
/// Left Out (string).
///
/// On several ranks the first one has the table. Canceling leaves it empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkBigramTable : public vtkTaskAlgorithm
{
public:
  static vtkBigramTable* New();
  vtkTypeMacro(vtkBigramTable, vtkTaskAlgorithm);

  /// The tokens, by text or id (Core's TokenFinder.h). Default: none, which means the sample of
  /// Core's SampleTokens.
  void AddToken(const char* token)
  {
    AttentionAtlas::Append(this, this->Tokens, token == nullptr ? "" : token);
  }
  void ClearTokens() { AttentionAtlas::Clear(this, this->Tokens); }
  const std::vector<std::string>& GetTokens() const { return this->Tokens; }

  /// How many next tokens a token has, at least 1. Default: 10.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// Whether weights are processed as TransformerLens does: the gain of the final normalization in
  /// U, E and U centered. Default: true.
  vtkSetMacro(Processing, bool);
  vtkGetMacro(Processing, bool);

protected:
  vtkBigramTable();

  void Execute(AttentionAtlas::Task& task) override;

private:
  std::vector<std::string> Tokens;
  int Top = 10;
  bool Processing = true;
};
