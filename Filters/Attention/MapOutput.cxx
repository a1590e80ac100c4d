#include "MapOutput.h"

#include "ArrayNames.h"
#include "Drawing/ClassPalette.h"
#include "Drawing/ColorLegend.h"
#include "ListArrays.h"
#include "Shapes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include <vtkType.h>

namespace AttentionAtlas
{
namespace
{

namespace Names = ArrayNames;

/// Lines are in front of the image that they mark.
constexpr double Front = 0.01;

/// Orange, green and purple of Okabe and Ito's palette, by kind.
constexpr std::array<std::array<unsigned char, 3>, 3> KindColors = { {
  { 230, 159, 0 },
  { 0, 158, 115 },
  { 204, 121, 167 },
} };

/// 0: another key, 1: the query's own position, 2: the first token.
unsigned char KindOf(const StrongestKey& strongest, bool isOneText)
{
  if (isOneText && strongest.key == strongest.query)
  {
    return 1;
  }
  return strongest.key == 0 ? 2 : 0;
}

}

void FrameStrongestKeys(
  const std::vector<StrongestKey>& keys, const char* name, bool isOneText, vtkPolyData* output)
{
  const auto kindOf = [isOneText](const StrongestKey& strongest)
  { return KindOf(strongest, isOneText); };
  Shapes frames;
  for (const StrongestKey& strongest : keys)
  {
    const double x = strongest.key;
    const double y = -strongest.query;
    frames.AddRectangle(x - 0.5, y - 0.5, x + 0.5, y + 0.5, Front, true);
  }
  frames.MoveToLines(output);
  ListArrays(keys, output->GetCellData())
    .Byte(Names::Kind, kindOf)
    .Tuples(Names::KindColor,
      [&](const StrongestKey& strongest) { return KindColors.at(kindOf(strongest)); })
    .Int(Names::Query, &StrongestKey::query)
    .Int(Names::Key, &StrongestKey::key)
    .Float(name, &StrongestKey::value);
}

void AddQueryTokens(const std::vector<StrongestKey>& keys, std::int64_t first, vtkPolyData* output)
{
  vtkCellData* arrays = output->GetCellData();
  ListArrays(keys, arrays)
    .Id(Names::TokenIndex,
      [first](const StrongestKey& strongest) { return first + strongest.query; });
  arrays->SetPedigreeIds(arrays->GetAbstractArray(Names::TokenIndex));
}

namespace
{

namespace Names = ArrayNames;

/// The width of a band, as a share of the longer side of the map, at least that of a token.
constexpr double BandShare = 0.02;

/// The tokens of a picture that follow each other, as far as they are shown.
struct Run
{
  int picture = 0; ///< among those of the sequence
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool isKey = false;
};

/// The numbers of the pictures of a sequence.
std::vector<std::int32_t> PicturesOf(const atlas::Recording& recording, std::int64_t sequence)
{
  const auto tokens = recording.tokens.picture.begin();
  std::vector<std::int32_t> pictures(
    tokens + recording.sequenceOffsets[sequence], tokens + recording.sequenceOffsets[sequence + 1]);
  std::sort(pictures.begin(), pictures.end());
  pictures.erase(std::unique(pictures.begin(), pictures.end()), pictures.end());
  pictures.erase(pictures.begin(), std::lower_bound(pictures.begin(), pictures.end(), 0));
  return pictures;
}

void AddRuns(const atlas::Recording& recording, std::int64_t sequence,
  const std::vector<std::int32_t>& pictures, const atlas::KeyRange& range, bool isKey,
  std::vector<Run>& runs)
{
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const std::int64_t end = std::min(range.end, recording.SequenceLength(sequence));
  std::int32_t previous = -1;
  for (std::int64_t i = range.begin; i < end; ++i)
  {
    const std::int32_t picture = recording.tokens.picture[first + i];
    if (picture >= 0 && picture == previous)
    {
      runs.back().end = i + 1;
    }
    else if (picture >= 0)
    {
      const auto number = std::lower_bound(pictures.begin(), pictures.end(), picture);
      runs.push_back({ static_cast<int>(number - pictures.begin()), i, i + 1, isKey });
    }
    previous = picture;
  }
}

std::string Legend(std::size_t pictures)
{
  atlas::ColorLegend legend("Pictures");
  for (std::size_t picture = 0; picture < pictures; ++picture)
  {
    legend.Add(atlas::ClassColor(static_cast<int>(picture)), "picture " + std::to_string(picture));
  }
  return legend.Text();
}

}

void FillPictureBands(const atlas::Recording& recording, std::int64_t sequence,
  const atlas::KeyRange& queries, const atlas::KeyRange& keys, vtkPolyData* output)
{
  if (recording.tokens.picture.empty() || sequence == atlas::AllSequences)
  {
    return;
  }
  const std::vector<std::int32_t> pictures = PicturesOf(recording, sequence);
  std::vector<Run> runs;
  AddRuns(recording, sequence, pictures, queries, false, runs);
  AddRuns(recording, sequence, pictures, keys, true, runs);
  const auto longer =
    static_cast<double>(std::max(queries.end - queries.begin, keys.end - keys.begin));
  const double width = std::max(1.0, BandShare * longer);
  const double left = static_cast<double>(keys.begin) - 0.5 - 1.5 * width;
  const double top = 0.5 * (1 + width) - static_cast<double>(queries.begin);
  Shapes bands;
  for (const Run& run : runs)
  {
    const double begin = static_cast<double>(run.begin) - 0.5;
    const double end = static_cast<double>(run.end) - 0.5;
    if (run.isKey)
    {
      bands.AddRectangle(begin, top, end, top + width);
    }
    else
    {
      bands.AddRectangle(left, -end, left + width, -begin);
    }
  }
  bands.MoveToPolys(output);
  ListArrays(runs, output->GetCellData())
    .Int(Names::Picture, &Run::picture)
    .Byte(Names::Side, &Run::isKey)
    .Int(Names::FirstToken, &Run::begin)
    .Int(Names::LastToken, [](const Run& run) { return run.end - 1; })
    .Tuples(Names::MarkColor, [](const Run& run) { return atlas::ClassColor(run.picture); });
  AddField(output->GetFieldData(), Names::MarkColorLegend, Legend(pictures.size()));
}

}
