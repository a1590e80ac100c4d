#pragma once

#include "LargestProducts.h"
#include "TokenNames.h"

#include <cstdint>
#include <string>
#include <vector>

/// What the tables of tokens share.
namespace AttentionAtlas
{

class Task;

/// The tokens of the property Tokens, or Core's SampleTokens if there are none. Throws as
/// TokenNames::Find.
std::vector<std::int32_t> ChosenTokens(
  const atlas::OpenTransformer& model, const std::vector<std::string>& entries);

/// Settings of a filter's search for the largest entries: on its threads, with its progress.
atlas::LargestProductOptions LargestOptions(const Task& task, int top);

}
