#pragma once

// Internal to Core.

#include <memory>
#include <optional>
#include <string>

namespace atlas
{

/// A regular expression over the names of modules, as the settings of adapters have them. They are
/// Python's; PCRE2, which runs them, knows the same syntax. A match takes a bounded number of
/// steps.
class ModulePattern
{
public:
  /// Throws ModelError for an invalid expression; the message begins with `source`.
  ModulePattern(const std::string& expression, std::string source);

  /// What the group `idx` of the expression matched if the expression matches all of `module`, and
  /// empty if it has no such group; std::nullopt if it does not match. Throws ModelError for an
  /// expression that takes too many steps.
  std::optional<std::string> Match(const std::string& module) const;

private:
  std::shared_ptr<const void> Code;
  std::string Source;
};

}
