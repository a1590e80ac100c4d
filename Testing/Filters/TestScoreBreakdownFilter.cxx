#include "vtkScoreBreakdown.h"

#include "Pipeline.h"
