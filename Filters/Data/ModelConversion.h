#pragma once

#include "AttentionAtlasDataModule.h"
#include "AttentionOnlyModel.h"
#include "DataFormat.h"

class vtkMultiBlockDataSet;

/// How an attention-only model looks as VTK data: one block per tensor, named as in the native file
/// format, holding a vtkTable with a row per first index and a single column of the same name with
/// a component per second index (float or double; 64-bit integers for next_token).
///
/// Field data of the whole: Format (string), VocabularySize, Heads, HeadDimension and
/// EmbeddingDimension (int), and a string array "File Metadata KEY" for each entry of the file's
/// metadata.
namespace AttentionAtlas
{

/// Names of the field arrays beside FormatField, which every output that is computed from a model
/// also carries.
inline constexpr const char* VocabularySizeField = "VocabularySize";
inline constexpr const char* HeadsField = "Heads";
inline constexpr const char* HeadDimensionField = "HeadDimension";
inline constexpr const char* EmbeddingDimensionField = "EmbeddingDimension";
/// A name that begins with "Metadata" could not be sent from one rank to another: VTK's legacy
/// format, by which data travel, takes it for its own keyword.
inline constexpr const char* MetadataFieldPrefix = "File Metadata ";

/// Replaces the content of `output` by `model`.
ATTENTIONATLASDATA_EXPORT void ToDataSet(
  const atlas::AttentionOnlyModel& model, vtkMultiBlockDataSet* output);

/// Reads the model back from its blocks, which may lack the field array Format. Throws
/// atlas::ModelError if they have another one or do not make up a model.
ATTENTIONATLASDATA_EXPORT atlas::AttentionOnlyModel ToModel(vtkMultiBlockDataSet* input);

}
