#pragma once

#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

namespace atlas
{

/// Thrown by a progress report to stop what it reports on. Not an Error: nothing is wrong.
class Canceled : public std::exception
{
public:
  const char* what() const noexcept override { return "canceled"; }
};

/// Reports how much of a computation is done; to nobody by default. A function that takes one calls
/// it from time to time on the thread that called the function, and throws what it throws: Canceled
/// to stop.
class Progress
{
public:
  Progress() = default;

  /// `report` is called with the fraction done, 0 to 1.
  template<class Call,
    class = std::enable_if_t<std::is_void_v<std::invoke_result_t<Call&, double>>>>
  Progress(Call report) // NOLINT(hicpp-explicit-conversions): any callable is one
    : Report(std::move(report))
  {
  }

  void operator()(double done) const
  {
    if (this->Report)
    {
      this->Report(done);
    }
  }

  /// Reports `done` of `all`.
  template<class Number>
  void operator()(Number done, Number all) const
  {
    (*this)(static_cast<double>(done) / static_cast<double>(all));
  }

  /// The progress of a part of the work, which is from `begin` to `end` of all. This must outlive
  /// it.
  Progress Part(double begin, double end) const
  {
    return [this, begin, end](double done) { (*this)(begin + (end - begin) * done); };
  }

  /// Likewise, from `begin` to `end` of `all`.
  template<class Number>
  Progress Part(Number begin, Number end, Number all) const
  {
    const auto whole = static_cast<double>(all);
    return this->Part(static_cast<double>(begin) / whole, static_cast<double>(end) / whole);
  }

private:
  std::function<void(double)> Report;
};

}
