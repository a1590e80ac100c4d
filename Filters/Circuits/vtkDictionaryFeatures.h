#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

#include <memory>
#include <string>

/// Features of a sparse dictionary on a recording: of what the heads of a layer mix or add, or of
/// the residual stream. Input port 0: a recording with what the dictionary reads, and with the
/// outputs of heads. Input port 1: the transformer that was recorded. The dictionary is a file of
/// SAELens. Formulas: Core's SparseDictionary.h and DictionaryFeatures.h.
///
/// Output 0: a vtkTable with a row per token and feature that is active there, strongest first:
/// Sequence, Position (int), Token Index (id type: the row of the token in the recording; also the
/// pedigree id), Token (string), Rank (int, from 1), Feature (int), Activation (double) and
/// Reconstruction Error (double: the length of what the dictionary leaves out of the vector of the
/// token, divided by that of the vector).
///
/// Output 1: a vtkImageData with a point per feature (downward, by falling largest activation) and
/// token (rightward), and the point arrays Activation, Feature, Sequence, Position, Token Index and
/// Token. Field data: the labels Key Token (the tokens) and Query Token (the features), and for
/// titles Sequence (int) and Sequence Text (string), or of all sequences Listed (string).
///
/// Output 2: a vtkTable of one feature with a row per head of the model, then one for the rest, if
/// there is one, and one for biases: Component (string), Layer, Head (int; -1), Contribution
/// (double: to the feature, a mean over the tokens where it is active), Share (of its row in the
/// decoder), and Query Reading, Key Reading and Value Reading (0 to 1: how strongly the head's
/// queries, keys and values read the feature's direction). NaN where a column does not apply to the
/// row.
///
/// Output 3: a vtkTable with the tokens whose logits a unit of that feature raises most, then those
/// that it lowers most: End (string, Highest or Lowest), Rank (int, from 1), Token (string),
/// TokenId (int) and Logit (double), before the scale of the final normalization. Empty without an
/// unembedding that reads the stream.
///
/// Output 4: a vtkTable with the strongest contexts of that feature: Rank (int, from 1), Activation
/// (double), Sequence, Position (int), Token Index (id type; also the pedigree id), Token and Text
/// (string), in which [ ] are around the token.
///
/// Field data of all: Hook Name (string, what the dictionary reads), Feature (int, that of outputs
/// 2 to 4), Features (int, of the dictionary), Active Features (double, per token) and Unexplained
/// Variance (double, the share of the variance over tokens that the reconstruction leaves out).
///
/// The size of the image depends on the recording and the dictionary, so UpdateInformation updates
/// the first. On several ranks the first one has the tables.
class ATTENTIONATLASCIRCUITS_EXPORT vtkDictionaryFeatures : public vtkTaskAlgorithm
{
public:
  static vtkDictionaryFeatures* New();
  vtkTypeMacro(vtkDictionaryFeatures, vtkTaskAlgorithm);

  enum ProcessingType
  {
    FROM_FILE = 0,
    NONE = 1,
    TRANSFORMER_LENS = 2
  };

  /// Sets the transformer of the recording.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// The safetensors file of the dictionary, beside its cfg.json, or the folder of both. Empty: the
  /// outputs are empty. Default: empty.
  vtkSetStdStringFromCharMacro(DictionaryFile);
  vtkGetCharFromStdStringMacro(DictionaryFile);

  /// The index of the sequence, from 0; -1: all. Default: 0.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// The feature of outputs 2 to 4, from 0; -1: the one with the largest activation. Default: -1.
  vtkSetMacro(Feature, int);
  vtkGetMacro(Feature, int);

  /// The largest number of features of each token, of tokens at either end, and of contexts, at
  /// least 1. Default: 10.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// The largest number of features in the image, at least 1. Default: 20.
  vtkSetMacro(ImageFeatures, int);
  vtkGetMacro(ImageFeatures, int);

  /// Which activations the dictionary was trained on. FROM_FILE: those that the
  /// model_from_pretrained_kwargs of its cfg.json name, unprocessed ones without any. NONE: those
  /// of the weights as they are stored. TRANSFORMER_LENS: those of TransformerLens' defaults, in
  /// which biases of values are no part of z, and vectors of a stream with LayerNorm have mean 0.
  /// Default: FROM_FILE.
  vtkSetClampMacro(Processing, int, FROM_FILE, TRANSFORMER_LENS);
  vtkGetMacro(Processing, int);

  /// -1 and the last sequence of the input, and -1 and the last feature of the dictionary, as of
  /// the last UpdateInformation; -1, 0 without them.
  vtkGetVector2Macro(SequenceRange, int);
  vtkGetVector2Macro(FeatureRange, int);

protected:
  vtkDictionaryFeatures();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Memory;
  struct Found;

  std::string DictionaryFile;
  int Sequence = 0;
  int Feature = -1;
  int Top = 10;
  int ImageFeatures = 20;
  int Processing = FROM_FILE;
  int SequenceRange[2] = { -1, 0 };
  int FeatureRange[2] = { -1, 0 };
  std::shared_ptr<Memory> Kept;
};
