#pragma once

// Internal to Core.

#include <functional>
#include <string>
#include <string_view>

namespace atlas
{

/// The value of a name in an expression.
using RowVariables = std::function<double(const std::string& name)>;

/// The value of an expression of a row, see ArchitectureRows: numbers, names, true and false; the
/// operators of C, from least to most binding `a ? b : c`, `||`, `&&`, `== != < <= > >=`, `+ -`,
/// `* / %`, `-` and `!` before an operand; parentheses; and the functions sqrt(x), floor(x),
/// min(a, b) and max(a, b). A truth value is 1 or 0, and what is not 0 is true. Names of branches
/// that do not count are not asked for. Throws ModelError, which names the expression.
double EvaluateExpression(std::string_view text, const RowVariables& variables);

}
