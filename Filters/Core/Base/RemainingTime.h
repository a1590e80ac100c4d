#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

namespace atlas
{

/// Tells how long something that began when this object was made will take, from how long its parts
/// have taken so far.
class RemainingTime
{
public:
  /// After the fraction `done`, such as "about 3 min left"; empty while nothing can be said, and of
  /// what takes less than a minute in all.
  std::string operator()(double done) const
  {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - this->Begin;
    return Describe(passed.count(), done);
  }

  /// What operator() returns when `seconds` have passed.
  static std::string Describe(double seconds, double done)
  {
    constexpr double leastSeconds = 1; // the first second is no measure of the rest
    constexpr double leastDone = 0.005;
    constexpr double minute = 60;
    constexpr double hour = 3600;
    if (seconds < leastSeconds || done < leastDone || done >= 1 || seconds / done < minute)
    {
      return {};
    }
    const double left = seconds / done - seconds;
    const auto about = [](double number, const char* unit)
    {
      return "about " + std::to_string(std::lround(std::max(number, 1.0))) + " " + unit + " left";
    };
    return left < 1.5 * minute ? about(left, "s")
           : left < 1.5 * hour ? about(left / minute, "min")
                               : about(left / hour, "h");
  }

private:
  std::chrono::steady_clock::time_point Begin = std::chrono::steady_clock::now();
};

}
