#include "RowExpression.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/NamedValues.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

namespace atlas
{
namespace
{

bool BeginsWord(char c)
{
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
}

bool IsNumeral(char c)
{
  return '0' <= c && c <= '9';
}

/// An operator of two operands. Of a list, one that begins another comes behind it.
struct Binary
{
  std::string_view sign;
  double (*apply)(double, double);
};
using Level = std::vector<Binary>;

/// From least to most binding.
const std::array<Level, 5>& Levels()
{
  static const std::array<Level, 5> levels = { {
    { { "||", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; } } },
    { { "&&", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; } } },
    { { "==", [](double a, double b) { return a == b ? 1.0 : 0.0; } },
      { "!=", [](double a, double b) { return a != b ? 1.0 : 0.0; } },
      { "<=", [](double a, double b) { return a <= b ? 1.0 : 0.0; } },
      { ">=", [](double a, double b) { return a >= b ? 1.0 : 0.0; } },
      { "<", [](double a, double b) { return a < b ? 1.0 : 0.0; } },
      { ">", [](double a, double b) { return a > b ? 1.0 : 0.0; } } },
    { { "+", [](double a, double b) { return a + b; } },
      { "-", [](double a, double b) { return a - b; } } },
    { { "*", [](double a, double b) { return a * b; } },
      { "/", [](double a, double b) { return a / b; } },
      { "%", [](double a, double b) { return std::fmod(a, b); } } },
  } };
  return levels;
}

struct Function
{
  std::size_t arguments;
  double (*apply)(const double*);
};
constexpr std::array<Named<Function>, 4> Functions = { {
  { "floor", { 1, [](const double* x) { return std::floor(x[0]); } } },
  { "max", { 2, [](const double* x) { return std::max(x[0], x[1]); } } },
  { "min", { 2, [](const double* x) { return std::min(x[0], x[1]); } } },
  { "sqrt", { 1, [](const double* x) { return std::sqrt(x[0]); } } },
} };

class Parser
{
public:
  Parser(std::string_view text, const RowVariables& variables)
    : Text(text)
    , Variables(variables)
  {
  }

  double Evaluate()
  {
    constexpr std::size_t longest = 1000;
    ThrowIf<ModelError>(this->Text.size() > longest, "the expression '", this->Text.substr(0, 80),
      "...': expected at most ", longest, " characters, found ", this->Text.size(), ".");
    const double value = this->Conditional(true);
    this->Expect(this->Peek() == '\0', "its end");
    return value;
  }

private:
  std::string_view Text;
  const RowVariables& Variables;
  std::size_t At = 0;
  int Depth = 0;

  void Expect(bool holds, std::string_view what) const
  {
    ThrowIf<ModelError>(!holds, "the expression '", this->Text.substr(0, 200), "': expected ", what,
      " at character ", this->At + 1, ".");
  }

  /// The next character that is no space, or 0.
  char Peek()
  {
    while (this->At < this->Text.size() && this->Text[this->At] == ' ')
    {
      ++this->At;
    }
    return this->At < this->Text.size() ? this->Text[this->At] : '\0';
  }

  bool Take(std::string_view sign)
  {
    this->Peek();
    const bool found = this->Text.substr(this->At, sign.size()) == sign;
    this->At += found ? sign.size() : 0;
    return found;
  }

  /// `counts`: whether names are asked for.
  double Conditional(bool counts)
  {
    constexpr int deepest = 50;
    this->Expect(++this->Depth < deepest, "fewer parentheses");
    const double condition = this->Operation(0, counts);
    double value = condition;
    if (this->Take("?"))
    {
      const double first = this->Conditional(counts && condition != 0);
      this->Expect(this->Take(":"), "':'");
      const double second = this->Conditional(counts && condition == 0);
      value = condition != 0 ? first : second;
    }
    --this->Depth;
    return value;
  }

  double Operation(std::size_t level, bool counts)
  {
    if (level == Levels().size())
    {
      return this->Operand(counts);
    }
    double value = this->Operation(level + 1, counts);
    const Level& all = Levels()[level];
    while (true)
    {
      const auto found = std::find_if(
        all.begin(), all.end(), [this](const Binary& one) { return this->Take(one.sign); });
      if (found == all.end())
      {
        return value;
      }
      const bool isDecided = (level == 0 && value != 0) || (level == 1 && value == 0);
      value = found->apply(value, this->Operation(level + 1, counts && !isDecided));
    }
  }

  double Operand(bool counts)
  {
    if (this->Take("-"))
    {
      return -this->Operand(counts);
    }
    if (this->Take("!"))
    {
      return this->Operand(counts) == 0 ? 1 : 0;
    }
    if (this->Take("("))
    {
      const double value = this->Conditional(counts);
      this->Expect(this->Take(")"), "')'");
      return value;
    }
    const char next = this->Peek();
    this->Expect(BeginsWord(next) || IsNumeral(next), "a number, a name or '('");
    return IsNumeral(next) ? this->Number() : this->Word(counts);
  }

  double Number()
  {
    double value = 0;
    const char* begin = this->Text.data() + this->At;
    const auto read = std::from_chars(begin, this->Text.data() + this->Text.size(), value);
    this->At += static_cast<std::size_t>(read.ptr - begin);
    return value;
  }

  double Word(bool counts)
  {
    const std::size_t first = this->At;
    while (this->At < this->Text.size() &&
           (BeginsWord(this->Text[this->At]) || IsNumeral(this->Text[this->At])))
    {
      ++this->At;
    }
    const std::string name(this->Text.substr(first, this->At - first));
    if (name == "true" || name == "false")
    {
      return name == "true" ? 1 : 0;
    }
    if (!this->Take("("))
    {
      return counts ? this->Variables(name) : 1;
    }
    const Function function =
      ParseNamed<ModelError>(Functions, name, "a function of '" + std::string(this->Text) + "'");
    std::vector<double> arguments = { this->Conditional(counts) };
    while (this->Take(","))
    {
      arguments.push_back(this->Conditional(counts));
    }
    this->Expect(arguments.size() == function.arguments && this->Take(")"),
      "')' behind " + std::to_string(function.arguments) + " arguments");
    return function.apply(arguments.data());
  }
};

}

double EvaluateExpression(std::string_view text, const RowVariables& variables)
{
  return Parser(text, variables).Evaluate();
}

}
