#include "vtkStrongestKeys.h"

#include "Pipeline.h"
