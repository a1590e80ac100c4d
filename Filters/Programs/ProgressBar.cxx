#include "ProgressBar.h"

#include "Base/RemainingTime.h"
#include "Base/System.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <utility>

namespace atlas::programs
{
namespace
{

volatile std::sig_atomic_t interrupted = 0;

void Interrupt(int signal)
{
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}

void CatchInterrupt()
{
  std::signal(SIGINT, Interrupt);
}

bool WasInterrupted()
{
  return interrupted != 0;
}

void ThrowIfInterrupted()
{
  if (WasInterrupted())
  {
    throw Canceled();
  }
}

ProgressBar::ProgressBar(std::string what)
  : What(std::move(what))
  , IsTerminal(system::ErrorsAreOnTerminal())
  , Interval(this->IsTerminal ? 0.1 : 5)
  , Last(std::chrono::steady_clock::now())
{
}

ProgressBar::~ProgressBar()
{
  if (this->IsTerminal && this->HasLine)
  {
    std::cerr << "\r\33[K" << std::flush;
  }
}

void ProgressBar::Show(double done, const std::function<std::string()>& text)
{
  const auto now = std::chrono::steady_clock::now();
  if (now - this->Last < this->Interval)
  {
    return;
  }
  this->Last = now;
  this->HasLine = true;
  constexpr double width = 30;
  const double share = std::clamp(done, 0., 1.);
  std::array<char, 8> percent;
  std::snprintf(percent.data(), percent.size(), "%3.0f %%", std::floor(100 * share));
  const auto full = static_cast<std::size_t>(width * share);
  const std::string bar =
    " [" + std::string(full, '#') + std::string(static_cast<std::size_t>(width) - full, '.') + "]";
  // \33[K: what was longer before is gone.
  std::cerr << (this->IsTerminal ? "\r" : "") << this->What << (this->IsTerminal ? bar : "") << " "
            << percent.data() << (text ? ", " + text() : "") << (this->IsTerminal ? "\33[K" : "\n")
            << std::flush;
}

Progress ProgressBar::Report()
{
  return [this, time = RemainingTime()](double done) mutable
  {
    std::string left = time(done);
    this->Show(done, left.empty() ? std::function<std::string()>() : [&] { return left; });
    ThrowIfInterrupted();
  };
}

}
