#pragma once

#include "AttentionAtlasTransformersModule.h"
#include "PropertyList.h"

#include <vtkDataArraySelection.h>
#include <vtkNew.h>
#include <vtkSmartPointer.h>
#include <vtkTaskAlgorithm.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

class vtkMultiBlockDataSet;
class vtkTable;

namespace atlas
{
class GeneratedText;
class OpenTransformer;
struct RecordOptions;
struct RecorderSources;
struct Recording;
struct TextSteps;
class Transformer;
}
namespace AttentionAtlas
{
class KeptRecordings;
class RankGroup;
}

/// Runs a transformer on texts, token ids or images and records its heads. Input port 0: the model.
/// Input port 1 (optional): a vtkTable with one row per token and the columns TokenId and, for
/// several sequences, Sequence; the same in each piece. The sequences come from that table or from
/// one of Prompts, PromptFile, TokenIds and Images. If more than one of them is set, an error lists
/// them; if none is set, the output is empty. For a model of pictures among words, such as LLaVA,
/// Images go with one of the others: in a text <image> stands for the next picture, <video> for the
/// next video, or the model's own token; a single text without them comes after all pictures
/// (Core's PicturePrompts.h).
///
/// The model stays open between executions, so an edited prompt opens none of its files. A file
/// that was changed is read again by the next execution. The last recordings are kept
/// (KeptRecordings).
///
/// Interventions, Ablate, PatchFrom and CircuitFile, change values during the run; everything after
/// them is computed from the changed values. Queries, keys, values and norms of values are what the
/// heads compute; head outputs, residuals and logits are as changed. The field array Interventions
/// says what was changed (Core's Interventions.h).
///
/// GenerateTokens lets the model go on with each sequence. The recording then has time steps: at
/// step t each sequence ends after t of the tokens that the model added, so that an animation shows
/// the text as it is written. Without a requested time, and for a model over time, the recording
/// shows all of them.
///
/// Output: a recording (vtkMultiBlockDataSet, see RecordingConversion.h), the same in each piece.
/// Canceling leaves it empty, and the next update records again. Formulas: Core's
/// RecordTransformer.h.
///
/// If each of several MPI ranks is asked for one piece, each runs a part of the sequences with
/// about the same number of tokens and receives the rest. The recording is equal to the byte on all
/// ranks, and to that of a single rank. An error or canceling on one rank applies to all; the first
/// rank reports the error. If other pieces are requested, each rank runs everything itself.
class ATTENTIONATLASTRANSFORMERS_EXPORT vtkTransformerRecorder : public vtkTaskAlgorithm
{
public:
  static vtkTransformerRecorder* New();
  vtkTypeMacro(vtkTransformerRecorder, vtkTaskAlgorithm);

  enum PromptFormatType
  {
    LINES = 0,
    ONE_TEXT = 1,
    JSON_LINES = 2,
    FASTA = 3,
    A3M = 4
  };

  /// Connects the table of token ids.
  void SetTokensConnection(vtkAlgorithmOutput* tokens) { this->SetInputConnection(1, tokens); }

  /// Texts, as PromptFormat says, for the tokenizer in the model's folder. For a model with
  /// segments, a tab separates the two segments of a pair. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(Prompts);
  vtkGetCharFromStdStringMacro(Prompts);

  /// How Prompts, Targets and PatchFrom are written (Core's Prompts.h): LINES, one prompt per line;
  /// ONE_TEXT, one prompt with its line breaks; JSON_LINES, a JSON string, or an object that has
  /// one as "text" or "prompt", per line; FASTA, proteins, each behind a line that begins with >;
  /// A3M, the same as rows of an alignment, without their insertions. Default: LINES.
  vtkSetClampMacro(PromptFormat, int, LINES, A3M);
  vtkGetMacro(PromptFormat, int);

  /// A UTF-8 file of texts: JSON lines if its name ends with .jsonl, proteins if with .fasta, .fas,
  /// .fa, .faa or .a3m, else one per line. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(PromptFile);
  vtkGetCharFromStdStringMacro(PromptFile);

  /// Token ids, one sequence per line, separated by spaces. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(TokenIds);
  vtkGetCharFromStdStringMacro(TokenIds);

  /// The segments of TokenIds, in the same form: 0 for the first, 1 for the second. Null or empty:
  /// all 0. Default: none.
  vtkSetStdStringFromCharMacro(Segments);
  vtkGetCharFromStdStringMacro(Segments);

  /// What the decoder of a model with an encoder reads after its start token, as PromptFormat says:
  /// texts or, if the sequences are token ids, token ids. The sequences then are the source, which
  /// the encoder reads. Null or empty: the start token alone. Default: none.
  vtkSetStdStringFromCharMacro(Targets);
  vtkGetCharFromStdStringMacro(Targets);

  /// Whether the model, as it is known without an update, has an encoder beside a decoder.
  int GetHasEncoder();

  /// 1 if the model reads sound, or its encoder does. Else 0.
  int GetReadsSound();

  /// PNG and JPEG files, one per image, or one safetensors or .npy file with pixel_values [images,
  /// channels, height, width], normalized as in the model's training. The kind of a file is
  /// detected from its content. Null and empty names are ignored. Default: none.
  ///
  /// PNG and JPEG images are converted to pixel_values according to the preprocessor_config.json
  /// next to the model's config.json, see Core's ImageProcessor.h. A warning lists images that are
  /// resized. Gray images get three equal channels, transparency is dropped with a warning, 16-bit
  /// images keep their precision, and EXIF orientation is not applied.
  void AddImage(VTK_FILEPATH const char* fileName)
  {
    AttentionAtlas::AppendText(this, this->Images, fileName);
  }
  void ClearImages() { AttentionAtlas::Clear(this, this->Images); }
  const std::vector<std::string>& GetImages() const { return this->Images; }

  /// Whose arithmetic makes the pixels of PNG and JPEG images. Both are those of the original code,
  /// to the byte: Pillow's of transformers 4 and of its processors with Pillow in 5, torchvision's
  /// of those that 5 takes by default. The field array Pixels says which. Default: PILLOW.
  enum PixelsType
  {
    PILLOW,
    TORCHVISION
  };
  vtkSetClampMacro(Pixels, int, PILLOW, TORCHVISION);
  vtkGetMacro(Pixels, int);

  /// The number of Images that are the frames of one video, for Qwen2-VL, Qwen2.5-VL, Qwen3-VL,
  /// Qwen3.5, InternVL and SmolVLM. 0: Images are pictures. Default: 0.
  vtkSetClampMacro(FramesPerFilm, int, 0, VTK_INT_MAX);
  vtkGetMacro(FramesPerFilm, int);

  /// The frames of a video in a second, at which they were taken: Qwen2.5-VL counts the seconds,
  /// SmolVLM, Qwen3-VL and Qwen3.5 read times of frames. Positive. Default: 2.
  vtkSetMacro(FramesPerSecond, double);
  vtkGetMacro(FramesPerSecond, double);

  /// Whether the model, as it is known without an update, reads videos among words.
  int GetReadsVideos();

  /// Sound files (WAV, FLAC, Ogg and others) for a model that reads sound, one per sequence, or one
  /// safetensors or .npy file with input_features [sounds, bands, frames], the log-mel features of
  /// Whisper, or input_values: [sounds, frames, bands] of AST, [sounds, samples] of wav2vec 2.0,
  /// see Core's SoundProcessor.h. For Whisper and AST a sound is cut or filled up to the length
  /// that the model reads, with a warning if it is cut. Null and empty names are ignored. Default:
  /// none.
  void AddSound(VTK_FILEPATH const char* fileName)
  {
    AttentionAtlas::AppendText(this, this->Sounds, fileName);
  }
  void ClearSounds() { AttentionAtlas::Clear(this, this->Sounds); }
  const std::vector<std::string>& GetSounds() const { return this->Sounds; }

  /// Sequences with more tokens are cut off, with a warning. 0: no limit, and a sequence with more
  /// tokens than the model has positions is an error. Default: 0.
  vtkSetClampMacro(MaximumLength, int, 0, VTK_INT_MAX);
  vtkGetMacro(MaximumLength, int);

  /// Whether to add the special tokens that the model was trained with, such as BERT's [CLS] and
  /// [SEP], to texts. Default: on.
  vtkSetMacro(AddSpecialTokens, bool);
  vtkGetMacro(AddSpecialTokens, bool);
  vtkBooleanMacro(AddSpecialTokens, bool);

  /// The layers whose heads are recorded, counted from 0; none means all. Default: none.
  void AddLayer(int layer) { AttentionAtlas::Append(this, this->Layers, layer); }
  void ClearLayers() { AttentionAtlas::Clear(this, this->Layers); }
  const std::vector<int>& GetLayers() const { return this->Layers; }

  /// The quantities to record: QueriesAndKeys, Values, HeadOutputs, Residual, Logits, and Routing
  /// of models with experts. If all are chosen, those that the model has are recorded. Default:
  /// those that figures need, QueriesAndKeys, Values, HeadOutputs and Residual.
  vtkDataArraySelection* GetRecord() { return this->Record; }
  int GetNumberOfRecordArrays() { return this->Record->GetNumberOfArrays(); }
  const char* GetRecordArrayName(int index) { return this->Record->GetArrayName(index); }
  int GetRecordArrayStatus(const char* name) { return this->Record->ArrayIsEnabled(name); }
  void SetRecordArrayStatus(const char* name, int status)
  {
    this->Record->SetArraySetting(name, status);
  }
  void DisableAllRecord();

  /// Includes the selection of recorded quantities. After an error, changes with the files that
  /// were read.
  vtkMTimeType GetMTime() override;

  /// Whether the pixels of images are recorded, as the model saw them, for views that show
  /// attention on the picture: 3 bytes per pixel, 150 kB for 224 x 224. Off, or if they take more
  /// than 256 MiB, which gives a warning: only the files' names and a hash of the pixels, with
  /// which views read the picture again; not for pixel_values. Default: on.
  vtkSetMacro(RecordPictures, bool);
  vtkGetMacro(RecordPictures, bool);
  vtkBooleanMacro(RecordPictures, bool);

  /// Heads whose output z, the weighted sum of values, is replaced by AblateTo before W_O, in all
  /// sequences: layer.head, separated by spaces, such as "2.5 3.1", each at all positions or, as
  /// "2.5@3", at one. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(Ablate);
  vtkGetCharFromStdStringMacro(Ablate);

  enum AblationType
  {
    ZERO = 0,
    MEAN_OVER_POSITIONS = 1,
    MEAN_OVER_PROMPTS = 2
  };

  /// What ablated heads output and, without PatchFrom, what CircuitFile leaves out: ZERO;
  /// MEAN_OVER_POSITIONS, their mean over all positions of the sequence, so that what a position
  /// receives depends on later ones too; or MEAN_OVER_PROMPTS, their mean over all tokens of the
  /// other sequences, run without changes, of which there must be one: the mean ablation of the
  /// literature, over a data set. Default: ZERO.
  vtkSetClampMacro(AblateTo, int, ZERO, MEAN_OVER_PROMPTS);
  vtkGetMacro(AblateTo, int);

  /// Another prompt, whose activations replace those of each sequence at PatchSites and of
  /// what CircuitFile leaves out: a text or, if the sequences are token ids, token ids. It must
  /// have as many tokens as every sequence. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(PatchFrom);
  vtkGetCharFromStdStringMacro(PatchFrom);

  /// What is replaced, separated by spaces: 2.5, the output of head 5 in layer 2; r2, the residual
  /// stream before layer 2; a2 and m2, the outputs of its attention and its MLP. Each at all
  /// positions or, as "r2@3", at one, counted from 0. Patches come after ablations. Null or empty:
  /// none. Default: none.
  vtkSetStdStringFromCharMacro(PatchSites);
  vtkGetCharFromStdStringMacro(PatchSites);

  /// The file of a circuit of the model (vtkCircuitWriter): every head and MLP outside it, and the
  /// residual stream before layer 0 if the embedding is, is replaced at all positions, by PatchFrom
  /// or, without it, as AblateTo says. Of a circuit of edges, the nodes at edges count. Null or
  /// empty: none. Default: none.
  vtkSetStdStringFromCharMacro(CircuitFile);
  vtkGetCharFromStdStringMacro(CircuitFile);

  /// The number of tokens, at most 100,000, that the model adds to each sequence, one per time
  /// step; fewer if it predicts the end of the text, which generation_config.json, or else
  /// config.json, names as eos_token_id. Each is predicted from all tokens before it. 0: none. Not
  /// together with interventions. Default: 0.
  vtkSetClampMacro(GenerateTokens, int, 0, 100000);
  vtkGetMacro(GenerateTokens, int);

  /// How the tokens are chosen. 0: always the most probable one. Otherwise logits are divided by
  /// the temperature and tokens are drawn from their softmax: 1 follows the model, lower values
  /// prefer probable tokens. At least 0. Default: 0.
  vtkSetClampMacro(Temperature, double, 0, VTK_DOUBLE_MAX);
  vtkGetMacro(Temperature, double);

  /// Tokens are drawn from this number of most probable ones. 0: from all. Default: 0.
  vtkSetClampMacro(TopK, int, 0, VTK_INT_MAX);
  vtkGetMacro(TopK, int);

  /// The seed of the draws, at least 0. Default: 0.
  vtkSetClampMacro(Seed, int, 0, VTK_INT_MAX);
  vtkGetMacro(Seed, int);

  /// Memory for the last recordings, in MiB, so that going back to a time step, a prompt or an
  /// option that was recorded before runs nothing. The oldest leave first. 0: none are kept.
  /// Default: 1024.
  vtkSetClampMacro(KeptRecordings, int, 0, VTK_INT_MAX);
  vtkGetMacro(KeptRecordings, int);

protected:
  vtkTransformerRecorder();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Run;
  vtkSmartPointer<vtkMultiBlockDataSet> MakeOutline();
  atlas::RecorderSources GetSources(vtkTable* table) const;
  atlas::RecordOptions GetChoice(const atlas::Transformer& model) const;
  atlas::RecordOptions GetOptions(
    const atlas::RecorderSources& sources, const Run& run, const AttentionAtlas::Task& task) const;
  static void ShareRows(
    const Run& run, const AttentionAtlas::RankGroup& ranks, const atlas::Recording& recording);
  void Generate(Run& run, atlas::TextSteps& steps) const;
  atlas::Recording RecordAll(
    const Run& run, const AttentionAtlas::Task& task, std::string& warning) const;
  atlas::Recording FindOrRecord(const Run& run, const AttentionAtlas::Task& task);
  bool HasOwnTime(vtkInformation* model) const;
  std::int64_t TokensToShow(const AttentionAtlas::Task& task) const;

  std::string Prompts;
  std::string PromptFile;
  std::string TokenIds;
  std::string Segments;
  std::string Targets;
  std::string Ablate;
  std::string PatchFrom;
  std::string PatchSites;
  std::string CircuitFile;
  int PromptFormat = LINES;
  int AblateTo = ZERO;
  int MaximumLength = 0;
  int Pixels = PILLOW;
  int FramesPerFilm = 0;
  double FramesPerSecond = 2;
  int GenerateTokens = 0;
  double Temperature = 0;
  int TopK = 0;
  int Seed = 0;
  bool AddSpecialTokens = true;
  bool RecordPictures = true;
  std::vector<std::string> Images;
  std::vector<std::string> Sounds;
  std::vector<int> Layers;
  vtkNew<vtkDataArraySelection> Record;
  int KeptRecordings = 1024;
  std::shared_ptr<const atlas::OpenTransformer> Model; ///< model of the last execution
  std::shared_ptr<AttentionAtlas::KeptRecordings> Kept;
  std::shared_ptr<atlas::GeneratedText> Generated;
};
