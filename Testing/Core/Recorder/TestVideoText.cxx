#include "Recorder/Internal/VideoText.h"

#include "ModelOracle.h"
#include "ModelsOracle.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;

namespace
{

nlohmann::json Expected(const std::string& name)
{
  const ModelOracle oracle(ModelsOracle("transformers/smolvlm-film/expected.safetensors"));
  return nlohmann::json::parse(oracle.Text(name));
}

TEST(VideoText, NumbersInWords)
{
  const nlohmann::json words = Expected("words");
  ASSERT_GT(words.size(), 40U);
  for (const auto& [number, text] : words.items())
  {
    EXPECT_EQ(InWords(std::stoll(number)), text.get<std::string>());
  }
}

/// Frame i at so many frames per second: the time of the frame, and how long a video is that ends
/// with it.
TEST(VideoText, Times)
{
  const nlohmann::json times = Expected("times");
  ASSERT_GT(times.size(), 40U);
  for (const nlohmann::json& row : times)
  {
    const double seconds = row[0].get<double>() / row[1].get<double>();
    EXPECT_EQ(MinutesText(seconds), row[2].get<std::string>()) << row.dump();
    EXPECT_EQ(DurationText(seconds), row[3].get<std::string>()) << row.dump();
  }
}

}
