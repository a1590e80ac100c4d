#pragma once

#include "Numerics/ValueRanges.h"

#include <mutex>
#include <vector>

#include <vtkType.h>

class vtkDataArray;
class vtkDataSetAttributes;

namespace AttentionAtlas
{

/// Stores the ranges of all float, int and unsigned char arrays in VTK's cache, in parallel:
/// ParaView requests all after each update, and VTK's one thread takes ten times as long as
/// computing the arrays. No value may be NaN or infinite. Call this last, as a later Modified() of
/// an array discards its ranges.
void CacheRanges(vtkDataSetAttributes* attributes);

/// The same for arrays that are computed part by part: Add each part as soon as it is computed,
/// while it is still in the processor's cache. Arrays of other types are left out.
class RangeCollector
{
public:
  /// The arrays must outlive this object.
  explicit RangeCollector(const std::vector<vtkDataArray*>& arrays);

  /// Adds the tuples begin <= i < end of all arrays. Several threads may call it.
  void Add(vtkIdType begin, vtkIdType end);

  /// Adds many short parts on one thread. They are stored from its end on.
  class Part
  {
  public:
    explicit Part(RangeCollector& all);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    void Add(vtkIdType begin, vtkIdType end);

  private:
    RangeCollector& All;
    std::vector<atlas::ValueRanges> Ranges;
  };

  /// Stores what was added in VTK's cache.
  void Store() const;

private:
  std::vector<vtkDataArray*> Arrays;
  std::vector<atlas::ValueRanges> Ranges;
  std::mutex Mutex;
};

}
