#include "CyclicSpectrum.h"

#include "Index.h"
#include "Pi.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <Eigen/Core>

namespace atlas
{

std::vector<double> CyclicSpectrum(const float* vectors, std::int64_t p, std::int64_t dimension)
{
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd values =
    Eigen::Map<const RowMajor>(vectors, p, dimension).cast<double>().matrix();
  std::vector<double> spectrum;
  Eigen::RowVectorXd cosine(p);
  Eigen::RowVectorXd sine(p);
  for (std::int64_t k = 0; k <= p / 2; ++k)
  {
    for (std::int64_t a = 0; a < p; ++a)
    {
      const double angle = 2 * Pi * static_cast<double>(k * a % p) / static_cast<double>(p);
      cosine[a] = std::cos(angle);
      sine[a] = std::sin(angle);
    }
    const double power = (cosine * values).squaredNorm() + (sine * values).squaredNorm();
    const bool isPair = k > 0 && 2 * k < p;
    spectrum.push_back((isPair ? 2 : 1) * power / static_cast<double>(p));
  }
  return spectrum;
}

double StrongestFrequencies(const std::vector<double>& spectrum, std::int64_t count)
{
  const double sum = std::accumulate(spectrum.begin(), spectrum.end(), 0.);
  std::vector<double> falling(spectrum.begin() + 1, spectrum.end());
  std::sort(falling.begin(), falling.end(), std::greater<>());
  falling.resize(std::min(falling.size(), ToIndex(count)));
  return sum > 0 ? std::accumulate(falling.begin(), falling.end(), 0.) / sum : 0;
}

}
