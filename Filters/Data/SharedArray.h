#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recording/Recording.h"

#include <vtkFloatArray.h>
#include <vtkSmartPointer.h>
#include <vtkUnsignedCharArray.h>

#include <cstdint>
#include <memory>

/// Conversions between matrices of Core and VTK arrays that share their memory.
namespace AttentionAtlas
{

/// An array with one tuple per row and one component per column. It, or any shallow copy, keeps the
/// memory of `matrix` alive. It must not be written to.
ATTENTIONATLASDATA_EXPORT vtkSmartPointer<vtkFloatArray> ToArray(
  const atlas::SharedMatrix& matrix, const char* name);

/// The same for bytes, of which each tuple has some.
ATTENTIONATLASDATA_EXPORT vtkSmartPointer<vtkUnsignedCharArray> ToArray(
  const std::shared_ptr<std::uint8_t>& bytes, std::int64_t tuples, int components,
  const char* name);

/// A matrix that keeps `array` alive.
ATTENTIONATLASDATA_EXPORT atlas::SharedMatrix ToMatrix(vtkFloatArray* array);

/// Bytes that keep `array` alive.
ATTENTIONATLASDATA_EXPORT std::shared_ptr<std::uint8_t> ToBytes(vtkUnsignedCharArray* array);

}
