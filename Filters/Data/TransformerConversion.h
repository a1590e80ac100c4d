#pragma once

#include "AttentionAtlasDataModule.h"
#include "OpenTransformer.h"

#include <filesystem>
#include <memory>
#include <string>

class vtkMultiBlockDataSet;

/// How a transformer looks as VTK data: a description that leads to its files. Weights are not in
/// the data, since ParaView would read each of them to find its range; OpenTransformer.h maps them.
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

/// The model that the input describes, wherever the data have been meanwhile: the one that the
/// reader holds, if that is in this process. Throws atlas::ModelError for other data, and as
/// OpenTransformer::Open.
ATTENTIONATLASDATA_EXPORT std::shared_ptr<const OpenTransformer> ToTransformer(
  vtkMultiBlockDataSet* input);

}
