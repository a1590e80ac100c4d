#ifndef vtkRecordingReader_h
#define vtkRecordingReader_h

#include "AttentionAtlasIOModule.h"

#include <vtkMultiBlockDataSetAlgorithm.h>

/**
 * @class vtkRecordingReader
 * @brief Reads what a transformer did with some sequences from safetensors, .npy or .npz.
 *
 * Files that this plugin wrote, activations saved from TransformerLens (old and new names), arrays
 * as Hugging Face's code has them, or attention alone; Core's RecordingFile.h lists the names. An
 * array that is not used is named in a warning.
 *
 * Output: a recording (vtkMultiBlockDataSet, see RecordingConversion.h), the same in each piece.
 * Arrays that lie in the file as a recording has them are mapped, not copied.
 */
class ATTENTIONATLASIO_EXPORT vtkRecordingReader : public vtkMultiBlockDataSetAlgorithm
{
public:
  static vtkRecordingReader* New();
  vtkTypeMacro(vtkRecordingReader, vtkMultiBlockDataSetAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  enum MaskType
  {
    AUTOMATIC_MASK = 0,
    CAUSAL = 1,
    BIDIRECTIONAL = 2
  };
  enum WeightProcessingType
  {
    AUTOMATIC_WEIGHT_PROCESSING = 0,
    UNPROCESSED = 1,
    PROCESSED = 2
  };

  ///@{
  /**
   * The file to read. Default: none.
   */
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);
  ///@}

  ///@{
  /**
   * A JSON or text file with the token strings. Null or empty: automatic, NAME.tokens.json or
   * NAME.tokens.txt beside the file, if there is one. Default: none.
   */
  vtkSetFilePathMacro(TokensFile);
  vtkGetFilePathMacro(TokensFile);
  ///@}

  ///@{
  /**
   * The architecture, free text. Null or empty: automatic, what the file says. Default: none.
   */
  vtkSetStringMacro(Architecture);
  vtkGetStringMacro(Architecture);
  ///@}

  ///@{
  /**
   * Which keys a query attends to: CAUSAL, those at its position and before; BIDIRECTIONAL, all; or
   * AUTOMATIC_MASK, as metadata, stored attention or names of arrays tell. Default: AUTOMATIC_MASK.
   */
  vtkSetClampMacro(Mask, int, AUTOMATIC_MASK, BIDIRECTIONAL);
  vtkGetMacro(Mask, int);
  ///@}

  ///@{
  /**
   * The factor of query . key in a score. 0: automatic, what the file says, else 1 / sqrt(d_head).
   * Default: 0.
   */
  vtkSetMacro(ScoreScale, double);
  vtkGetMacro(ScoreScale, double);
  ///@}

  ///@{
  /**
   * Whether the weights of the model were processed as TransformerLens does (normalizations folded,
   * writing weights centred), which arrays do not tell; or AUTOMATIC_WEIGHT_PROCESSING, as metadata
   * tell. Default: AUTOMATIC_WEIGHT_PROCESSING.
   */
  vtkSetClampMacro(WeightProcessing, int, AUTOMATIC_WEIGHT_PROCESSING, PROCESSED);
  vtkGetMacro(WeightProcessing, int);
  ///@}

  ///@{
  /**
   * The number of heads, needed only where they lie side by side in flat arrays [B,T,H*d_head]. 0:
   * automatic, from the shapes of the arrays. Default: 0.
   */
  vtkSetClampMacro(HeadCount, int, 0, VTK_INT_MAX);
  vtkGetMacro(HeadCount, int);
  ///@}

  /**
   * 1 if `fileName` is for this reader: a .npy or .npz file, a safetensors file with at least one
   * array of a recording, or a damaged file, of which reading says what is wrong.
   */
  int CanReadFile(const char* fileName);

protected:
  vtkRecordingReader();
  ~vtkRecordingReader() override;

  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkRecordingReader(const vtkRecordingReader&) = delete;
  void operator=(const vtkRecordingReader&) = delete;

  char* FileName = nullptr;
  char* TokensFile = nullptr;
  char* Architecture = nullptr;
  int Mask = AUTOMATIC_MASK;
  double ScoreScale = 0;
  int WeightProcessing = AUTOMATIC_WEIGHT_PROCESSING;
  int HeadCount = 0;
};

#endif
