#ifndef vtkRecordingReader_h
#define vtkRecordingReader_h

#include "AttentionAtlasIOModule.h"

#include <vtkMultiBlockDataSetAlgorithm.h>

/**
 * @class vtkRecordingReader
 * @brief Reads the recorded activations of a transformer from a safetensors, .npy or .npz file.
 *
 * Supported are files written by this plugin, activations saved from TransformerLens (old and new
 * names), arrays named as in Hugging Face code, and attention alone. Core's RecordingFile.h lists
 * the names. A warning lists arrays that are not used.
 *
 * Output: a recording (vtkMultiBlockDataSet, see RecordingConversion.h), the same in each piece.
 * Arrays stored in the layout of a recording are mapped, not copied.
 */
class ATTENTIONATLASIO_EXPORT vtkRecordingReader : public vtkMultiBlockDataSetAlgorithm
{
public:
  static vtkRecordingReader* New();
  vtkTypeMacro(vtkRecordingReader, vtkMultiBlockDataSetAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  enum MaskType
  {
    MASK_FROM_FILE = 0,
    CAUSAL = 1,
    BIDIRECTIONAL = 2
  };
  enum ProcessedType
  {
    PROCESSED_FROM_FILE = 0,
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
   * A JSON or text file with the token strings. Null or empty: NAME.tokens.json or NAME.tokens.txt
   * next to the file, if there is one. Default: none.
   */
  vtkSetFilePathMacro(TokensFile);
  vtkGetFilePathMacro(TokensFile);
  ///@}

  ///@{
  /**
   * The architecture, free text. Null or empty: as stated in the file. Default: none.
   */
  vtkSetStringMacro(Architecture);
  vtkGetStringMacro(Architecture);
  ///@}

  ///@{
  /**
   * Which keys a query attends to: CAUSAL, those at its position and before; BIDIRECTIONAL, all; or
   * MASK_FROM_FILE, determined from metadata, stored attention or array names. Default:
   * MASK_FROM_FILE.
   */
  vtkSetClampMacro(Mask, int, MASK_FROM_FILE, BIDIRECTIONAL);
  vtkGetMacro(Mask, int);
  ///@}

  ///@{
  /**
   * The factor of query . key in a score. 0: as stated in the file, else 1 / sqrt(d_head). Default:
   * 0.
   */
  vtkSetMacro(ScoreScale, double);
  vtkGetMacro(ScoreScale, double);
  ///@}

  ///@{
  /**
   * Whether the weights of the model were processed as in TransformerLens (normalizations folded,
   * writing weights centered), which cannot be seen from the arrays. Default: PROCESSED_FROM_FILE.
   */
  vtkSetClampMacro(Processed, int, PROCESSED_FROM_FILE, PROCESSED);
  vtkGetMacro(Processed, int);
  ///@}

  ///@{
  /**
   * The number of heads, needed only if they are side by side in flat arrays [B,T,H*d_head]; 0:
   * unknown. Default: 0.
   */
  vtkSetClampMacro(HeadCount, int, 0, VTK_INT_MAX);
  vtkGetMacro(HeadCount, int);
  ///@}

  /**
   * Returns 1 if this reader should read `fileName`: a .npy or .npz file, a safetensors file with
   * at least one array of a recording, or a damaged file, for which reading reports the error.
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
  int Mask = MASK_FROM_FILE;
  double ScoreScale = 0;
  int Processed = PROCESSED_FROM_FILE;
  int HeadCount = 0;
};

#endif
