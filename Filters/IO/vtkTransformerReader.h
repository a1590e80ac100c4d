#pragma once

#include "AttentionAtlasIOModule.h"

#include <vtkTaskAlgorithm.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace atlas
{
class OpenTransformer;
}

/// Reads a transformer of Hugging Face or TransformerLens. The file is the config.json of a model
/// folder, whose weights are model.safetensors, pytorch_model.bin or the shards that an index of
/// either names; or one safetensors file or file of PyTorch (.bin, .pt, .pth, .ckpt) with a
/// config.json beside it; a checkpoint of nanoGPT, llama2.c or TransformerLens that holds its own
/// configuration; Meta's params.json; or a GGUF file of llama.cpp (of an architecture that
/// ReadGgufConfig names), which contains configuration and tokenizer; or the adapter_config.json of
/// an adapter (Adapter.h), which is applied to its base, as it is for a config.json beside it.
/// Architectures: those of KnownArchitectures in TransformerConfig.h, among them models of
/// TransformerLens.
///
/// Output: a light vtkMultiBlockDataSet that describes the model (see TransformerConversion.h), the
/// same in each piece. Weights stay in their files, which are mapped for as long as the reader
/// lives, so that vtkTransformerRecorder opens none of them. Tensors that nothing reads are named
/// in a warning.
///
/// If the folder has subfolders checkpoint-N, as trainings leave them, the output is over time: the
/// steps are their N, and at each time it is the last checkpoint up to then; the first before the
/// first, and the last if no time is asked for. Checkpoints that were shown stay open, unless their
/// weights are processed.
class ATTENTIONATLASIO_EXPORT vtkTransformerReader : public vtkTaskAlgorithm
{
public:
  static vtkTransformerReader* New();
  vtkTypeMacro(vtkTransformerReader, vtkTaskAlgorithm);

  /// The file to read. Default: none.
  vtkSetStdStringFromCharMacro(FileName);
  vtkGetCharFromStdStringMacro(FileName);

  /// The architecture: one of KnownArchitectures (TransformerLens' is called transformer_lens),
  /// whatever model_type the config.json has. Auto, empty or null: that. Default: Auto.
  vtkSetStdStringFromCharMacro(Architecture);
  vtkGetCharFromStdStringMacro(Architecture);

  enum ProcessingType
  {
    NONE = 0,
    TRANSFORMER_LENS = 1
  };

  /// The weights that are given on. NONE: as they are in the files. TRANSFORMER_LENS:
  /// normalizations folded into the weights behind them, weights that write to the residual stream
  /// and the unembedding centered, and biases of values folded into that of the output, as the
  /// defaults of TransformerLens; attention and log probabilities are the same. Default: NONE.
  vtkSetClampMacro(Processing, int, NONE, TRANSFORMER_LENS);
  vtkGetMacro(Processing, int);

  enum ProductsType
  {
    SINGLE = 0,
    BFLOAT16 = 1
  };

  /// The numbers that runs of the model multiply activations and weights in. SINGLE: floats.
  /// BFLOAT16: both are rounded to BF16, which is faster on processors with AVX512-BF16 alone; see
  /// SetProducts of Core's Transformer.h. Default: SINGLE.
  vtkSetClampMacro(Products, int, SINGLE, BFLOAT16);
  vtkGetMacro(Products, int);

  /// Whether the output is over time if there are checkpoints. Off: the model in FileName alone.
  /// Default: on.
  vtkSetMacro(Checkpoints, bool);
  vtkGetMacro(Checkpoints, bool);
  vtkBooleanMacro(Checkpoints, bool);

  /// 1 if `fileName` is for this reader: a config.json, or a safetensors file with a config.json
  /// beside it.
  int CanReadFile(const char* fileName);

protected:
  vtkTransformerReader();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  using CheckpointFolders = std::map<std::int64_t, std::filesystem::path>; ///< by their steps
  using Checkpoint = CheckpointFolders::value_type;

  std::string FileName;
  std::string Architecture = "Auto";
  int Processing = NONE;
  int Products = SINGLE;
  bool Checkpoints = true;
  CheckpointFolders Steps;
  std::map<std::filesystem::path, std::shared_ptr<const atlas::OpenTransformer>>
    Models;             ///< that stay open
  std::string OpenedAs; ///< the architecture, processing and products of these

  const Checkpoint* CheckpointAt(vtkInformation* outputInfo) const;
  const atlas::OpenTransformer& Open(
    const std::filesystem::path& path, const std::string& architecture, bool processes);
};
