#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recording/RecordedAttention.h"

#include <cstdint>

class vtkDataObject;
class vtkMultiBlockDataSet;

/// How a recording looks as VTK data. Blocks, named:
///
/// - tokens: a table with a row per token of all sequences: Sequence (int), Position (int, in its
///   sequence), TokenId (64-bit integer), Token (string), Segment (int); of images Image, Position,
///   Row, Column (int; -1 for a class token), Patch Color (float [3], mean red, green and blue, 0
///   to 1; -1 for a class token); of pictures among words Sequence, Row, Column and Picture Number
///   (int; the token's picture, -1 for a word). Columns that are not known are absent.
/// - layer l: tables with a row per token: head h with the columns Query, Key, Value [d_head],
///   Output [d_model] and Value Norm, as far as they were recorded; residual with Residual
///   [d_model], the stream before layer l, or behind the last for l = L; routing with Expert and
///   Expert Weight [experts per token], the numbers of the experts that the layer chose and their
///   factors, and of routers with a bias Expert Score, that of each before it is added, with field
///   data Expert Bias [experts] of the block layer l. Attention that a file held is in blocks head
///   h weights and head h scores: of each sequence s a table with a row per query and one column,
///   Weights s or Scores s [keys].
/// - pictures: a table with the column Picture (unsigned char [3]), a row per pixel of all images,
///   those of the top row first; only if the recording holds the pixels.
/// - logits: a table with the column Logits [vocabulary].
/// - encoder and cross, of a transformer with an encoder and a decoder: blocks that look as this
///   whole does, with the parts of the recording (Recording.h). Of a model of pictures among words
///   encoder alone, with the attention in its encoder of images.
///
/// Field data of the whole: Format, Architecture, Mask (causal, bidirectional) and Weight
/// Processing (unknown, unprocessed, processed) (string); Layers, Heads, HeadDimension and Rotated
/// (0, 1) (int), Layers Without Heads (int, only where there are some); ALiBi Unit (double, where
/// they are rounded); ALiBi Slopes (double, per head, only where there are some); Sequence Offsets
/// (64-bit integers, the first row of each sequence, then the number of rows); and tuples (layer,
/// value) (double): Score Scale, and of those layers that have them Score Cap, Window (keys), Patch
/// Window (patches on a side), Chunk (tokens), Sinks (a logit per head) and Experts (their number).
/// Of runs that were changed Interventions (string, in words); of pictures that were read from
/// files Pixels (string, pillow or torchvision); of runs whose products are not those of floats
/// Products (string, bf16). Of images Patch Grid (int, the rows and columns of patches of the
/// largest) and, with pictures, Picture Size (int, height and width in pixels); if the pixels are
/// not there, Picture File, Picture Hash (string, per image) and Picture Processing (string, see
/// RecordedPictures in Recording.h). Of pictures among words, instead of Patch Grid and Picture
/// Size, Picture Contents (int, a tuple per picture: the picture or video, its first frame, the
/// number of frames, 1 if it is all of a picture whose tiles are there, too, height and width in
/// pixels). Of cross attention Source Lengths (64-bit integers, the number of tokens of the source
/// with which each sequence begins); of T5 Distance Bias (float [2 D + 1], a tuple per head, the
/// bias for key - query = -D
/// ... D).
namespace AttentionAtlas
{

/// Names of the field arrays beside those of ModelConversion.h.
inline constexpr const char* ArchitectureField = "Architecture";
inline constexpr const char* MaskField = "Mask";
inline constexpr const char* WeightProcessingField = "Weight Processing";
inline constexpr const char* ProductsField = "Products"; ///< of a recording: only if not single
inline constexpr const char* InterventionsField = "Interventions"; ///< only of changed runs
inline constexpr const char* PixelsField = "Pixels";               ///< only of pictures from files
inline constexpr const char* LayersField = "Layers";
inline constexpr const char* LayersWithoutHeadsField = "Layers Without Heads";
inline constexpr const char* RotatedField = "Rotated";
inline constexpr const char* ScoreScaleField = "Score Scale";
inline constexpr const char* ScoreCapField = "Score Cap"; ///< this and both below: only where
inline constexpr const char* WindowField = "Window";      ///< a layer has one
inline constexpr const char* SinksField = "Sinks";
inline constexpr const char* PatchWindowField = "Patch Window"; ///< likewise
inline constexpr const char* ChunkField = "Chunk";              ///< likewise
inline constexpr const char* ExpertsField = "Experts";          ///< only of layers with routing
inline constexpr const char* AlibiSlopesField = "ALiBi Slopes";
inline constexpr const char* AlibiUnitField = "ALiBi Unit";
inline constexpr const char* AttentionKindField = "Attention Kind"; ///< of outputs, see FindPartOf
inline constexpr const char* DistanceBiasField = "Distance Bias";   ///< only of T5
inline constexpr const char* SourceLengthsField = "Source Lengths"; ///< only of cross attention
inline constexpr const char* SequenceOffsetsField = "Sequence Offsets";
/// The same at the last time step, for a recording whose sequences grow over time. Optional.
inline constexpr const char* LastSequenceOffsetsField = "Last Sequence Offsets";
inline constexpr const char* PatchGridField = "Patch Grid";
inline constexpr const char* PictureSizeField = "Picture Size";
inline constexpr const char* PictureContentsField = "Picture Contents"; ///< only among words
inline constexpr const char* PictureFileField = "Picture File";
inline constexpr const char* PictureHashField = "Picture Hash";
inline constexpr const char* PictureProcessingField = "Picture Processing";

/// Tells how long the sequences of a recording over time become: their offsets at the last step,
/// and those of its part with cross attention.
ATTENTIONATLASDATA_EXPORT void AddLastOffsets(
  const std::vector<std::int64_t>& offsets, vtkMultiBlockDataSet* output);

/// Replaces the content of `output` by `recording`; they share the memory of matrices.
ATTENTIONATLASDATA_EXPORT void ToDataSet(
  const atlas::Recording& recording, vtkMultiBlockDataSet* output);

/// The blocks of the part of a recording with a kind of attention, `input` itself for Decoder.
/// Throws atlas::OptionError if there is none.
ATTENTIONATLASDATA_EXPORT vtkMultiBlockDataSet* FindPart(
  vtkMultiBlockDataSet* input, atlas::AttentionKind kind);

/// The part to whose tokens the indices of an output of a filter belong, by its field array
/// AttentionKindField. Throws as FindPart, and atlas::ModelError for a kind that there is not.
ATTENTIONATLASDATA_EXPORT vtkMultiBlockDataSet* FindPartOf(
  vtkDataObject* output, vtkMultiBlockDataSet* recording);

/// The recording of these blocks, whose memory it shares. Throws atlas::ModelError if they do not
/// make up a recording.
ATTENTIONATLASDATA_EXPORT atlas::Recording ToRecording(vtkMultiBlockDataSet* input);

/// The same for views of one head, at a cost that does not grow with the heads of other layers: of
/// the recording, tokens and sequences, the numbers of the layers, and head `head` (or
/// atlas::AllHeads) of the layer with number `layer`, as atlas::CheckHead accepts it.
ATTENTIONATLASDATA_EXPORT atlas::Recording ToRecording(
  vtkMultiBlockDataSet* input, std::int64_t layer, std::int64_t head);

/// The same, with all that atlas::EvaluateAttention reads for a quantity: all layers for Rollout.
ATTENTIONATLASDATA_EXPORT atlas::Recording ToRecording(vtkMultiBlockDataSet* input,
  std::int64_t layer, std::int64_t head, atlas::AttentionQuantity quantity);

}
