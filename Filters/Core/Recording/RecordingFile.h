#pragma once

#include "ArrayFile.h"
#include "Recording.h"
#include "RecordingReadOptions.h"
#include "Safetensors.h"

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace atlas
{

struct RecordingContent
{
  Recording recording;
  std::vector<std::string> warnings; ///< one per kind of array that is not used, and why
};

/// Reads a recording from safetensors, .npy or .npz (told apart by content). Arrays that a
/// recording needs in the order in which they lie in the file are mapped, others are copied once.
///
/// Native names, one array per quantity and head, N rows of tokens of all S sequences:
/// sequence_offsets [S + 1]; tokens.position, tokens.id, tokens.segment, tokens.row, tokens.column
/// [N]; layers.{l}.heads.{h}.query, .key [N, d_head], .value [N, d_head], .output [N, d_model],
/// .weights.{s}, .scores.{s} [length, length] for sequence s; residual.{l} [N, d_model]; logits
/// [N, vocabulary]. A head without key or value has that of the last head before it that has one.
/// Metadata: format (RecordingFormat), version, architecture, mask (causal, bidirectional), rotated
/// (true, false), processing (unknown, unprocessed, processed), layer_count, head_count,
/// score_scales (JSON: layer -> scale, of the recorded layers), alibi_slopes (JSON array), tokens
/// (JSON array of strings).
///
/// TransformerLens, old names (HookedTransformer), with a batch axis B or without one:
/// blocks.{l}.attn.hook_q [B,T,H,d_head], hook_k, hook_v (grouped: [B,T,H_kv,d_head]), hook_rot_q
/// and hook_rot_k, which are preferred; hook_result [B,T,H,d_model]; hook_pattern, hook_attn_scores
/// [B,H,T,T]; blocks.{l}.hook_resid_pre, hook_resid_post, BERT's hook_normalized_resid_post
/// [B,T,d]. New names (TransformerBridge): blocks.{l}.attn.q.hook_out, k, v, attn.qkv.q_hook_out,
/// ..., as above or flat [B,T,H*d_head]; blocks.{l}.hook_in, hook_out; unembed.hook_out [B,T,V].
/// The last residual is the one before the final normalization, unlike in recordings of ours.
///
/// Heads first, as Hugging Face's code has them: layer.{l}.query, .key, .value [B,H,T,d_head],
/// .head_output [B,H,T,d_model], .attention, .scores [B,H,T,T]; hidden.{l} [B,T,d]; logits.
///
/// Attention alone: attention, scores [L,H,T,T] or [L,B,H,T,T]; the array of a .npy file is that,
/// weights if it holds numbers from 0 to 1, else scores. Where there are queries and keys,
/// attention is kept only if they do not give it (position biases, soft caps, another scale).
///
/// Token ids: token_ids, tokens, hook_tokens or input_ids [B,T] or [T]; token_type_ids;
/// attention_mask, where 0 is padding, which is left out. Token strings: metadata `tokens` (JSON),
/// or a file.
///
/// Throws FileError, FormatError, or ModelError (arrays do not fit together, or hold what is not a
/// finite number; scores may be -infinity); messages start with the file and name the array.
RecordingContent ReadRecording(
  const std::filesystem::path& path, const RecordingReadOptions& options = {});

/// The same from arrays; `tokensFile` is read if it is given, and nothing else from disk.
RecordingContent MakeRecording(
  const ArrayFile& arrays, const RecordingReadOptions& options, const std::string& source);

/// Token strings of some sequences: from a JSON file (ending in .json), an array of strings or an
/// array of such arrays, or an object with such an array as `tokens`; or from a text file, one
/// token per line. Throws FileError or FormatError.
std::vector<std::string> ReadTokenTexts(const std::filesystem::path& path);

/// Writes a safetensors file in native naming, which ReadRecording reads back to the byte. The file
/// appears whole or not at all. Throws ModelError for a recording that does not fit together, and
/// FileError, also if a file that the recording is mapped from was truncated or changed. Returns
/// false, with nothing written, if `progress` has returned false.
bool WriteRecording(const std::filesystem::path& path, const Recording& recording,
  const WriteProgress& progress = {});

/// The same bytes to a stream; whether it took them all is for the caller to ask.
void WriteRecording(std::ostream& stream, const Recording& recording);

}
