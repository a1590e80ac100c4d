#pragma once

#include "Base/Progress.h"
#include "Files/ArrayFile.h"
#include "Files/Safetensors.h"
#include "Recording.h"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace atlas
{

/// The version of files with pictures among words, windows of patches or an encoder of images,
/// beside the versions of Recording.h.
inline constexpr const char* FourthRecordingVersion = "4";

/// Likewise, of files whose layers attend in chunks.
inline constexpr const char* FifthRecordingVersion = "5";

/// That of files whose layers have biases of their own, of patches, or vectors of distances.
inline constexpr const char* SixthRecordingVersion = "6";

/// That of files whose tokens see those of their picture that follow, too.
inline constexpr const char* SeventhRecordingVersion = "7";

/// That of files whose biases of ALiBi are rounded.
inline constexpr const char* EighthRecordingVersion = "8";

/// Information that a recording made by other software may lack. It takes precedence over the
/// metadata of the file.
struct RecordingReadOptions
{
  /// File of token strings, see ReadTokenTexts. If empty, NAME.tokens.json or NAME.tokens.txt next
  /// to the file NAME.* is read, if there is one.
  std::filesystem::path tokensFile;
  std::string architecture; ///< default: metadata `architecture` or `model`
  /// Default: metadata `mask`; else what stored attention shows; else bidirectional if there are
  /// arrays that only BERT has; else causal.
  std::optional<AttentionMask> mask;
  std::optional<double> scoreScale;           ///< default: metadata `score_scale`, else 1 /
                                              ///< sqrt(d_head)
  std::optional<WeightProcessing> processing; ///< default: metadata `processing`, else unknown
  /// Number of heads, needed only for flat arrays in which heads are side by side. 0: metadata
  /// `n_heads`, if present.
  std::int64_t headCount = 0;
  int threads = 0; ///< as ThreadCount takes them, to compare stored attention with queries and keys
};

struct RecordingContent
{
  Recording recording;
  std::vector<std::string> warnings; ///< one per kind of unused array, with the reason
};

/// Reads a recording from a safetensors, .npy, .npz or PyTorch file, or from shards by their index
/// (ArrayFile.h). Arrays that are already stored in the order a recording needs are mapped; others
/// are copied once.
///
/// Native names, one array per quantity and head, with N rows for the tokens of all S sequences:
/// sequence_offsets [S + 1]; tokens.position, tokens.id, tokens.segment, tokens.row, tokens.column
/// [N], tokens.color [N,3]; pictures [S, height, width, 3] (U8); layers.{l}.heads.{h}.query, .key
/// [N, d_head], .value [N, d_head], .output [N, d_model], .value_norm [N, 1], .weights.{s},
/// .scores.{s} [length, length] for sequence s; layers.{l}.experts, .expert_weights [N, k], the
/// experts that the layer chose for each token (floats or integers) and their factors;
/// .expert_scores [N, k] and .expert_bias [1, experts] of routers with a bias (RecordedRouting);
/// residual.{l} [N, d_model]; logits [N, vocabulary].
/// A head without a key or value array shares that of the nearest head before it that has one.
/// Metadata: format (RecordingFormat), version, architecture, model_name (optional), mask (causal,
/// bidirectional), rotated (true, false), processing (unknown, unprocessed, processed), products
/// (single, bf16; only if not single), layer_count, head_count, score_scales (JSON: layer -> scale,
/// of the recorded layers), layers_without_heads (JSON array; only of models with layers that have
/// no attention, which are not among the recorded ones), alibi_slopes (JSON array), alibi_unit
/// (a number, see AlibiBias; then the version is 8), tokens (JSON array of strings), interventions
/// (text; only of runs that were changed); pixels (pillow, torchvision; only of pictures read from
/// files); of layers with routing expert_counts (JSON: layer -> its number of experts); of pictures
/// whose pixels are not in the file picture_size (JSON, [height, width]), picture_sources (JSON,
/// [file, hash] of each), picture_processing (JSON, as a preprocessor_config.json).
///
/// Of layers that have them also score_caps (JSON: layer -> cap), windows (JSON: layer -> keys;
/// without a mask on both sides, a query sees its own and keys - 1 on each) and sinks (JSON: layer
/// -> array with a logit per head). A file with one of these has version 2, so that programs that
/// do not know them refuse it; all others have version 1. Both are read.
///
/// Of a transformer with an encoder and a decoder, these are the arrays and metadata of the
/// decoder. Those of the parts `encoder` and `cross` have the same names after "encoder." and
/// "cross."; the latter has source_lengths [S], the number of tokens of the source with which each
/// sequence begins. Biases of distances (T5) are distance_bias [heads, 2 D + 1], in the parts that
/// have them. A file with one of these has version 3.
///
/// Of a model of pictures among words, tokens.picture [N] has the picture of each token, from 0,
/// and -1 for words, whose tokens.row and tokens.column are -1, too; the part `encoder` is that of
/// the encoder of images. The metadata picture_contents (JSON) have the numbers of each picture:
/// [picture or video, first frame, frames, 1 if it is all of a picture whose tiles are there, too,
/// height, width in pixels]. Its pixels follow those of the one before in pictures [pixels, 3]; or
/// picture_sources has its file. Layers of an encoder with windows of patches have patch_windows
/// (JSON: layer -> patches on a side). A file with one of these has version 4.
///
/// Layers with a causal mask within chunks (Llama 4) have chunks (JSON: layer -> tokens). A file
/// with these has version 5.
///
/// Where tokens of pictures see those of the same picture that follow under a causal mask (Gemma
/// 3), tokens.key_end [N] has how many of the first tokens of its sequence each sees. A file with
/// these has version 7.
///
/// TransformerLens, old names (HookedTransformer), with or without a batch axis B:
/// blocks.{l}.attn.hook_q [B,T,H,d_head], hook_k, hook_v (grouped: [B,T,H_kv,d_head]), hook_rot_q
/// and hook_rot_k, which are preferred; hook_result [B,T,H,d_model]; hook_pattern, hook_attn_scores
/// [B,H,T,T]; blocks.{l}.hook_resid_pre, hook_resid_post, BERT's hook_normalized_resid_post
/// [B,T,d]. New names (TransformerBridge): blocks.{l}.attn.q.hook_out, k, v, attn.qkv.q_hook_out,
/// ..., as above or flat [B,T,H*d_head]; blocks.{l}.hook_in, hook_out; unembed.hook_out [B,T,V].
/// The last residual is the one before the final normalization, unlike in our own recordings.
///
/// Heads first, as in Hugging Face code: layer.{l}.query, .key, .value [B,H,T,d_head], .head_output
/// [B,H,T,d_model], .attention, .scores [B,H,T,T]; hidden.{l} [B,T,d]; logits.
///
/// Attention only: attention, scores [L,H,T,T] or [L,B,H,T,T]. The array of a .npy file is read as
/// attention weights if all its values are from 0 to 1, otherwise as scores. If a file also has
/// queries and keys, attention is kept only if it cannot be recomputed from them (position biases,
/// soft caps, another scale).
///
/// Token ids: token_ids, tokens, hook_tokens or input_ids [B,T] or [T]; token_type_ids;
/// attention_mask, [B,T] or [T], where 0 marks padding at the ends of sequences, which is dropped;
/// also in files with native names, [N] or [S, N / S]. Token strings: metadata `tokens` (JSON), or
/// a file. Pictures among words: token_picture, token_row, token_column [B,T] or [T], the picture,
/// row and column of each token of a picture, from 0, and -1 for words.
///
/// Metadata `tokens` and `processing` of foreign files that say something else are not used, which
/// gives a warning.
///
/// Throws FileError, FormatError, or ModelError (arrays do not match, or a value is not finite;
/// scores may be -infinity). Messages start with the file and name the array.
RecordingContent ReadRecording(
  const std::filesystem::path& path, const RecordingReadOptions& options = {});

/// Same, from arrays in memory. Nothing is read from disk except `tokensFile`, if given.
RecordingContent MakeRecording(
  const ArrayFile& arrays, const RecordingReadOptions& options, const std::string& source);

/// Reads token strings from a JSON file (ending in .json) or a text file. JSON contains an array of
/// strings, an array of such arrays, or an object with one of these as `tokens`. A text file has
/// one token per line. Throws FileError or FormatError.
std::vector<std::string> ReadTokenTexts(const std::filesystem::path& path);

/// Writes a safetensors file with native names, which ReadRecording reads back byte for byte. The
/// file is written completely or not at all. Throws ModelError if the recording is inconsistent,
/// and FileError if writing fails or a file that the recording is mapped from was truncated or
/// changed.
void WriteRecording(
  const std::filesystem::path& path, const Recording& recording, const Progress& progress = {});

/// Writes the same bytes to a stream. The caller checks the stream for errors.
void WriteRecording(std::ostream& stream, const Recording& recording);

}
