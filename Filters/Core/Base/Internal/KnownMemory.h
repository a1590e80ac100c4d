#pragma once

// Internal to Core: the memory that RequireMemory found free.

#include <chrono>

namespace atlas
{

/// What was free a moment ago, less what was granted since. To read it again takes half a
/// millisecond, longer than many filters take after a change of a slider.
class KnownMemory
{
public:
  using Clock = std::chrono::steady_clock;

  /// Whether so little is asked for that what is known is enough to grant it: up to a sixteenth of
  /// what is left, within a second. A process that was forked may be in another control group.
  bool Grant(double bytes, int process, Clock::time_point now)
  {
    constexpr double share = 1. / 16;
    constexpr std::chrono::seconds moment(1);
    if (process != this->Process || now - this->Time > moment || bytes > share * this->Free)
    {
      return false;
    }
    this->Free -= bytes;
    return true;
  }

  void Set(double free, int process, Clock::time_point now)
  {
    this->Free = free;
    this->Process = process;
    this->Time = now;
  }

private:
  double Free = 0; ///< bytes
  int Process = 0; ///< that asked; 0 if none has
  Clock::time_point Time;
};

}
