#pragma once

#include <string>
#include <string_view>

namespace atlas
{

/// What a file is by its content, for messages of readers that expected another one: "a PNG
/// picture", "a web page", "a text". Empty if that is not known.
std::string DescribeContent(std::string_view content);

/// Why content is not JSON: what it is, or else what the parser says.
std::string WhyNoJson(std::string_view content, const std::string& parser);

}
