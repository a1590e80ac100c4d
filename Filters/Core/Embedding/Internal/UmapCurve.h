#pragma once

namespace atlas
{

/// The similarity of two points of a UMAP layout at distance d: 1 / (1 + a d^2b).
struct UmapCurve
{
  double a = 1;
  double b = 1;
};

/// The curve that is closest, in least squares over 300 distances from 0 to 3 x spread, to 1 up to
/// `minimumDistance` and exp(-(d - minimumDistance) / spread) beyond.
UmapCurve FitUmapCurve(double minimumDistance, double spread);

}
