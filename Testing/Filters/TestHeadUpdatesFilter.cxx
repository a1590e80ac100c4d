#include "vtkHeadUpdates.h"

#include "Pipeline.h"
