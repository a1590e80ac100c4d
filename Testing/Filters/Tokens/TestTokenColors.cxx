#include "vtkTokenColors.h"

#include "Drawing/ClassPalette.h"
#include "Embeddings.h"

#include "Matchers.h"
using namespace atlas;
using namespace atlas::test;

namespace
{

class Colors : public On<vtkTokenColors>
{
public:
  using On::On;

  std::vector<Rgb> Found(int by)
  {
    this->Get()->SetBy(by);
    const std::vector<double> values = this->Points("TokenColor");
    std::vector<Rgb> colors;
    for (std::size_t i = 0; i < values.size(); i += 3)
    {
      colors.push_back({ static_cast<std::uint8_t>(values[i]),
        static_cast<std::uint8_t>(values[i + 1]), static_cast<std::uint8_t>(values[i + 2]) });
    }
    return colors;
  }
};

constexpr Rgb Blue = { 0, 114, 178 };     // queries
constexpr Rgb Vermilion = { 213, 94, 0 }; // keys
constexpr Rgb Gray = { 128, 128, 128 };

/// A color at the intensity 0.25 + 0.75 share on white.
Rgb Shade(const Rgb& color, double share)
{
  Rgb shade;
  for (std::size_t c = 0; c < 3; ++c)
  {
    shade[c] = static_cast<std::uint8_t>(
      std::lround(255 - (0.25 + 0.75 * share) * (255 - static_cast<double>(color[c]))));
  }
  return shade;
}

/// Of shares of all tokens, those of an embedding's points: for each head queries, then keys.
std::vector<Rgb> Shades(const std::vector<double>& shares, std::size_t heads)
{
  std::vector<Rgb> colors;
  for (std::size_t h = 0; h < heads; ++h)
  {
    for (const Rgb& color : { Blue, Vermilion })
    {
      for (const double share : shares)
      {
        colors.push_back(share < 0 ? Gray : Shade(color, share));
      }
    }
  }
  return colors;
}

/// Colors may differ by rounding.
void ExpectColors(
  const std::vector<Rgb>& found, const std::vector<Rgb>& expected, int tolerance = 0)
{
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    for (std::size_t c = 0; c < 3; ++c)
    {
      ASSERT_NEAR(found[i][c], expected[i][c], tolerance) << "point " << i << ", channel " << c;
    }
  }
}

std::vector<double> Divided(std::vector<double> values, double divisor)
{
  for (double& value : values)
  {
    value /= divisor;
  }
  return values;
}

std::size_t HeadCount(const Recording& recording)
{
  return recording.layers.size() * recording.layers[0].heads.size();
}

/// Quantities of tokens by an independent program, from the recording.
TEST(TokenColors, OfTheOriginalModels)
{
  for (const char* name : { "gpt2", "bert", "vit" })
  {
    const ViewsOracle oracle(name);
    Colors colors(Embedding(oracle.Source).Data());
    Connect(colors.Get(), 1, DataSetOf(oracle.Source));
    const std::size_t heads = HeadCount(oracle.Source);
    const auto largest = [&](const std::string& quantity)
    { return LargestMagnitude(oracle.Values(quantity)); };
    const auto expect = [&](int by, const std::vector<double>& shares)
    { ExpectColors(colors.Found(by), Shades(shares, heads), 1); };
    expect(vtkTokenColors::KIND, std::vector<double>(oracle.Source.tokens.sequence.size(), 1));
    expect(vtkTokenColors::POSITION,
      Divided(oracle.Values("token.position"), largest("token.position")));
    expect(vtkTokenColors::RELATIVE_POSITION, oracle.Values("token.normalized_position"));
    expect(vtkTokenColors::SENTENCE_LENGTH,
      Divided(oracle.Values("token.length"), largest("token.length")));
    if (oracle.Has("token.frequency"))
    {
      std::vector<double> shares;
      for (const double count : oracle.Values("token.frequency"))
      {
        shares.push_back(std::log(count) / std::log(largest("token.frequency")));
      }
      expect(vtkTokenColors::TOKEN_COUNT, shares);
    }
    if (oracle.Has("token.row"))
    {
      expect(vtkTokenColors::ROW, Divided(oracle.Values("token.row"), 3));
      expect(vtkTokenColors::COLUMN, Divided(oracle.Values("token.column"), 3));
    }
  }
}

TEST(TokenColors, OfPositionsThatRepeat)
{
  const ViewsOracle oracle("gpt2");
  Colors colors(Embedding(oracle.Source).Data());
  std::vector<Rgb> expected;
  for (std::size_t h = 0; h < HeadCount(oracle.Source); ++h)
  {
    for (const int kind : { 0, 1 })
    {
      for (const double phase : oracle.Values("token.position_mod5"))
      {
        const Rgb color = ClassColor(static_cast<int>(phase));
        expected.push_back(kind == 0 ? color : Fade(color, 0.55F));
      }
    }
  }
  EXPECT_EQ(colors.Found(vtkTokenColors::POSITION_MOD_5), expected);
  colors->SetPeriods(2);
  EXPECT_EQ(colors.Found(vtkTokenColors::POSITION_MOD_5)[3], ClassColor(1));
}

/// Norms over queries and keys of each head.
TEST(TokenColors, OfNorms)
{
  const ViewsOracle oracle("bert");
  const auto data = Embedding(oracle.Source).Data();
  std::vector<double> norms;
  std::vector<Rgb> expected;
  for (const RecordedLayer& layer : oracle.Source.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      const std::string name =
        "layer." + std::to_string(layer.index) + ".head." + std::to_string(h) + ".";
      const std::vector<double> ofHead = oracle.Values(name + "norm");
      norms.insert(norms.end(), ofHead.begin(), ofHead.end());
      const std::vector<double> shares = oracle.Values(name + "norm_unit_range");
      for (std::size_t i = 0; i < shares.size(); ++i)
      {
        expected.push_back(Shade(2 * i < shares.size() ? Blue : Vermilion, shares[i]));
      }
    }
  }
  AddArray<vtkDoubleArray>(data->GetPointData(), "Norm", norms);
  Colors colors(data);
  ExpectColors(colors.Found(vtkTokenColors::NORM), expected, 1);
}

/// A recording of the original's images keeps the mean colors of their patches.
TEST(TokenColors, OfPatches)
{
  ViewsOracle oracle("vit");
  const std::vector<double> rgb = oracle.Values("patch.rgb");
  const std::vector<double> hsv = oracle.Values("patch.hsv");
  RecordedTokens& tokens = oracle.Source.tokens;
  tokens.color = SharedMatrix::Zero(tokens.Count(), 3);
  std::vector<double> brightness;
  std::vector<Rgb> means;
  std::size_t patch = 0;
  for (std::int64_t i = 0; i < tokens.Count(); ++i)
  {
    const bool isPatch = tokens.row[i] >= 0;
    Rgb mean = Gray;
    for (std::size_t c = 0; c < 3; ++c)
    {
      const double value = isPatch ? rgb[3 * patch + c] : -1;
      tokens.color.Row(i)[c] = static_cast<float>(value);
      mean[c] = isPatch ? static_cast<std::uint8_t>(std::lround(255 * value)) : mean[c];
    }
    brightness.push_back(isPatch ? hsv[3 * patch + 2] : -1);
    means.push_back(mean);
    patch += isPatch ? 1 : 0;
  }
  Colors colors(Embedding(oracle.Source).Data());
  Connect(colors.Get(), 1, DataSetOf(oracle.Source));
  ExpectColors(
    colors.Found(vtkTokenColors::BRIGHTNESS), Shades(brightness, HeadCount(oracle.Source)), 1);
  std::vector<Rgb> found = colors.Found(vtkTokenColors::PATCH_COLOR);
  found.resize(means.size());
  ExpectColors(found, means);
  found = colors.Found(vtkTokenColors::HUE);
  EXPECT_EQ(found[0], Gray); // the class token
  for (std::size_t i = 1; i < 17; ++i)
  {
    // One channel is 0, one is 255, and the third gives the hue.
    const double hue = 6 * hsv[3 * (i - 1)];
    const double third = 255 * (1 - std::abs(std::fmod(hue, 2.) - 1));
    std::array<int, 3> sorted = { found[i][0], found[i][1], found[i][2] };
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted[0], 0);
    EXPECT_NEAR(sorted[1], third, 1);
    EXPECT_EQ(sorted[2], 255);
  }
}

/// Arrays of the data come before the recording, and are enough without one.
TEST(TokenColors, OfArraysOfTheData)
{
  const auto data = PointsAt({ 0, 1, 2 }, { 0, 0, 0 });
  AddArray<vtkIntArray>(data->GetPointData(), "Segment", std::vector<int>{ 0, 1, 2 });
  AddArray<vtkIntArray>(data->GetPointData(), "Sequence", std::vector<int>{ 0, 0, 1 });
  AddArray<vtkIntArray>(data->GetPointData(), "Position", std::vector<int>{ 0, 2, 1 });
  AddArray<vtkDoubleArray>(
    data->GetPointData(), "Relative Position", std::vector<double>{ 0, 0.5, 1 });
  Colors colors(data);
  EXPECT_THAT(colors.Found(vtkTokenColors::SEGMENT),
    ElementsAre(Shade(Blue, 0), Shade(Blue, 0.5), Blue)); // without Kind, as queries
  // Position 2 at half of its sequence: 5 tokens. Position 1 at the end: 2 tokens.
  EXPECT_THAT(
    colors.Found(vtkTokenColors::SENTENCE_LENGTH), ElementsAre(Blue, Blue, Shade(Blue, 0.4)));
}

TEST(TokenColors, HaveALegend)
{
  const Recording recording = SmallRecording();
  Colors colors(Embedding(recording).Data());
  colors->SetBy(vtkTokenColors::POSITION);
  vtkTable* legend = colors.Table(1);
  EXPECT_THAT(Texts(legend->GetRowData(), "Label"),
    ElementsAre("query, 0", "query, 1", "query, 2", "key, 0", "key, 1", "key, 2"));
  EXPECT_THAT(Values(legend->GetRowData(), "Value"), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Values(legend->GetRowData(), "Kind"), ElementsAre(0, 0, 0, 1, 1, 1));
  const std::vector<double> shown = Values(legend->GetRowData(), "TokenColor");
  const Rgb middle = Shade(Vermilion, 0.5);
  EXPECT_THAT(std::vector<double>(shown.begin() + 12, shown.begin() + 15),
    ElementsAre(middle[0], middle[1], middle[2]));
  EXPECT_THAT(colors.FieldTexts("TokenColor Legend"),
    ElementsAre(testing::StartsWith("Position (tokens)\n191 220 236 query, 0\n")));
}

/// Every entry of a legend has the color of a token with that value.
TEST(TokenColors, LegendsHaveTheColorsOfTheData)
{
  const ViewsOracle oracle("gpt2");
  Colors colors(Embedding(oracle.Source).Data());
  Connect(colors.Get(), 1, DataSetOf(oracle.Source));
  const std::vector<double> counts = oracle.Values("token.frequency");
  const std::vector<Rgb> found = colors.Found(vtkTokenColors::TOKEN_COUNT);
  const std::vector<double> values = colors.Column("Value", 1);
  const std::vector<double> shown = colors.Column("TokenColor", 1);
  int compared = 0;
  for (std::size_t e = 0; 2 * e < values.size(); ++e) // of queries
  {
    for (std::size_t i = 0; i < counts.size(); ++i)
    {
      if (counts[i] == values[e])
      {
        ++compared;
        EXPECT_EQ(std::vector<double>(found[i].begin(), found[i].end()),
          std::vector<double>(shown.begin() + 3 * static_cast<long>(e),
            shown.begin() + 3 * static_cast<long>(e) + 3));
      }
    }
  }
  EXPECT_GT(compared, 2);
}

TEST(TokenColors, NamesWhatIsMissing)
{
  const Recording recording = SmallRecording();
  const auto data = Embedding(recording).Data();
  Colors colors(data);
  const auto error = [&colors](int by)
  {
    colors->SetBy(by);
    return colors.Error();
  };
  EXPECT_THAT(error(vtkTokenColors::NORM), HasSubstr("By: expected an array 'Norm', found none"));
  EXPECT_THAT(error(vtkTokenColors::ROW), HasSubstr("connect the recording of the tokens"));
  Connect(colors.Get(), 1, DataSetOf(recording));
  EXPECT_THAT(error(vtkTokenColors::SEGMENT), HasSubstr("expected tokens with a Segment"));
  EXPECT_THAT(error(vtkTokenColors::HUE), HasSubstr("mean colors of their patches, found none"));
  colors->SetPeriods(25);
  EXPECT_THAT(error(vtkTokenColors::KIND), HasSubstr("Periods: expected 1 to 24, found 25"));
}

}
