#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>

namespace atlas
{

/// Tells how long something will take, from how long its parts have taken since it was first asked.
/// Before that a part may be done, as of a training that goes on; and what falls back begins anew,
/// as recording after generating.
class RemainingTime
{
public:
  /// After the fraction `done`, such as "about 3 min left"; empty while nothing can be said, and of
  /// what takes less than a minute in all.
  std::string operator()(double done)
  {
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    return this->At(now.count(), done);
  }

  /// What operator() returns at a time in seconds.
  std::string At(double now, double done)
  {
    if (!this->First || done < this->Last)
    {
      this->First = Start{ now, done };
    }
    this->Last = done;
    const double rest = 1 - this->First->done;
    return Describe(now - this->First->time, rest > 0 ? (done - this->First->done) / rest : 1);
  }

  /// What is said when `seconds` have passed.
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
  struct Start
  {
    double time;
    double done;
  };
  std::optional<Start> First;
  double Last = 0;
};

}
