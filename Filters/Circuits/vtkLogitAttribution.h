#pragma once

#include "AttentionAtlasCircuitsModule.h"
#include "RecordingRanges.h"

#include <vtkTaskAlgorithm.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace atlas
{
struct Recording;
}

/// Logits as sums over heads, MLPs, embeddings and biases. Input port 0: a recording with head
/// outputs and the residual stream of all layers. Input port 1: the transformer that was recorded;
/// a language model. The logit of a token is the sum over the components of the residual stream,
/// each divided by the scale of the final normalization and multiplied with the token's column of
/// the unembedding, plus the bias b_U (direct logit attribution; Elhage et al. 2021). Formulas:
/// Core's LogitAttribution.h.
///
/// Output 0: a vtkTable with a row per position and component: Component (string: embed, pos, head
/// 0.1, bias 0, mlp 0, ..., b_U), Layer and Head (int; -1 where there is none), Sequence, Position
/// (int), Token Index (id type: the row of the token in the recording; also the pedigree id),
/// Token, TokenId (int) and Target (string) of the token whose logit it is, and Contribution
/// (double).
///
/// Output 1: a vtkImageData with a point per component (downward) and position (rightward), and the
/// point arrays Contribution, Component, Layer, Head, Position, Token Index, TokenId and Target.
/// Many components are joined, see Grouping. Field data: the labels Key Token (the tokens) and
/// Query Token (the components), Sequence (int) and Sequence Text (string: how the text begins, if
/// it is known).
///
/// Field data of both: Logit, Sum and Miss (double, a value per position: the logit as recorded,
/// the sum of the contributions, and their difference), Processing, and, if it is a difference of
/// logits, Against (string) and Against TokenId (int).
///
/// The size of the image depends on the recording and the model, so UpdateInformation updates both.
/// On several ranks the first one has the table.
class ATTENTIONATLASCIRCUITS_EXPORT vtkLogitAttribution : public vtkTaskAlgorithm
{
public:
  static vtkLogitAttribution* New();
  vtkTypeMacro(vtkLogitAttribution, vtkTaskAlgorithm);

  enum TargetType
  {
    NEXT_TOKEN = 0,
    PREDICTED = 1,
    TOKEN = 2
  };

  enum GroupingType
  {
    AUTOMATIC = 0,
    HEADS = 1,
    LAYERS = 2
  };

  enum ProcessingType
  {
    NONE = 0,
    TRANSFORMER_LENS = 1
  };

  /// Sets the transformer of the recording.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// The index of the sequence, from 0. Default: 0.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// The position of the token after which the target is predicted, from 0; -1: all. Default: -1.
  vtkSetMacro(Position, int);
  vtkGetMacro(Position, int);

  /// Whose logit: that of the token that follows, which the last position does not have; of the
  /// token with the largest logit; or of TargetToken. Default: NEXT_TOKEN.
  vtkSetClampMacro(Target, int, NEXT_TOKEN, TOKEN);
  vtkGetMacro(Target, int);

  /// The token of Target TOKEN, by text or id (Core's TokenFinder.h). Default: empty.
  vtkSetStdStringFromCharMacro(TargetToken);
  vtkGetCharFromStdStringMacro(TargetToken);

  /// The token whose logit is subtracted, by text or id; empty: none. Default: empty.
  vtkSetStdStringFromCharMacro(Against);
  vtkGetCharFromStdStringMacro(Against);

  /// What the rows of the image are. HEADS: the components. LAYERS: the heads and the bias of a
  /// layer together. AUTOMATIC: HEADS for up to 40 rows, otherwise LAYERS. Default: AUTOMATIC.
  vtkSetClampMacro(Grouping, int, AUTOMATIC, LAYERS);
  vtkGetMacro(Grouping, int);

  /// The weights: as they are stored, or as TransformerLens processes them, with logits centered
  /// over the vocabulary and biases of values in those of the layer. Default: TRANSFORMER_LENS.
  vtkSetClampMacro(Processing, int, NONE, TRANSFORMER_LENS);
  vtkGetMacro(Processing, int);

  /// The first and last sequence of the input, and -1 and the last position of the sequence, as of
  /// the last UpdateInformation; 0, 0 without input.
  int* GetSequenceRange() VTK_SIZEHINT(2) { return this->Ranges.sequence; }
  vtkGetVector2Macro(PositionRange, int);

protected:
  vtkLogitAttribution();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Memory;
  struct Found;
  void Announce(vtkInformation* info);
  std::pair<std::int64_t, std::int64_t> FindRows(const atlas::Recording& recording) const;
  std::vector<std::int32_t> FindTargets(
    const atlas::Recording& recording, std::int64_t begin, std::int64_t end);
  Found Find(const atlas::Recording& recording);

  int Sequence = 0;
  int Position = -1;
  int Target = NEXT_TOKEN;
  std::string TargetToken;
  std::string Against;
  int Grouping = AUTOMATIC;
  int Processing = TRANSFORMER_LENS;
  int PositionRange[2] = { 0, 0 };
  AttentionAtlas::RecordingRanges Ranges;
  std::shared_ptr<Memory> Kept;
};
