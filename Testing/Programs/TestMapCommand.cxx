// attention-atlas map, run as its users run it.
#include "AttentionOnly/AttentionEvaluation.h"
#include "CommandTest.h"
#include "Files/PictureFile.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace atlas;
using Result = atlas::test::ProgramResult;
using namespace testing;

namespace
{

constexpr int Size = 70; // more than the rows that are written at once
const std::string Model = ATLAS_DATA_DIR "/trained-n5-h3.safetensors";

class MapCommand : public test::CommandTest
{
protected:
  MapCommand()
    : CommandTest("map")
  {
  }

  /// Runs it and reads its picture.
  Picture Draw(const std::string& arguments)
  {
    const std::string path = this->Folder / "map.png";
    this->Drawn = this->Succeed(arguments + " -o '" + path + "'");
    EXPECT_THAT(this->Folder.Entries(), ElementsAre("map.png"));
    return ReadPicture(path).picture;
  }

  Result Drawn;
};

/// The class map by its definition, in double.
struct Expected
{
  std::vector<Evaluation> points; ///< rows from the uppermost

  explicit Expected(Pattern pattern)
  {
    const AttentionOnlyModel model = ReadAttentionOnlyModel(Model);
    EvaluationOptions options;
    options.pattern = pattern;
    const ReferenceEvaluator evaluator(model, options);
    const auto angle = [](int i) { return std::acos(-1) * ((2 * i + 1.) / Size - 1); };
    for (int row = 0; row < Size; ++row)
    {
      for (int column = 0; column < Size; ++column)
      {
        this->points.push_back(evaluator.AtAngles(angle(column), angle(Size - 1 - row)));
      }
    }
  }

  /// The palette of Okabe and Ito (2008), fading to white where the class is as likely as any.
  static std::array<double, 3> Color(const Evaluation& point)
  {
    constexpr std::array<std::array<double, 3>, 5> palette = { { { 0, 114, 178 }, { 213, 94, 0 },
      { 0, 158, 115 }, { 204, 121, 167 }, { 230, 159, 0 } } };
    const double intensity = (point.probability - 0.2) / 0.8;
    std::array<double, 3> color = palette.at(point.predicted);
    for (double& channel : color)
    {
      channel = 255 + intensity * (channel - 255);
    }
    return color;
  }
};

/// Expects every pixel within a level of what it should be.
void ExpectMap(const Picture& picture, const Expected& expected)
{
  ASSERT_EQ(picture.width, Size);
  ASSERT_EQ(picture.height, Size);
  double error = 0;
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
  {
    error = std::max(
      error, std::abs(picture.pixels[i] - Expected::Color(expected.points[i / 3]).at(i % 3)));
  }
  EXPECT_LT(error, 1);
}

TEST_F(MapCommand, DrawsTheClassMap)
{
  ExpectMap(this->Draw("'" + Model + "' --size 70"), Expected(Pattern::Softmax));
}

TEST_F(MapCommand, DrawsTheHardmax)
{
  const Expected expected(Pattern::Hardmax);
  ExpectMap(this->Draw("'" + Model + "' --size 70 --hardmax"), expected);
  const Expected soft(Pattern::Softmax);
  EXPECT_FALSE(std::equal(expected.points.begin(), expected.points.end(), soft.points.begin(),
    [](const Evaluation& a, const Evaluation& b) { return a.predicted == b.predicted; }));
}

TEST_F(MapCommand, PrintsTheShareOfEachClass)
{
  const Result result = this->Succeed("'" + Model + "' --size 70");
  EXPECT_EQ(result.errors, "");
  std::array<double, 5> points = {};
  std::array<double, 5> probabilities = {};
  for (const Evaluation& point : Expected(Pattern::Softmax).points)
  {
    points.at(point.predicted) += 1;
    probabilities.at(point.predicted) += point.probability;
  }
  std::istringstream lines(result.output);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "Class,Area,Probability");
  for (std::size_t k = 0; k < 5; ++k)
  {
    double number = -1;
    double area = -1;
    double probability = -1;
    char comma = ' ';
    lines >> number >> comma >> area >> comma >> probability;
    EXPECT_EQ(number, static_cast<double>(k));
    EXPECT_NEAR(area, points.at(k) / (Size * Size), 1e-9);
    EXPECT_NEAR(probability, probabilities.at(k) / points.at(k), 1e-5);
  }
  EXPECT_FALSE(lines >> line) << "there are five classes";
}

TEST_F(MapCommand, ThreadsDoNotMatter)
{
  const Picture one = this->Draw("'" + Model + "' --size 70 --threads 1");
  const std::string shares = this->Drawn.output;
  const Picture three = this->Draw("'" + Model + "' --size 70 --threads 3");
  EXPECT_EQ(one.pixels, three.pixels);
  EXPECT_EQ(shares, this->Drawn.output);
}

TEST_F(MapCommand, SaysWhatItCanDo)
{
  const Result result = this->Succeed("--help");
  for (const char* option : { "--size", "--hardmax", "--output", "--threads" })
  {
    EXPECT_THAT(result.output, HasSubstr(option));
  }
}

TEST_F(MapCommand, RefusesWhatItCannotDo)
{
  const std::string text = this->Folder / "text";
  this->WithFile("text", "no model");
  this->ExpectRefusals({
    { "", "expected the file of one model, found 0; --help shows how." },
    { "/no/such/model.safetensors", "/no/such/model.safetensors: cannot open file" },
    { "'" + text + "'", text + ": " },
    { "'" + Model + "' other.safetensors",
      "expected the file of one model, found another: 'other.safetensors'; --help shows how." },
    { "'" + Model + "' --model other.safetensors",
      "expected the file of one model, found 2; --help shows how." },
    { "'" + Model + "' --threads -2", "--threads: expected at least 0, found -2." },
    { "'" + Model + "' --size 0", "--size: expected 1 to 92681 points, found 0." },
    { "'" + Model + "' --size -3", "--size: expected 1 to 92681 points, found -3." },
    { "'" + Model + "' --size 92682", "--size: expected 1 to 92681 points, found 92682." },
    { "'" + Model + "' --size 9223372036854775807", "points, found 9223372036854775807." },
    { "'" + Model + "' --size big", "big" },
    { "'" + Model + "' --love", "love" },
  });
}

TEST_F(MapCommand, LeavesNoPartOfAPicture)
{
  const std::string missing = (this->Folder / "missing").string() + "/map.png";
  const Result result = this->Run("'" + Model + "' --size 8 -o '" + missing + "'");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, StartsWith("attention-atlas map: " + missing));
  this->ExpectNoPart("'" + Model + "' --size 8", "full");
}

}
