#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkTimeStamp.h>

class vtkAlgorithm;

namespace AttentionAtlas
{

/// Limits an error of an image filter to one message. VTK executes a failed filter several times
/// per rendering, because its empty image does not have the requested extent.
class ATTENTIONATLASDATA_EXPORT ErrorMemory
{
public:
  /// Whether `algorithm` or one of its inputs has changed since the last error. Call it at every
  /// error.
  bool IsNew(vtkAlgorithm* algorithm);

private:
  vtkTimeStamp Told;
};

}
