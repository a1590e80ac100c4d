#pragma once

#include "Base/Progress.h"

#include <chrono>
#include <functional>
#include <string>

namespace atlas::programs
{

/// How far a command is, on standard error: a bar on a terminal, which goes in the end; otherwise a
/// line every few seconds.
class ProgressBar
{
public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows the fraction done, 0 to 1, unless it was shown a moment ago. `text` is called if it is
  /// shown, and comes last.
  void Show(double done, const std::function<std::string()>& text = {});

  /// Reports to this, which must outlive it, and stops what it reports on after Ctrl+C. Of what
  /// takes longer than a minute the text is the time that is left.
  Progress Report();

private:
  std::string What;
  bool IsTerminal;
  bool HasLine = false;
  std::chrono::duration<double> Interval;
  std::chrono::steady_clock::time_point Last;
};

/// Lets the first Ctrl+C only count as WasInterrupted; the second one ends the program.
void CatchInterrupt();
bool WasInterrupted();
/// Throws Canceled after Ctrl+C.
void ThrowIfInterrupted();

}
