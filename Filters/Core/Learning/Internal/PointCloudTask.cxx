#include "PointCloudTask.h"

#include "Index.h"
#include "KnownKeys.h"

#include <algorithm>
#include <array>
#include <limits>
#include <locale>
#include <sstream>

namespace atlas
{
namespace
{

constexpr std::int64_t CloudSide = 12;
constexpr std::int64_t CloudPoints = CloudSide * CloudSide;
constexpr std::int64_t Landmarks = 12;
constexpr std::int64_t LandmarkColors = 4;
constexpr std::int64_t PointChannels = 5 + LandmarkColors;

struct Point
{
  std::array<float, 3> place = {};
  bool isLandmark = false;
  std::int64_t color = 0;   ///< of the nearest landmark
  std::int64_t nearest = 0; ///< the index of this landmark, which may be the point
};

using Cloud = std::vector<Point>;

double SquaredDistance(const Point& a, const Point& b)
{
  double sum = 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
  {
    const double difference =
      static_cast<double>(a.place[axis]) - static_cast<double>(b.place[axis]);
    sum += difference * difference;
  }
  return sum;
}

Cloud DrawCloud(LearningRandom& random)
{
  Cloud cloud(CloudPoints);
  for (Point& point : cloud)
  {
    for (float& coordinate : point.place)
    {
      coordinate = static_cast<float>(random.Uniform(-1, 1));
    }
  }
  std::vector<std::int64_t> landmarks = random.Permutation(CloudPoints);
  landmarks.resize(Landmarks);
  for (const std::int64_t landmark : landmarks)
  {
    cloud[landmark].isLandmark = true;
    cloud[landmark].color = random.Integer(LandmarkColors);
  }
  for (Point& point : cloud)
  {
    point.nearest =
      *std::min_element(landmarks.begin(), landmarks.end(), [&](std::int64_t a, std::int64_t b)
        { return SquaredDistance(point, cloud[a]) < SquaredDistance(point, cloud[b]); });
    point.color = cloud[point.nearest].color;
  }
  return cloud;
}

void AddPixels(std::vector<float>& pixels, const Cloud& cloud)
{
  for (std::int64_t channel = 0; channel < PointChannels; ++channel)
  {
    for (const Point& point : cloud)
    {
      const auto& [x, y, z] = point.place;
      pixels.push_back(channel < 3    ? point.place[channel]
                       : channel == 3 ? x * x + y * y + z * z
                       : !point.isLandmark || (channel > 4 && point.color != channel - 5) ? 0
                                                                                          : 1);
    }
  }
}

/// An array of the points: write(stream, point) writes a value with a space or line feed.
template<class Function>
std::string DataArray(const Cloud& cloud, const std::string& attributes, const Function& write)
{
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(std::numeric_limits<float>::max_digits10);
  text << "        <DataArray " << attributes << " format=\"ascii\">\n";
  for (std::size_t i = 0; i < cloud.size(); ++i)
  {
    write(text, cloud[i], i);
    text << '\n';
  }
  text << "        </DataArray>\n";
  return text.str();
}

std::string CloudText(const Cloud& cloud)
{
  const auto numbers = [&](const std::string& name, const auto& value)
  {
    return DataArray(cloud, R"(type="Int32" Name=")" + name + "\"",
      [&](std::ostream& text, const Point& point, std::size_t i) { text << value(point, i); });
  };
  return R"(<VTKFile type="PolyData" version="0.1">
  <PolyData>
    <Piece NumberOfPoints=")" +
         std::to_string(CloudPoints) + R"(" NumberOfVerts=")" + std::to_string(CloudPoints) + R"(">
      <Points>
)" +
         DataArray(cloud, R"(type="Float32" NumberOfComponents="3")",
           [](std::ostream& text, const Point& point, std::size_t /*i*/)
           { text << point.place[0] << ' ' << point.place[1] << ' ' << point.place[2]; }) +
         "      </Points>\n      <Verts>\n" +
         numbers("connectivity", [](const Point& /*point*/, std::size_t i) { return i; }) +
         numbers("offsets", [](const Point& /*point*/, std::size_t i) { return i + 1; }) +
         "      </Verts>\n      <PointData Scalars=\"Color\">\n" +
         numbers("Token", [](const Point& /*point*/, std::size_t i) { return i + 1; }) +
         numbers(
           "Landmark", [](const Point& point, std::size_t /*i*/) { return point.isLandmark; }) +
         numbers("Color", [](const Point& point, std::size_t /*i*/) { return point.color; }) +
         numbers(
           "Nearest", [](const Point& point, std::size_t /*i*/) { return point.nearest + 1; }) +
         R"(      </PointData>
    </Piece>
  </PolyData>
</VTKFile>
)";
}

class PointCloudTask : public SequenceTask
{
public:
  explicit PointCloudTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutClouds)
    , Seed(options.seed)
  {
    RequireNoVocabulary(options, "PointCloud");
    RequireFixed("Context", options.context, CloudPoints + 1);
  }

  void Configure(TransformerConfig& config) const override
  {
    SetImages(config, { PointChannels, CloudSide, LandmarkColors });
  }

  std::vector<std::string> MeasureNames() const override
  {
    return { "Nearest Landmark", "Weight There" };
  }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    LearningRandom random(this->Seed, RandomPurpose::HeldOut);
    TransformerInput input;
    std::vector<std::int64_t> keys;
    for (input.images = 0; input.images < HeldOutClouds; ++input.images)
    {
      const Cloud cloud = DrawCloud(random);
      AddPixels(input.pixels, cloud);
      keys.push_back(-1);
      for (const Point& point : cloud)
      {
        keys.push_back(point.isLandmark ? -1 : point.nearest + 1);
      }
    }
    const KnownKeyAttention attention = MeasureKnownKeys(model, input, keys, threads);
    return { attention.first, attention.weight };
  }

  std::map<std::string, std::string> Files() const override
  {
    LearningRandom random(this->Seed, RandomPurpose::HeldOut);
    const Cloud cloud = DrawCloud(random);
    TransformerInput input;
    AddPixels(input.pixels, cloud);
    return { { "points.vtp", CloudText(cloud) },
      { "pixel_values.safetensors",
        PixelFile(input, { 1, PointChannels, CloudSide, CloudSide }) } };
  }

  std::vector<std::string> Labels() const override { return { "red", "yellow", "green", "blue" }; }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t /*index*/) const override
  {
    const Cloud cloud = DrawCloud(random);
    AddPixels(batch.input.pixels, cloud);
    ++batch.input.images;
    batch.targets.push_back(-1);
    for (const Point& point : cloud)
    {
      batch.targets.push_back(point.isLandmark ? -1 : point.color);
    }
  }

private:
  static constexpr std::int64_t HeldOutClouds = 64;
  std::uint64_t Seed;
};

}

std::unique_ptr<LearningTask> MakePointCloudTask(const TaskOptions& options)
{
  return std::make_unique<PointCloudTask>(options);
}

}
