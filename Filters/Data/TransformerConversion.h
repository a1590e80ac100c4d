#pragma once

#include "AttentionAtlasDataModule.h"
#include "Transformer.h"

#include <filesystem>
#include <string>

class vtkMultiBlockDataSet;

/// How a transformer looks as VTK data: it tells of its weights, which stay in their mapped files.
/// Their values are not in the data, since ParaView would read each of them to find its range.
///
/// One block, tensors: a vtkTable with a row per tensor and the columns Name, Type, Shape, File
/// (string) and Bytes (64-bit integer).
///
/// Field data: Format, Architecture, Model File, Model Type (what was given instead of the type in
/// config.json, or empty), Mask and Weight Processing (string); Layers, Heads, KeyHeads,
/// HeadDimension, EmbeddingDimension, VocabularySize and Positions (int; 0: no limit); Image Size
/// (int, a tuple of channels, height and width in pixels, 0 for text).
namespace AttentionAtlas
{

inline constexpr const char* ModelFileField = "Model File";
inline constexpr const char* ModelTypeField = "Model Type";
inline constexpr const char* ImageSizeField = "Image Size";

/// Replaces the content of `output` by a description of `model`, which was read from `path` as an
/// `architecture`.
ATTENTIONATLASDATA_EXPORT void ToDataSet(const atlas::Transformer& model,
  const std::filesystem::path& path, const std::string& architecture, vtkMultiBlockDataSet* output);

/// Maps the files of a model again. Throws atlas::ModelError if the input does not tell of any, and
/// as atlas::Transformer::Read.
ATTENTIONATLASDATA_EXPORT atlas::Transformer ToTransformer(vtkMultiBlockDataSet* input);

/// The folder of the model, where its tokenizer lies.
ATTENTIONATLASDATA_EXPORT std::filesystem::path ModelFolder(vtkMultiBlockDataSet* input);

}
