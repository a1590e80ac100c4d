#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recording.h"

#include <vtkFloatArray.h>
#include <vtkSmartPointer.h>

/// Matrices of Core as VTK arrays and back, whose memory both share.
namespace AttentionAtlas
{

/// An array of a tuple per row and a component per column, which keeps the memory of `matrix` alive
/// for as long as it or a shallow copy of it lives. It must not be written to.
ATTENTIONATLASDATA_EXPORT vtkSmartPointer<vtkFloatArray> ToArray(
  const atlas::SharedMatrix& matrix, const char* name);

/// A matrix that keeps `array` alive.
ATTENTIONATLASDATA_EXPORT atlas::SharedMatrix ToMatrix(vtkFloatArray* array);

}
