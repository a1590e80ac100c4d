#pragma once

#include "AttentionAtlasSupportModule.h"

#include <vtkType.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

class vtkAlgorithm;
class vtkInformation;
class vtkInformationVector;

namespace AttentionAtlas
{

/// What is asked for of an image that is smaller at some time steps than announced: while nothing
/// has changed no more than there is, else VTK would execute its filter at each update.
class ATTENTIONATLASSUPPORT_EXPORT ImageRequest
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

/// Announces an image of float points at x = 0 ... width - 1, y = 0 ... -(height - 1), of which any
/// part can be asked for. `type`: of its active scalars. `step`: the distance of its columns.
ATTENTIONATLASSUPPORT_EXPORT void AnnounceImage(
  int width, int height, vtkInformation* info, int type = VTK_FLOAT, double step = 1);

/// The part of an announced image that is asked for, as far as it is in an image of this size: one
/// of fewer tokens than at the last time step.
ATTENTIONATLASSUPPORT_EXPORT std::array<int, 6> RequestedExtent(
  vtkInformation* info, std::int64_t width, std::int64_t height);

/// Begins that part of an image of this size. Returns its points in their order, each as the number
/// of the cell of the matrix, row by row from the top.
ATTENTIONATLASSUPPORT_EXPORT std::vector<std::size_t> BeginImage(
  vtkInformation* info, std::int64_t width, std::int64_t height, double step = 1);

/// The same for an image of the announced size.
ATTENTIONATLASSUPPORT_EXPORT std::vector<std::size_t> BeginImage(vtkInformation* info);

}
