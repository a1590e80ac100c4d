#pragma once

class vtkImageData;
class vtkInformation;

/// The image of the torus: x = theta_1, y = theta_2, from -pi to pi with both ends present, so that
/// spacing is 2 pi / (n - 1).
namespace AttentionAtlas
{

/// The angle of a column or row of a chart with `resolution` columns or rows, in radians.
double ChartAngle(int index, int resolution);

/// Announces extent, origin and spacing of a chart to the pipeline. A resolution below 2, which
/// PrepareChart rejects, is treated as 2.
void DescribeChart(const int resolution[2], vtkInformation* info);

/// Sets the geometry of `output` to the part `extent` of a chart. Throws std::runtime_error if the
/// resolution is below 2.
void PrepareChart(const int resolution[2], const int extent[6], vtkImageData* output);

}
