#include "ConvexHull.h"

#include "Base/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>

#include <Eigen/Geometry>
#include <libqhull_r/qhull_ra.h>

namespace atlas
{
namespace
{

/// A run of Qhull, which keeps a copy of its points and frees its memory.
class Qhull
{
public:
  explicit Qhull(Eigen::MatrixXd points)
    : Points(std::move(points))
  {
    char* text = nullptr;
    std::size_t size = 0;
    FILE* log = open_memstream(&text, &size);
    qh_zero(&this->State, log);
    // Pp: no warnings; coplanar facets are merged, which is Qhull's default.
    std::string options = "qhull Pp";
    const int error = qh_new_qhull(&this->State, static_cast<int>(this->Points.rows()),
      static_cast<int>(this->Points.cols()), this->Points.data(), False, options.data(), nullptr,
      log);
    std::fclose(log);
    this->State.ferr = stderr;
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    if (error != 0)
    {
      const std::string message(text, size);
      this->Free();
      throw GeometryError(
        "unembedding: the convex hull of its rows cannot be computed; Qhull says ",
        message.substr(0, message.find('\n')));
    }
  }
  ~Qhull() { this->Free(); }
  Qhull(const Qhull&) = delete;
  Qhull& operator=(const Qhull&) = delete;

  facetT* Facets() const { return this->State.facet_list; }
  vertexT* Vertices() const { return this->State.vertex_list; }
  void MakeRidges(facetT* facet) { qh_makeridges(&this->State, facet); }

  /// The column index of a vertex.
  Eigen::Index Column(const void* vertex) const
  {
    return (static_cast<const vertexT*>(vertex)->point - this->Points.data()) / this->Points.rows();
  }

private:
  Eigen::MatrixXd Points;
  qhT State{};

  void Free()
  {
    int longs = 0;
    int bytes = 0;
    qh_freeqhull(&this->State, !qh_ALL);
    qh_memfreeshort(&this->State, &longs, &bytes);
  }
};

}

ConvexPolyhedron ConvexHull(const Eigen::Matrix3Xd& points)
{
  Qhull hull{ Eigen::MatrixXd(points) };
  ConvexPolyhedron result;
  std::unordered_map<const facetT*, std::size_t> numbers;
  for (facetT* facet = hull.Facets(); facet != nullptr && facet->next != nullptr;
    facet = facet->next)
  {
    hull.MakeRidges(facet);
    numbers.emplace(facet, result.normals.size());
    result.normals.push_back(Eigen::Map<const Eigen::Vector3d>(facet->normal).normalized());
  }
  double orientation = 0;
  for (facetT* facet = hull.Facets(); facet != nullptr && facet->next != nullptr;
    facet = facet->next)
  {
    // A Qhull set ends with a null pointer.
    for (setelemT* element = facet->ridges->e; element->p != nullptr; ++element)
    {
      const auto* ridge = static_cast<const ridgeT*>(element->p);
      if (ridge->top != facet)
      {
        continue;
      }
      const HullEdge edge{ hull.Column(ridge->vertices->e[0].p),
        hull.Column(ridge->vertices->e[1].p), numbers.at(ridge->top), numbers.at(ridge->bottom) };
      orientation += result.normals[edge.left]
                       .cross(result.normals[edge.right])
                       .dot(points.col(edge.to) - points.col(edge.from));
      result.edges.push_back(edge);
    }
  }
  // Qhull gives all ridges the same orientation. Their sum determines it robustly, even if some are
  // tiny.
  if (orientation < 0)
  {
    for (HullEdge& edge : result.edges)
    {
      std::swap(edge.from, edge.to);
    }
  }
  return result;
}

std::vector<Eigen::Index> ConvexPolygon(const Eigen::Matrix2Xd& points)
{
  const Qhull hull{ Eigen::MatrixXd(points) };
  std::vector<Eigen::Index> extreme;
  Eigen::Vector2d centre = Eigen::Vector2d::Zero();
  for (vertexT* vertex = hull.Vertices(); vertex != nullptr && vertex->next != nullptr;
    vertex = vertex->next)
  {
    extreme.push_back(hull.Column(vertex));
    centre += points.col(extreme.back());
  }
  centre /= static_cast<double>(extreme.size());
  std::sort(extreme.begin(), extreme.end(),
    [&](Eigen::Index a, Eigen::Index b)
    {
      const Eigen::Vector2d p = points.col(a) - centre;
      const Eigen::Vector2d q = points.col(b) - centre;
      return std::atan2(p.y(), p.x()) < std::atan2(q.y(), q.x());
    });
  return extreme;
}

}
