#pragma once

#include "AttentionAtlasDataModule.h"

#include <memory>
#include <vector>

class vtkObject;

namespace AttentionAtlas
{

/// The files that an algorithm could not read, so that it reads them again once they were
/// corrected.
class ATTENTIONATLASDATA_EXPORT FailedFiles
{
public:
  /// Remembers the state of these files and of what is beside each: an error in one is often
  /// corrected in another, which may have been missing. Of a folder with more than 256 files, only
  /// which files there are. Null or empty: no file.
  void Remember(const std::vector<const char*>& fileNames);

  /// To be called after a success.
  void Forget() { this->Known.reset(); }

  /// To be called by GetMTime. Modifies the algorithm if any file was changed, added or removed
  /// since Remember, and forgets them.
  void Touch(vtkObject* algorithm);

private:
  struct Stamps;
  std::shared_ptr<const Stamps> Known; ///< nullptr: none
};

}
