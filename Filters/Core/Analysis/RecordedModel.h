#pragma once

#include "Recording/Recording.h"
#include "Weights/Transformer.h"

namespace atlas
{

/// Throws OptionError unless the recording can be from the model: layers, heads, their dimension,
/// token ids within the vocabulary, and the precision of products. The first query of the first
/// layer whose input is known, from the residual stream or in layer 0 from the token ids, must also
/// be that of the model, within 1 % of the largest component. The message begins with "`what` needs
/// the model that was recorded", and names what was expected and found.
void RequireSameModel(
  const Recording& recording, const Transformer& model, const std::string& what);

/// The same for the part of a recording with a kind of attention: of parts other than Decoder,
/// whose model has an encoder, layers, heads, their dimension and the products are compared.
void RequireSamePart(
  const Recording& part, const Transformer& model, AttentionKind kind, const std::string& what);

/// Throws OptionError if the weights of one are processed as TransformerLens does and those of the
/// other are not, if both are known. Queries are the same then, but biases of values belong to
/// heads in one and to the output bias in the other, and MLPs write other vectors. The message
/// begins with
/// "`what` needs the weights that were recorded".
void RequireSameProcessing(
  const Recording& recording, const Transformer& model, const std::string& what);

}
