#pragma once

#include "AttentionAtlasDataModule.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "DataFormat.h"

class vtkMultiBlockDataSet;

/// The VTK form of an attention-only model: one block per tensor, named as in the native file
/// format. A block is a vtkTable with one row per first index and a single column of the same name
/// with one component per second index (float or double; 64-bit integers for next_token).
///
/// Field data of the dataset: Format (string), VocabularySize, Heads, HeadDimension and
/// EmbeddingDimension (int), and a string array "File Metadata KEY" for each entry of the file's
/// metadata.
namespace AttentionAtlas
{

/// Names of the field arrays in addition to FormatField. Every output that is computed from a model
/// has them too.
inline constexpr const char* VocabularySizeField = "VocabularySize";
inline constexpr const char* HeadsField = "Heads";
inline constexpr const char* HeadDimensionField = "HeadDimension";
inline constexpr const char* EmbeddingDimensionField = "EmbeddingDimension";
/// A name that begins with "Metadata" could not be sent between ranks: VTK's legacy format, in
/// which data is sent, reserves that keyword.
inline constexpr const char* MetadataFieldPrefix = "File Metadata ";

/// Replaces the content of `output` by `model`.
ATTENTIONATLASDATA_EXPORT void ToDataSet(
  const atlas::AttentionOnlyModel& model, vtkMultiBlockDataSet* output);

/// Reads the model back from its blocks. The field array Format may be missing. Throws
/// atlas::ModelError if it has another value or the blocks are not a valid model.
ATTENTIONATLASDATA_EXPORT atlas::AttentionOnlyModel ToModel(vtkMultiBlockDataSet* input);

}
