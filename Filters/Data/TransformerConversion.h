#pragma once

#include "AttentionAtlasDataModule.h"
#include "OpenTransformer.h"

#include <filesystem>
#include <memory>
#include <string>

class vtkMultiBlockDataSet;

/// The VTK form of a transformer: a description with the path of its files. The weights are not
/// part of the data, since ParaView would read all of them to find their ranges; OpenTransformer.h
/// maps them.
///
/// One block, tensors: a vtkTable with one row per tensor and the columns Name, Type, Shape, File
/// (string) and Bytes (64-bit integer).
///
/// Field data: Format, Architecture, Model File, Model Type (the type that replaces the one in
/// config.json, or empty), Adapter (the folder of the one that was applied, or empty), Processing
/// (None, TransformerLens), Products (single, bf16), Mask and Weight Processing (string); Layers,
/// Heads, KeyHeads, HeadDimension, EmbeddingDimension, VocabularySize and Positions (int; 0: no
/// limit); Image Size (int, a tuple of channels, height and width in pixels, 0 for text).
namespace AttentionAtlas
{

inline constexpr const char* ModelFileField = "Model File";
inline constexpr const char* ModelTypeField = "Model Type";
inline constexpr const char* AdapterField = "Adapter";
inline constexpr const char* ProcessingField = "Processing";
inline constexpr const char* ImageSizeField = "Image Size";

/// Replaces the content of `output` by a description of `model`, which was read from `path` as an
/// `architecture`, and whose weights were processed or not; or which OpenTransformer keeps in
/// memory under that path.
ATTENTIONATLASDATA_EXPORT void ToDataSet(const atlas::Transformer& model,
  const std::filesystem::path& path, const std::string& architecture, bool processes,
  vtkMultiBlockDataSet* output);

/// The model that the input describes, even if the data was copied or sent elsewhere: the one that
/// the reader holds, if that is in this process. Throws atlas::OptionError for null or empty data,
/// atlas::ModelError for other data, and as OpenTransformer::Open does.
ATTENTIONATLASDATA_EXPORT std::shared_ptr<const atlas::OpenTransformer> ToTransformer(
  vtkMultiBlockDataSet* input);

}
