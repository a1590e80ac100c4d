#include "InstructionSets.h"

#include "Base/Error.h"
#include "Base/Joined.h"

#include <cstdint>
#include <cstdlib>

#include <hwy/highway.h>

namespace atlas
{
namespace
{

/// The Highway bit of an instruction set that this build and machine support, or of the best one if
/// the name is empty. Better ones have lower bits.
std::int64_t BitsOf(const std::string& name)
{
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  for (const std::int64_t target : targets)
  {
    if (name.empty() || name == hwy::TargetName(target))
    {
      return target;
    }
  }
  throw OptionError("Instruction set: expected one of this machine's ",
    Joined(targets, hwy::TargetName), ", found '", name, "'.");
}

std::int64_t& Chosen()
{
  static std::int64_t chosen = []
  {
    const char* name = std::getenv("ATLAS_TARGET");
    const std::int64_t bits = BitsOf(name ? name : "");
    hwy::GetChosenTarget().Update(bits);
    return bits;
  }();
  return chosen;
}

}

std::vector<std::string> SupportedTargets()
{
  std::vector<std::string> names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
  {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

std::string CurrentTarget()
{
  return hwy::TargetName(Chosen());
}

void UseTarget(const std::string& name)
{
  const std::int64_t bits = BitsOf(name);
  Chosen() = bits;
  hwy::GetChosenTarget().Update(bits);
}

void InitializeTarget()
{
  Chosen();
}

}
