#pragma once

#include "AttentionAtlasIOModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

/// Reads the recorded activations of a transformer from a safetensors, .npy, .npz or PyTorch file.
/// Supported are files written by this plugin, activations saved from TransformerLens (old and new
/// names), arrays named as in Hugging Face code, and attention alone. Core's RecordingFile.h lists
/// the names. A warning lists arrays that are not used.
///
/// Output: a recording (vtkMultiBlockDataSet, see RecordingConversion.h), the same in each piece.
/// Arrays stored in the layout of a recording are mapped, not copied.
class ATTENTIONATLASIO_EXPORT vtkRecordingReader : public vtkTaskAlgorithm
{
public:
  static vtkRecordingReader* New();
  vtkTypeMacro(vtkRecordingReader, vtkTaskAlgorithm);

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

  /// The file to read. Default: none.
  vtkSetStdStringFromCharMacro(FileName);
  vtkGetCharFromStdStringMacro(FileName);

  /// A JSON or text file with the token strings. Null or empty: automatic, NAME.tokens.json or
  /// NAME.tokens.txt next to the file, if there is one. Default: none.
  vtkSetStdStringFromCharMacro(TokensFile);
  vtkGetCharFromStdStringMacro(TokensFile);

  /// The architecture, free text. Null or empty: automatic, as stated in the file. Default: none.
  vtkSetStdStringFromCharMacro(Architecture);
  vtkGetCharFromStdStringMacro(Architecture);

  /// Which keys a query attends to: CAUSAL, those at its position and before; BIDIRECTIONAL, all;
  /// or AUTOMATIC_MASK, determined from metadata, stored attention or array names. Default:
  /// AUTOMATIC_MASK.
  vtkSetClampMacro(Mask, int, AUTOMATIC_MASK, BIDIRECTIONAL);
  vtkGetMacro(Mask, int);

  /// The factor of query . key in a score. 0: automatic, as stated in the file, else 1 /
  /// sqrt(d_head). Default: 0.
  vtkSetMacro(ScoreScale, double);
  vtkGetMacro(ScoreScale, double);

  /// Whether the weights of the model were processed as in TransformerLens (normalizations folded,
  /// writing weights centered), which cannot be seen from the arrays; or
  /// AUTOMATIC_WEIGHT_PROCESSING, determined from metadata. Default: AUTOMATIC_WEIGHT_PROCESSING.
  vtkSetClampMacro(WeightProcessing, int, AUTOMATIC_WEIGHT_PROCESSING, PROCESSED);
  vtkGetMacro(WeightProcessing, int);

  /// The number of heads, needed only if they are side by side in flat arrays [B,T,H*d_head]. 0:
  /// automatic, from the shapes of the arrays. Default: 0.
  vtkSetClampMacro(HeadCount, int, 0, VTK_INT_MAX);
  vtkGetMacro(HeadCount, int);

  /// Returns 1 if this reader should read `fileName`: a .npy or .npz file, a safetensors file with
  /// at least one array of a recording, or a damaged file, for which reading reports the error.
  int CanReadFile(const char* fileName);

protected:
  vtkRecordingReader();

  void Execute(AttentionAtlas::Task& task) override;

private:
  std::string FileName;
  std::string TokensFile;
  std::string Architecture;
  int Mask = AUTOMATIC_MASK;
  double ScoreScale = 0;
  int WeightProcessing = AUTOMATIC_WEIGHT_PROCESSING;
  int HeadCount = 0;
};
