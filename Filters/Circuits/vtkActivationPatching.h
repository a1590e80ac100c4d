#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

#include <array>
#include <memory>

class vtkMultiBlockDataSet;

namespace atlas
{
class OpenTransformer;
enum class PromptFormat;
struct EncodedPrompt;
struct PatchingOptions;
}

/// Which heads and positions carry what makes a model predict one token and not another. Input: a
/// language model. A prompt is run once for each site of a map, with the values there replaced by
/// those of another prompt's run (activation patching: Vig et al. 2020; Meng et al. 2022; Wang et
/// al. 2023), by zero or by their mean over positions or prompts. The measure is the logit
/// difference of two tokens at the last position. Formulas: Core's ActivationPatching.h.
///
/// Output port 0: a vtkTable with a row per site: Layer, Head or Position (int), of positions also
/// Token (string), Logit Difference and Effect (double). Effect is, for PATCH, 0 if the difference
/// is that of Prompt and 1 if it is that of PatchFrom; otherwise, the difference minus that of
/// Prompt. Output port 1: a vtkImageData with a point per site, x = head or position, y = -layer,
/// with the same arrays, and for its labels the field arrays Key Token, Query Token, Key Title and
/// Query Title (string). Field data of both: Target, Against (string), Target TokenId, Against
/// TokenId (int), Prompt Logit Difference and, for PATCH, Source Logit Difference (double).
///
/// On several ranks the runs are shared among them; the first one has the table, and each its part
/// of the image. Results are equal to the byte on any number of ranks and threads. Canceling leaves
/// all empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkActivationPatching : public vtkTaskAlgorithm
{
public:
  static vtkActivationPatching* New();
  vtkTypeMacro(vtkActivationPatching, vtkTaskAlgorithm);

  enum ModeType
  {
    PATCH = 0,
    ZERO = 1,
    MEAN_OVER_POSITIONS = 2,
    MEAN_OVER_PROMPTS = 3
  };

  enum PromptFormatType
  {
    LINES = 0,
    ONE_TEXT = 1,
    JSON_LINES = 2
  };

  enum SiteType
  {
    HEAD_OUTPUT = 0,
    RESIDUAL = 1,
    ATTENTION_OUTPUT = 2,
    MLP_OUTPUT = 3
  };

  /// The text that is run with changes; of a model without a tokenizer, token ids separated by
  /// spaces. Null or empty: none, and the outputs are empty. Default: When John and Mary went to
  /// the store, John gave a drink to (of the task of Wang et al. 2023).
  vtkSetStdStringFromCharMacro(Prompt);
  vtkGetCharFromStdStringMacro(Prompt);

  /// The text whose values replace those of Prompt, likewise; with as many tokens. Only for PATCH.
  /// Null or empty: none, and the outputs are empty. Default: When Mary and John went to the store,
  /// Mary gave a drink to.
  vtkSetStdStringFromCharMacro(PatchFrom);
  vtkGetCharFromStdStringMacro(PatchFrom);

  /// What values are replaced by: PATCH, those of PatchFrom; ZERO; MEAN_OVER_POSITIONS, their mean
  /// over the positions of Prompt, later ones too; MEAN_OVER_PROMPTS, their mean over all tokens of
  /// ReferencePrompts. Default: PATCH.
  vtkSetClampMacro(Mode, int, PATCH, MEAN_OVER_PROMPTS);
  vtkGetMacro(Mode, int);

  /// The data set of MEAN_OVER_PROMPTS, as PromptFormat says, of any lengths; as Prompt, texts or
  /// token ids. Null or empty: none, and the outputs are empty. Default: none.
  vtkSetStdStringFromCharMacro(ReferencePrompts);
  vtkGetCharFromStdStringMacro(ReferencePrompts);

  /// How Prompt, PatchFrom and ReferencePrompts are written (Core's Prompts.h): LINES, one prompt
  /// per line; ONE_TEXT, one prompt with its line breaks; JSON_LINES, a JSON string, or an object
  /// that has one as "text" or "prompt", per line. Default: LINES.
  vtkSetClampMacro(PromptFormat, int, LINES, JSON_LINES);
  vtkGetMacro(PromptFormat, int);

  /// What is replaced: HEAD_OUTPUT, the z of each head, before W_O, a map of layers and heads; or,
  /// a map of layers and positions, RESIDUAL, the residual stream before each layer;
  /// ATTENTION_OUTPUT and MLP_OUTPUT, what attention and MLP add to it. ZERO leaves the biases of
  /// the latter two. Default: HEAD_OUTPUT.
  vtkSetClampMacro(Site, int, HEAD_OUTPUT, MLP_OUTPUT);
  vtkGetMacro(Site, int);

  /// Where HEAD_OUTPUT is replaced: a position from 0, or -1 for all. Default: -1.
  vtkSetClampMacro(Position, int, -1, VTK_INT_MAX);
  vtkGetMacro(Position, int);

  /// The token whose logit is measured, by text or id (Core's TokenFinder.h). Null or empty: the
  /// one that the run of PatchFrom predicts or, without one, that of Prompt. See Core's
  /// PatchingOptions. Default: none.
  vtkSetStdStringFromCharMacro(Target);
  vtkGetCharFromStdStringMacro(Target);

  /// The token whose logit is subtracted, likewise. Null or empty: the one that the run of Prompt
  /// predicts or, without PatchFrom, predicts second. Default: none.
  vtkSetStdStringFromCharMacro(Against);
  vtkGetCharFromStdStringMacro(Against);

protected:
  vtkActivationPatching();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Map;
  struct Memory;

  bool IsAsked(vtkMultiBlockDataSet* model) const;
  std::array<int, 2> MapSize(vtkMultiBlockDataSet* model);
  atlas::PromptFormat Format() const;
  atlas::EncodedPrompt ReadPrompt(const std::string& text, const char* name) const;
  atlas::PatchingOptions Options() const;
  Map MakeMap(vtkMultiBlockDataSet* model, const AttentionAtlas::Task& task);

  std::string Prompt;
  std::string PatchFrom;
  std::string ReferencePrompts;
  std::string Target;
  std::string Against;
  int PromptFormat = LINES;
  int Mode = PATCH;
  int Site = HEAD_OUTPUT;
  int Position = -1;
  std::shared_ptr<const atlas::OpenTransformer> Model; ///< of the last execution
  std::shared_ptr<Memory> Kept;
};
