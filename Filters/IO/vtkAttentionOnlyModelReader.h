#pragma once

#include "AttentionAtlasIOModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

/// Reads a small attention-only transformer from a safetensors file. The file holds a one-layer
/// attention-only transformer on two tokens with embedding dimension 3, under native names
/// (word_embedding [N,3], position_embedding [2,3], unembedding [N,3], heads.{h}.query|key|value
/// [d_h,3], heads.{h}.output [3,d_h], optionally next_token [N,N]) or as a published PyTorch
/// state_dict (word_emb.weight, attn_seq.0.{h}.q_proj_weight, ...; see AttentionOnlyModel.h).
///
/// Output: a vtkMultiBlockDataSet with a named vtkTable per tensor (native names, one column) and
/// field data with the format and the dimensions, as described in ModelConversion.h.
///
/// If the metadata has a number `step` (the training step of a checkpoint), the reader provides it
/// as its time. In ParaView this reader runs inside a vtkFileSeriesReader, which turns several
/// files into time steps.
class ATTENTIONATLASIO_EXPORT vtkAttentionOnlyModelReader : public vtkTaskAlgorithm
{
public:
  static vtkAttentionOnlyModelReader* New();
  vtkTypeMacro(vtkAttentionOnlyModelReader, vtkTaskAlgorithm);

  /// The file to read. Default: none.
  vtkSetStdStringFromCharMacro(FileName);
  vtkGetCharFromStdStringMacro(FileName);

  /// The number of heads into which each attention module of a published state_dict is split: 1 or
  /// 3. If it is 1, the metadata entry `nb_head` of the file is used, if present. Native files name
  /// every head and ignore this. Default: 1.
  vtkSetMacro(SubHeads, int);
  vtkGetMacro(SubHeads, int);

  /// Returns 1 if this reader should read `fileName`. That includes damaged files, for which
  /// reading reports the error, but not valid safetensors files of another kind.
  int CanReadFile(const char* fileName);

protected:
  vtkAttentionOnlyModelReader();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  std::string FileName;
  int SubHeads = 1;
};
