#pragma once

#include "Recorder/EncodedPrompt.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace atlas
{
enum class PromptFormat;
}

/// What views that patch one prompt's run by another's share.
namespace AttentionAtlas
{

/// Encodes a prompt: a text or, of a model without a tokenizer, token ids. `name` is that of the
/// property, for messages.
atlas::EncodedPrompt EncodePatched(
  const atlas::OpenTransformer& model, const std::string& prompt, const std::string& name);

/// Likewise the one prompt that a property has.
atlas::EncodedPrompt ReadPatched(const atlas::OpenTransformer& model, const std::string& text,
  atlas::PromptFormat format, const char* name);

/// Likewise pairs of prompts, of which a property has those to run, Prompt, and one those to patch
/// from, PatchFrom, in order. Throws atlas::OptionError, with the tokens, for a pair with different
/// numbers of tokens, and for different numbers of prompts.
void ReadPairs(const atlas::OpenTransformer& model, const std::array<std::string, 2>& texts,
  atlas::PromptFormat format, atlas::TransformerInput& prompts, atlas::TransformerInput& sources);

/// The token that a user names by text or id, if any.
std::optional<std::int64_t> FindToken(
  const atlas::OpenTransformer& model, const std::string& text, const std::string& name);

}
