#pragma once

#include <vtkImageData.h>
#include <vtkNew.h>

#include <filesystem>
#include <functional>

namespace atlas::test
{

/// The value of a channel in a column and a row from the uppermost.
using Pixels = std::function<int(int x, int y, int channel)>;

/// Writes an image with this number of channels: gray, gray and alpha, RGB or RGBA.
template<class Writer>
void WritePicture(
  const std::filesystem::path& path, int width, int height, int channels, const Pixels& pixels)
{
  vtkNew<vtkImageData> image;
  image->SetDimensions(width, height, 1);
  image->AllocateScalars(VTK_UNSIGNED_CHAR, channels);
  for (int y = 0; y < height; ++y)
  {
    for (int x = 0; x < width; ++x)
    {
      for (int channel = 0; channel < channels; ++channel)
      {
        image->SetScalarComponentFromDouble(x, height - 1 - y, 0, channel, pixels(x, y, channel));
      }
    }
  }
  vtkNew<Writer> writer;
  writer->SetInputData(image);
  writer->SetFileName(path.c_str());
  writer->Write();
}

}
