#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace atlas
{

/// A hash of values, to find out whether they changed. It differs between two contents but for a
/// chance of about 2^-64, and is no protection against intent. Takes the time of reading them.
std::uint64_t HashValues(const void* values, std::size_t bytes, std::uint64_t seed = 0);

/// A hash as 16 hexadecimal digits, for files.
std::string HashText(std::uint64_t hash);

}
