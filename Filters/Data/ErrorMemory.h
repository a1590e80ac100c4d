#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkTimeStamp.h>

class vtkAlgorithm;

namespace AttentionAtlas
{

/// Has the error of an image told once: VTK executes a filter that failed several times for each
/// picture, since its empty image is not of the extent that is asked for.
class ATTENTIONATLASDATA_EXPORT ErrorMemory
{
public:
  /// Whether `algorithm` or one of its inputs has changed since the last error. To be asked at
  /// each.
  bool IsNew(vtkAlgorithm* algorithm);

private:
  vtkTimeStamp Told;
};

}
