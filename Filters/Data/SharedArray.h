#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recording.h"

#include <vtkFloatArray.h>
#include <vtkSmartPointer.h>

/// Conversions between matrices of Core and VTK arrays that share their memory.
namespace AttentionAtlas
{

/// An array with one tuple per row and one component per column. It, or any shallow copy, keeps the
/// memory of `matrix` alive. It must not be written to.
ATTENTIONATLASDATA_EXPORT vtkSmartPointer<vtkFloatArray> ToArray(
  const atlas::SharedMatrix& matrix, const char* name);

/// A matrix that keeps `array` alive.
ATTENTIONATLASDATA_EXPORT atlas::SharedMatrix ToMatrix(vtkFloatArray* array);

}
