#pragma once

#include "HeadLayouts.h"

#include <vector>

/// Layouts as bytes that ranks exchange.
namespace AttentionAtlas
{

std::vector<char> ToBytes(const std::vector<atlas::HeadLayout>& layouts);

/// Appends the layouts that these bytes were made from.
void FromBytes(const std::vector<char>& bytes, std::vector<atlas::HeadLayout>& layouts);

}
