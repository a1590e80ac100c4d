#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recorder/OpenTransformer.h"

#include <filesystem>
#include <memory>
#include <string>

class vtkMultiBlockDataSet;

/// The VTK form of a transformer: a description with the path of its files. The weights, of which
/// ParaView would read all to find their ranges, are mapped by OpenTransformer.h.
///
/// One block, tensors: a vtkTable with one row per tensor and the columns Name, Type, Shape, File
/// (string) and Bytes (64-bit integer).
///
/// Field data: Format, Architecture, Model File, Model Type (the type that replaces the one in
/// config.json, or empty), Adapter (the folder of the one that was applied, or empty), Processing
/// (None, TransformerLens), Products (single, bf16), Mask and Weight Processing (string); Layers,
/// Heads, KeyHeads, HeadDimension, EmbeddingDimension, VocabularySize, Positions (int; 0: no
/// limit) and Processable (int; 1: TransformerLens' processing of weights is possible); Image Size
/// (int, a tuple of channels, height and width in pixels, 0 for text).
namespace AttentionAtlas
{

inline constexpr const char* ModelFileField = "Model File";
inline constexpr const char* ModelTypeField = "Model Type";
inline constexpr const char* AdapterField = "Adapter";
inline constexpr const char* ProcessingField = "Processing";
inline constexpr const char* ImageSizeField = "Image Size";

/// Replaces the content of `output` by a description of `model`, which was read from `path` as an
/// `architecture`, or which OpenTransformer keeps in memory under that path.
ATTENTIONATLASDATA_EXPORT void ToDataSet(const atlas::Transformer& model,
  const std::filesystem::path& path, const std::string& architecture, bool processes,
  vtkMultiBlockDataSet* output);

/// The model that the input describes, even if the data was copied or sent elsewhere: the one that
/// the reader holds, if that is in this process. Throws atlas::OptionError for null or empty data,
/// atlas::ModelError for other data, and as OpenTransformer::Open does.
ATTENTIONATLASDATA_EXPORT std::shared_ptr<const atlas::OpenTransformer> ToTransformer(
  vtkMultiBlockDataSet* input);

}
