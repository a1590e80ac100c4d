#include "MapPictures.h"

#include "ArrayNames.h"
#include "ClassPalette.h"
#include "DataFields.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace AttentionAtlas
{
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
  std::string text = "Pictures";
  for (std::size_t picture = 0; picture < pictures; ++picture)
  {
    text += "\n";
    for (const std::uint8_t channel : atlas::ClassColor(static_cast<int>(picture)))
    {
      text += std::to_string(channel) + " ";
    }
    text += "picture " + std::to_string(picture);
  }
  return text;
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
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> cells;
  vtkNew<vtkUnsignedCharArray> colors;
  colors->SetName(Names::MarkColor);
  colors->SetNumberOfComponents(3);
  for (const Run& run : runs)
  {
    const double begin = static_cast<double>(run.begin) - 0.5;
    const double end = static_cast<double>(run.end) - 0.5;
    const double x[2] = { run.isKey ? begin : left, run.isKey ? end : left + width };
    const double y[2] = { run.isKey ? top : -end, run.isKey ? top + width : -begin };
    const vtkIdType first = points->InsertNextPoint(x[0], y[0], 0);
    points->InsertNextPoint(x[1], y[0], 0);
    points->InsertNextPoint(x[1], y[1], 0);
    points->InsertNextPoint(x[0], y[1], 0);
    cells->InsertNextCell({ first, first + 1, first + 2, first + 3 });
    colors->InsertNextTypedTuple(atlas::ClassColor(run.picture).data());
  }
  output->SetPoints(points);
  output->SetPolys(cells);
  vtkCellData* arrays = output->GetCellData();
  arrays->AddArray(
    MakeArray<vtkIntArray>(Names::Picture, runs, [](const Run& run) { return run.picture; }));
  arrays->AddArray(MakeArray<vtkUnsignedCharArray>(
    Names::Side, runs, [](const Run& run) { return static_cast<unsigned char>(run.isKey); }));
  arrays->AddArray(MakeArray<vtkIntArray>(
    Names::FirstToken, runs, [](const Run& run) { return static_cast<int>(run.begin); }));
  arrays->AddArray(MakeArray<vtkIntArray>(
    Names::LastToken, runs, [](const Run& run) { return static_cast<int>(run.end - 1); }));
  arrays->AddArray(colors);
  AddField(output->GetFieldData(), Names::MarkColorLegend, Legend(pictures.size()));
}

}
