#pragma once

#include <cstdint>
#include <string>

namespace atlas
{

/// A number of at least 0 in English words: "three", "sixty-four", "one hundred and five", "one
/// thousand, two hundred and thirty-four". Groups of three digits up to billions have names.
std::string InWords(std::int64_t number);

/// Minutes and seconds, rounded down: "01:05". There may be more than 99 minutes.
std::string MinutesText(double seconds);

/// Hours, minutes and seconds, rounded down: "0:01:05", or from a day on "1 day, 0:00:10".
std::string DurationText(double seconds);

}
