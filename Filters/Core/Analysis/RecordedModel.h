#pragma once

#include "Recording.h"
#include "Transformer.h"

namespace atlas
{

/// Throws OptionError unless the recording can be from the model: layers, heads, their dimension,
/// and token ids within the vocabulary. The first query of the first layer whose input is known,
/// from the residual stream or in layer 0 from the token ids, must also be that of the model,
/// within 1 % of the largest component. The message begins with "`what` needs the model that was
/// recorded", and names what was expected and found.
void RequireSameModel(
  const Recording& recording, const Transformer& model, const std::string& what);

}
