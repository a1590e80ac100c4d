#pragma once

namespace atlas
{

inline constexpr double Pi = 3.14159265358979323846;

}
