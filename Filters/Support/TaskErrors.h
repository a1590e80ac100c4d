#pragma once

#include "AttentionAtlasSupportModule.h"

#include <vtkTimeStamp.h>

#include <memory>
#include <string>
#include <vector>

class vtkAlgorithm;

namespace AttentionAtlas
{

/// What a filter remembers of its last error, between executions.
class ATTENTIONATLASSUPPORT_EXPORT TaskErrors
{
public:
  /// To be called at every error. Returns whether to report it: not if it is the last one, and
  /// neither the filter nor an input has changed since. VTK executes a failed image filter several
  /// times per rendering, because its empty image does not have the requested extent.
  ///
  /// Remembers the state of the files that were read and of what is beside each, which may be where
  /// an error is corrected; of a folder with more than 256 files, only which files there are.
  bool Add(vtkAlgorithm* filter, const std::string& error, const std::vector<std::string>& files);

  /// To be called after every success or cancel.
  void Clear();

  /// The last error; empty after a success or cancel.
  const std::string& Text() const { return this->Last; }

  /// Whether files of the last error were changed, added or removed since. It is true once.
  bool AreMended();

private:
  struct Stamps;

  vtkTimeStamp Told;
  std::string Last;
  std::shared_ptr<const Stamps> Files; ///< nullptr: none
};

}
