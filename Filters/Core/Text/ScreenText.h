#pragma once

#include <string>
#include <string_view>

namespace atlas
{

/// A text as a renderer has to draw it that puts one letter after another from left to right: in
/// the order of the screen (Unicode's bidirectional algorithm, UAX 9), with the joined forms of
/// Arabic letters and mirrored brackets. Text without right-to-left letters is returned unchanged.
/// The direction of the whole is that of its first letter. Scripts whose letters change places when
/// they join, such as Devanagari, are not shaped. `text` must be UTF-8.
std::string ScreenText(std::string_view text);

/// How a token is written on the screen: TokenLabel (leading spaces as middle dots, control
/// characters as escape sequences, never nothing) as ScreenText. Bytes that are no UTF-8 are
/// replaced by U+FFFD.
std::string ScreenLabel(std::string_view token);

}
