#pragma once

#include "AttentionAtlasCorpusModule.h"
#include "PropertyList.h"

#include <vtkTaskAlgorithm.h>

#include <memory>
#include <string>
#include <vector>

namespace atlas
{
struct CorpusOptions;
struct CorpusStatistics;
class OpenTransformer;
}

/// What every head of a transformer does over a text of any length. Input: a language model. Files
/// are read as documents (Core's CorpusText.h), each document as windows of tokens, and windows are
/// run in batches. A document of more than 100 MiB is read as several. Sums are kept, and no
/// activations (Core's CorpusStatistics.h has all quantities).
///
/// Output: a vtkTable with a row per head and all statistics as a field array (CorpusConversion.h),
/// in the first piece. It is the input of the other filters of this module.
///
/// Canceling keeps what was seen until then; a larger TokenLimit, or Continue, goes on from there.
/// On several MPI ranks each runs some of the batches. The statistics are equal to the byte for any
/// number of ranks and threads, and whether or not they were interrupted.
class ATTENTIONATLASCORPUS_EXPORT vtkCorpusStatistics : public vtkTaskAlgorithm
{
public:
  static vtkCorpusStatistics* New();
  vtkTypeMacro(vtkCorpusStatistics, vtkTaskAlgorithm);

  /// Files of text (UTF-8), .jsonl files with "text", "tokens" or "input_ids", or .npy files of
  /// token ids. Null and empty names are ignored. Default: none, which gives an empty output.
  void AddFile(VTK_FILEPATH const char* fileName)
  {
    AttentionAtlas::AppendText(this, this->Files, fileName);
  }
  void ClearFiles() { AttentionAtlas::Clear(this, this->Files); }
  const std::vector<std::string>& GetFiles() const { return this->Files; }

  enum DocumentType
  {
    LINES = 0,
    PARAGRAPHS = 1,
    FILES = 2
  };

  /// What a document of a text file is: each of its LINES, PARAGRAPHS between empty lines, or the
  /// whole file. Default: LINES.
  vtkSetClampMacro(Documents, int, LINES, FILES);
  vtkGetMacro(Documents, int);

  /// The tokens of a window, 2 to the positions of the model. 0: 256, or all positions if these are
  /// fewer. Default: 0.
  vtkSetClampMacro(Window, int, 0, VTK_INT_MAX);
  vtkGetMacro(Window, int);

  /// The tokens that a window repeats of the one before it in the same document, as context. They
  /// do not count again. Less than half of the window. Default: 0.
  vtkSetClampMacro(Overlap, int, 0, VTK_INT_MAX);
  vtkGetMacro(Overlap, int);

  /// Stop after about this many tokens. 0: all of the text. Default: 100000.
  vtkSetClampMacro(TokenLimit, int, 0, VTK_INT_MAX);
  vtkGetMacro(TokenLimit, int);

  /// Whether each window has the special tokens that the model was trained with. Default: on.
  vtkSetMacro(AddSpecialTokens, bool);
  vtkGetMacro(AddSpecialTokens, bool);
  vtkBooleanMacro(AddSpecialTokens, bool);

  /// The layers whose heads are measured, from 0; none means all. Default: none.
  void AddLayer(int layer) { AttentionAtlas::Append(this, this->Layers, layer); }
  void ClearLayers() { AttentionAtlas::Clear(this, this->Layers); }
  const std::vector<int>& GetLayers() const { return this->Layers; }

  /// Top contexts that are kept of each head and measure, 0 to 1000. Default: 20.
  vtkSetClampMacro(Contexts, int, 0, 1000);
  vtkGetMacro(Contexts, int);

  /// Tokens, drawn at random, whose queries and keys are kept for vtkScoreParts, 0 to 100000.
  /// Default: 1024.
  vtkSetClampMacro(Samples, int, 0, 100000);
  vtkGetMacro(Samples, int);

  /// Whether values are kept, too: of these tokens, and their covariance over all of the text, for
  /// the OUTPUTS of vtkScoreParts. Default: off.
  vtkSetMacro(SampleValues, bool);
  vtkGetMacro(SampleValues, bool);
  vtkBooleanMacro(SampleValues, bool);

  /// A query is at a sink if its weight of the first key is above this, 0 to 1. Default: 0.3.
  vtkSetClampMacro(SinkThreshold, double, 0, 1);
  vtkGetMacro(SinkThreshold, double);

  /// Whether the attention of all heads is compared, for clusters of heads that attend alike. Takes
  /// time with the square of the number of heads. Default: on.
  vtkSetMacro(Agreement, bool);
  vtkGetMacro(Agreement, bool);
  vtkBooleanMacro(Agreement, bool);

  /// The file of a sparse dictionary as vtkDictionaryFeatures reads it, or its folder: how often
  /// its features are active, and their strongest contexts, are measured, too. Its layer must be
  /// among those that are measured. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(DictionaryFile);
  vtkGetCharFromStdStringMacro(DictionaryFile);

  /// Batch size in tokens, at least 1. Statistics depend on it by the order in which
  /// floats are added only. Default: 1024.
  vtkSetClampMacro(BatchTokens, int, 1, 1 << 24);
  vtkGetMacro(BatchTokens, int);

  /// A file of statistics of the same model and texts with the same options, from which the run
  /// goes on. A difference is an error. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(ContinueFrom);
  vtkGetCharFromStdStringMacro(ContinueFrom);

  /// After a run was canceled, lets the next update go on.
  void Continue() { this->Modified(); }

protected:
  vtkCorpusStatistics();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct State;
  atlas::CorpusOptions GetOptions() const;
  std::string KeyOf(const atlas::OpenTransformer& model) const;
  void Begin(
    const atlas::OpenTransformer& model, const std::string& path, AttentionAtlas::Task& task);
  void RequireMemory(const atlas::OpenTransformer& model, const atlas::CorpusStatistics& statistics,
    int ranks) const;
  void Run(const atlas::OpenTransformer& model, AttentionAtlas::Task& task);

  std::vector<std::string> Files;
  int Documents = LINES;
  int Window = 0;
  int Overlap = 0;
  int TokenLimit = 100000;
  bool AddSpecialTokens = true;
  std::vector<int> Layers;
  int Contexts = 20;
  int Samples = 1024;
  bool SampleValues = false;
  double SinkThreshold = 0.3;
  bool Agreement = true;
  std::string DictionaryFile;
  int BatchTokens = 1024;
  std::string ContinueFrom;
  std::shared_ptr<State> Kept;
};
