#pragma once

#include "AttentionAtlasDataModule.h"

#include <array>
#include <optional>

class vtkAlgorithm;
class vtkInformation;
class vtkInformationVector;

namespace AttentionAtlas
{

/// What is asked for of an image that is smaller at some time steps than announced. VTK would
/// execute its filter at each update, because the image lacks a part that was asked for. While
/// nothing has changed, this asks for no more than there is.
class ATTENTIONATLASDATA_EXPORT ImageRequest
{
public:
  /// `port` is that of the image.
  explicit ImageRequest(int port)
    : Port(port)
  {
  }

  /// Call it in RequestUpdateExtent.
  void Limit(vtkAlgorithm* filter, vtkInformation* request, vtkInformationVector* outputs);

  /// Call it at the start of RequestData: what was known of the last image no longer holds.
  void Forget() { this->Known.reset(); }

  /// Call it in RequestData when the image is complete.
  void Answered(vtkInformation* request, vtkInformationVector* outputs);

private:
  using Extent = std::array<int, 6>;

  /// An extent of the image at a time, which is that of the port that asks.
  struct Request
  {
    Extent extent = { 0, -1, 0, -1, 0, -1 };
    std::optional<double> time;

    bool operator==(const Request& other) const;
  };
  Request Of(vtkInformation* request, vtkInformationVector* outputs) const;

  int Port;
  Extent Asked = { 0, -1, 0, -1, 0, -1 };   ///< last
  Extent Limited = { 0, -1, 0, -1, 0, -1 }; ///< what was made of it
  std::optional<Request> Known;             ///< of which the image is all that there is
};

}
