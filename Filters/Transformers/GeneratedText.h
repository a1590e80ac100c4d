#pragma once

#include "AttentionAtlasTransformersModule.h"
#include "GenerateTokens.h"
#include "OpenTransformer.h"
#include "RecorderInput.h"

#include <memory>
#include <vector>

/// How vtkTransformerRecorder lets a model go on with its sequences.
namespace AttentionAtlas
{

/// The sequences with the tokens that a model added to them last, so that a time step of the same
/// text runs nothing.
class ATTENTIONATLASTRANSFORMERS_EXPORT GeneratedText
{
public:
  /// Adds tokens and their labels to the sequences of `input`. Returns false if the progress of
  /// `options` asked to stop. Throws as atlas::GenerateTokens does.
  bool Extend(const std::shared_ptr<const OpenTransformer>& model,
    const atlas::GenerationOptions& options, RecorderInput& input);

private:
  std::weak_ptr<const OpenTransformer> Model;
  atlas::TransformerInput Input;
  atlas::GenerationOptions Options;
  std::vector<std::vector<std::int64_t>> Tokens;

  bool IsCurrent(const std::shared_ptr<const OpenTransformer>& model,
    const atlas::GenerationOptions& options, const atlas::TransformerInput& input) const;
};

}
