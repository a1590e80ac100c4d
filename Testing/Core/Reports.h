#pragma once

#include "Base/Progress.h"

#include <cstddef>
#include <vector>

namespace atlas::test
{

/// Progress that keeps what is reported, and throws Canceled at the report of this number, counted
/// from 1; 0: never. The reports must outlive it.
inline Progress KeepReports(std::vector<double>& reports, std::size_t cancelAt = 0)
{
  return [&reports, cancelAt](double done)
  {
    reports.push_back(done);
    if (reports.size() == cancelAt)
    {
      throw Canceled();
    }
  };
}

}
