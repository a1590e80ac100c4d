#pragma once

#include "AttentionAtlasDataModule.h"
#include "Transformer.h"

#include <filesystem>
#include <string>

class vtkMultiBlockDataSet;

/// The VTK form of a transformer: a description of its weights, which stay in their mapped files.
/// The values are not part of the data, since ParaView would read all of them to find their ranges.
///
/// One block, tensors: a vtkTable with one row per tensor and the columns Name, Type, Shape, File
/// (string) and Bytes (64-bit integer).
///
/// Field data: Format, Architecture, Model File, Model Type (the type that replaces the one in
/// config.json, or empty), Mask and Weight Processing (string); Layers, Heads, KeyHeads,
/// HeadDimension, EmbeddingDimension, VocabularySize and Positions (int; 0: no limit); Image Size
/// (int, a tuple of channels, height and width in pixels, 0 for text).
namespace AttentionAtlas
{

inline constexpr const char* TransformerFormat = "attention-atlas.transformer";
inline constexpr const char* ModelFileField = "Model File";
inline constexpr const char* ModelTypeField = "Model Type";
inline constexpr const char* ImageSizeField = "Image Size";

/// Replaces the content of `output` by a description of `model`, which was read from `path` as an
/// `architecture`.
ATTENTIONATLASDATA_EXPORT void ToDataSet(const atlas::Transformer& model,
  const std::filesystem::path& path, const std::string& architecture, vtkMultiBlockDataSet* output);

/// Maps the files of a model again. Throws atlas::ModelError if the input does not name a model
/// file, and as atlas::Transformer::Read does.
ATTENTIONATLASDATA_EXPORT atlas::Transformer ToTransformer(vtkMultiBlockDataSet* input);

/// The folder of the model, which contains its tokenizer.
ATTENTIONATLASDATA_EXPORT std::filesystem::path ModelFolder(vtkMultiBlockDataSet* input);

}
