#ifndef vtkTransformerRecorder_h
#define vtkTransformerRecorder_h

#include "AttentionAtlasTransformersModule.h"

#include <vtkMultiBlockDataSetAlgorithm.h>
#include <vtkNew.h>

#include <memory>
#include <string>
#include <vector>

class vtkDataArraySelection;
class vtkTable;

namespace AttentionAtlas
{
class OpenTransformer;
class RankGroup;
}

/**
 * @class vtkTransformerRecorder
 * @brief Runs a transformer on texts, token ids or images and records its heads.
 *
 * Input port 0: the model (vtkMultiBlockDataSet, as vtkTransformerReader gives it). Input port 1,
 * optional: a vtkTable with a row per token and the columns TokenId and, for several sequences,
 * Sequence, the same in each piece. The sequences come from that table or from one of Prompts,
 * PromptFile, TokenIds and Images; given several, an error names them; given none, the output is
 * empty.
 *
 * The model stays open from one execution to the next: an edited prompt opens none of its files. A
 * file that has changed by the next execution is read anew.
 *
 * Output: a recording (vtkMultiBlockDataSet, see RecordingConversion.h), the same in each piece.
 * Cancel leaves it empty, and the next update records anew. Formulas: Core's Transformer.h.
 *
 * On several MPI ranks that are asked for a piece each, every one runs some of the sequences, with
 * about as many tokens, and receives the rest: the recording has the same bytes on each, and as on
 * one rank. An error or Cancel on one of them is one for all, and the first rank tells the error.
 * Asked for other pieces, a rank runs everything itself.
 */
class ATTENTIONATLASTRANSFORMERS_EXPORT vtkTransformerRecorder
  : public vtkMultiBlockDataSetAlgorithm
{
public:
  static vtkTransformerRecorder* New();
  vtkTypeMacro(vtkTransformerRecorder, vtkMultiBlockDataSetAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  /**
   * Connects the table of token ids.
   */
  void SetTokensConnection(vtkAlgorithmOutput* tokens) { this->SetInputConnection(1, tokens); }

  ///@{
  /**
   * Texts, one sequence a line, for the tokenizer in the model's folder; a tab separates the two
   * segments of a pair where the model knows segments. Null or empty: none. Default: none.
   */
  vtkSetStringMacro(Prompts);
  vtkGetStringMacro(Prompts);
  ///@}

  ///@{
  /**
   * A file of such texts, UTF-8. Null or empty: none. Default: none.
   */
  vtkSetFilePathMacro(PromptFile);
  vtkGetFilePathMacro(PromptFile);
  ///@}

  ///@{
  /**
   * Token ids, one sequence a line, separated by spaces. Null or empty: none. Default: none.
   */
  vtkSetStringMacro(TokenIds);
  vtkGetStringMacro(TokenIds);
  ///@}

  ///@{
  /**
   * The segments of TokenIds, likewise: 0 for the first, 1 for the second. Null or empty: all 0.
   * Default: none.
   */
  vtkSetStringMacro(Segments);
  vtkGetStringMacro(Segments);
  ///@}

  ///@{
  /**
   * PNG and JPEG files, each of which is an image, or one safetensors or .npy file with
   * pixel_values [images, channels, height, width], normalized as in the model's training. Files
   * are told apart by their content. Null and empty names are left out. Default: none.
   *
   * Pictures become pixel_values as the preprocessor_config.json beside the model's config.json
   * says, see Core's ImageProcessor.h; a warning tells of those that are resized. Gray ones have
   * three equal channels, transparency is left out with a warning, 16 bits keep their precision,
   * and an orientation in EXIF is not applied.
   */
  void AddImage(VTK_FILEPATH const char* fileName);
  void ClearImages();
  const std::vector<std::string>& GetImages() const { return this->Images; }
  ///@}

  ///@{
  /**
   * Longer sequences are cut off at so many tokens, with a warning. 0: none is, and one longer than
   * the model's positions is an error. Default: 0.
   */
  vtkSetClampMacro(MaximumLength, int, 0, VTK_INT_MAX);
  vtkGetMacro(MaximumLength, int);
  ///@}

  ///@{
  /**
   * Whether texts get the special tokens that the model was trained with, such as BERT's [CLS] and
   * [SEP]. Default: on.
   */
  vtkSetMacro(AddSpecialTokens, bool);
  vtkGetMacro(AddSpecialTokens, bool);
  vtkBooleanMacro(AddSpecialTokens, bool);
  ///@}

  ///@{
  /**
   * The layers whose heads are recorded, by their numbers from 0; none: all. Default: none.
   */
  void AddLayer(int layer);
  void ClearLayers();
  const std::vector<int>& GetLayers() const { return this->Layers; }
  ///@}

  ///@{
  /**
   * What is recorded: QueriesAndKeys, Values, HeadOutputs, Residual, Logits. Default:
   * QueriesAndKeys, Values.
   */
  vtkDataArraySelection* GetRecord();
  int GetNumberOfRecordArrays();
  const char* GetRecordArrayName(int index);
  int GetRecordArrayStatus(const char* name);
  void SetRecordArrayStatus(const char* name, int status);
  void DisableAllRecord();
  ///@}

  /**
   * Includes the selection of what is recorded.
   */
  vtkMTimeType GetMTime() override;

protected:
  vtkTransformerRecorder();
  ~vtkTransformerRecorder() override;

  int FillInputPortInformation(int port, vtkInformation* info) override;
  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkTransformerRecorder(const vtkTransformerRecorder&) = delete;
  void operator=(const vtkTransformerRecorder&) = delete;

  struct Part;
  Part RecordPart(
    vtkMultiBlockDataSet* model, vtkTable* tokens, const AttentionAtlas::RankGroup& ranks);

  char* Prompts = nullptr;
  char* PromptFile = nullptr;
  char* TokenIds = nullptr;
  char* Segments = nullptr;
  int MaximumLength = 0;
  bool AddSpecialTokens = true;
  std::vector<std::string> Images;
  std::vector<int> Layers;
  vtkNew<vtkDataArraySelection> Record;
  std::shared_ptr<const AttentionAtlas::OpenTransformer> Model; ///< of the last execution
};

#endif
