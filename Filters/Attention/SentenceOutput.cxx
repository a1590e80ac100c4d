#include "SentenceOutput.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Drawing/ClassPalette.h"
#include "Drawing/ColorLegend.h"
#include "Drawing/LabelPlacement.h"
#include "ListArrays.h"
#include "Shapes.h"
#include "Signs.h"
#include "Text/ScreenText.h"
#include "TokenText.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace AttentionAtlas
{
namespace
{

using atlas::SentencePage;
using atlas::TokenSide;

/// Wider words may overlap bars.
constexpr double WidestWord = 16;
/// The rows over which the ends of lines of several heads are spread, and the most per head.
constexpr double SpreadOfHeads = 0.7;
constexpr double MostPerHead = 0.15;
/// The height of a bar, in rows.
constexpr double BarHeight = 0.6;

/// A color that is seen on white, gray and black.
constexpr atlas::Rgb OneHeadColor = { 230, 140, 0 };

atlas::Rgb ColorOf(const SentenceHeads& heads, std::size_t h)
{
  return heads.heads.size() > 1 ? atlas::ClassColor(heads.heads[h].head) : OneHeadColor;
}

/// A word of a column: its page, side and position.
struct Word
{
  const SentencePage& page;
  TokenSide side;
  std::int64_t position;
};

/// All words, page by page, queries first.
std::vector<Word> WordsOf(const atlas::SentenceLayout& layout)
{
  std::vector<Word> words;
  for (const SentencePage& page : layout.Pages())
  {
    for (std::int64_t i = page.queryBegin; i < page.queryEnd; ++i)
    {
      words.push_back({ page, TokenSide::Query, i });
    }
    for (std::int64_t i = page.keyBegin; i < page.keyEnd; ++i)
    {
      words.push_back({ page, TokenSide::Key, i });
    }
  }
  return words;
}

vtkSmartPointer<vtkUnsignedCharArray> SidesOf(const std::vector<Word>& words)
{
  return MakeArray<vtkUnsignedCharArray>(ArrayNames::Side, words,
    [](const Word& word) { return static_cast<unsigned char>(word.side == TokenSide::Key); });
}

vtkSmartPointer<vtkIdTypeArray> RowsOf(const SentenceWords& words, const std::vector<Word>& places)
{
  return MakeArray<vtkIdTypeArray>(ArrayNames::TokenIndex, places,
    [&](const Word& word) { return static_cast<vtkIdType>(words.rows[word.position]); });
}

/// The ends of the lines of all words, those of one head after those of another.
class LineEnds
{
public:
  LineEnds(const atlas::SentenceLayout& layout, std::size_t heads)
    : Layout(layout)
    , Words(WordsOf(layout))
    , Heads(heads)
  {
    vtkIdType first = 0;
    for (const SentencePage& page : layout.Pages())
    {
      this->FirstOfPage.push_back(first);
      first += page.queryEnd - page.queryBegin + page.keyEnd - page.keyBegin;
    }
  }

  const std::vector<Word>& GetWords() const { return this->Words; }

  vtkSmartPointer<vtkPoints> MakePoints() const
  {
    auto points = vtkSmartPointer<vtkPoints>::New();
    points->SetNumberOfPoints(
      static_cast<vtkIdType>(this->Words.size()) * static_cast<vtkIdType>(this->Heads));
    const double step = std::min(MostPerHead, SpreadOfHeads / static_cast<double>(this->Heads));
    vtkIdType i = 0;
    for (std::size_t h = 0; h < this->Heads; ++h)
    {
      const double shift =
        step * (static_cast<double>(this->Heads - 1) / 2 - static_cast<double>(h));
      for (const Word& word : this->Words)
      {
        const auto [x, y] = this->Layout.Place(word.page, word.side, word.position);
        points->SetPoint(i++, x, y + shift, 0);
      }
    }
    return points;
  }

  /// The points of a line.
  std::array<vtkIdType, 2> PointsOf(std::size_t h, const atlas::AttentionLink& line) const
  {
    const SentencePage& page = this->Layout.PageOf(line.query, line.key);
    const std::size_t number = &page - this->Layout.Pages().data();
    const vtkIdType first = this->FirstOfPage[number] +
                            static_cast<vtkIdType>(h) * static_cast<vtkIdType>(this->Words.size());
    return { first + line.query - page.queryBegin,
      first + page.queryEnd - page.queryBegin + line.key - page.keyBegin };
  }

private:
  const atlas::SentenceLayout& Layout;
  std::vector<Word> Words;
  std::size_t Heads;
  std::vector<vtkIdType> FirstOfPage;
};

/// Repeats an array of words for each head.
template<class Array>
vtkSmartPointer<Array> Repeated(Array* array, std::size_t heads)
{
  const vtkIdType count = array->GetNumberOfValues();
  auto all = NewArray<Array>(array->GetName(), count * static_cast<vtkIdType>(heads));
  for (vtkIdType i = 0; i < all->GetNumberOfValues(); ++i)
  {
    all->SetValue(i, array->GetValue(i % count));
  }
  return all;
}

std::array<std::uint8_t, 4> WithOpacity(const atlas::Rgb& color, double opacity)
{
  return { color[0], color[1], color[2], static_cast<std::uint8_t>(std::lround(255 * opacity)) };
}

/// The lengths of the bars of a head: of each position.
const std::vector<double>& LengthsOf(const SentenceHeads& heads, std::size_t h)
{
  const atlas::SentenceAttention& attention = heads.heads[h].attention;
  return heads.bars == TokenSide::Key ? attention.received : attention.given;
}

/// The length of the longest row of bars, at least a tiny number.
double LongestRow(const SentenceHeads& heads)
{
  double longest = 1e-30;
  for (std::size_t i = 0; i < LengthsOf(heads, 0).size(); ++i)
  {
    double length = 0;
    for (std::size_t h = 0; h < heads.heads.size(); ++h)
    {
      length += LengthsOf(heads, h)[i];
    }
    longest = std::max(longest, length);
  }
  return longest;
}

}

SentenceWords::SentenceWords(const atlas::Recording& recording, std::int64_t chosen)
  : sequence(chosen)
  , hidden(atlas::AttentionLength(recording, chosen))
{
  const bool isOne = chosen != atlas::AllSequences;
  const std::int64_t firstRow = isOne ? recording.sequenceOffsets[chosen] : 0;
  this->endRow = firstRow + static_cast<std::int64_t>(this->hidden.size());
  for (std::int64_t row = firstRow; row < this->endRow; ++row)
  {
    this->rows.push_back(row);
    this->tokens.push_back(isOne ? TokenText(recording, row) : std::to_string(row));
    this->labels.push_back(atlas::ScreenLabel(this->tokens.back()));
  }
}

std::int64_t SentenceWords::WordOf(std::int64_t row) const
{
  return row >= this->endRow
           ? -1
           : std::upper_bound(this->rows.begin(), this->rows.end(), row) - this->rows.begin() - 1;
}

double SentenceWords::Width() const
{
  double width = 0;
  for (const std::string& label : this->labels)
  {
    width = std::max(width, atlas::LabelWidth(label));
  }
  return std::min(width, WidestWord) + 1; // the space before a bar
}

std::string SentenceHeads::Legend() const
{
  atlas::ColorLegend legend("Layer " + std::to_string(this->layer));
  for (std::size_t h = 0; h < this->heads.size(); ++h)
  {
    const int number = this->heads[h].head;
    legend.Add(ColorOf(*this, h),
      number == atlas::AllHeads ? "mean of heads" : "head " + std::to_string(number));
  }
  return legend.Text();
}

std::string SentenceHeads::Signs(const std::string& quantity, bool hasBars) const
{
  const bool isKey = this->bars == TokenSide::Key;
  std::string signs =
    "Lines go from queries, left, to keys, right. Width and strength: " + quantity + ", full at " +
    ShortNumber(this->scale) + ".";
  if (hasBars)
  {
    signs += std::string(" Bars: the sum that each ") + (isKey ? "key receives" : "query gives") +
             ", up to " + ShortNumber(LongestRow(*this)) + ".";
  }
  return signs;
}

void FillWords(const SentenceWords& words, const atlas::SentenceLayout& layout, vtkPolyData* output)
{
  const std::vector<Word> places = WordsOf(layout);
  Shapes vertices;
  for (const Word& word : places)
  {
    const auto [x, y] = layout.Place(word.page, word.side, word.position);
    vertices.AddVertex(x, y);
  }
  vertices.MoveToVerts(output);
  vtkPointData* data = output->GetPointData();
  ListArrays(places, data)
    .Text(ArrayNames::Token, [&](const Word& word) { return words.tokens[word.position]; })
    .Text(ArrayNames::Label, [&](const Word& word) { return words.labels[word.position]; });
  data->AddArray(SidesOf(places));
  ListArrays(places, data)
    .Int(ArrayNames::Sequence, [&](const Word&) { return static_cast<int>(words.sequence); })
    .Int(ArrayNames::Position,
      [&](const Word& word) { return words.rows[word.position] - words.rows.front(); })
    .Byte(ArrayNames::Hidden, [&](const Word& word) { return words.hidden[word.position]; });
  const auto rows = RowsOf(words, places);
  data->AddArray(rows);
  if (words.sequence != atlas::AllSequences)
  {
    data->SetPedigreeIds(rows);
  }
}

void AddSums(const SentenceHeads& heads, const atlas::SentenceLayout& layout, vtkPolyData* words)
{
  const auto meanOf = [&heads](std::vector<double> atlas::SentenceSums::* sums)
  {
    return [&heads, sums](const Word& word)
    {
      double sum = 0;
      for (const SentenceHead& head : heads.heads)
      {
        sum += (head.attention.*sums)[word.position];
      }
      return sum / static_cast<double>(heads.heads.size());
    };
  };
  vtkPointData* data = words->GetPointData();
  ListArrays(WordsOf(layout), data)
    .Float(ArrayNames::Received, meanOf(&atlas::SentenceSums::received))
    .Float(ArrayNames::Given, meanOf(&atlas::SentenceSums::given));
  CacheRanges(data);
}

void FillLines(const SentenceWords& words, const SentenceHeads& heads,
  const atlas::SentenceLayout& layout, vtkPolyData* output)
{
  vtkIdType count = 0;
  for (const SentenceHead& head : heads.heads)
  {
    count += static_cast<vtkIdType>(head.attention.lines.size());
  }
  const auto weight = NewArray<vtkFloatArray>(ArrayNames::Weight, count);
  const auto query = NewArray<vtkIdTypeArray>(ArrayNames::Query, count);
  const auto key = NewArray<vtkIdTypeArray>(ArrayNames::Key, count);
  const auto layer = NewArray<vtkIntArray>(ArrayNames::Layer, count);
  const auto head = NewArray<vtkIntArray>(ArrayNames::Head, count);
  const auto opacity = NewArray<vtkFloatArray>(ArrayNames::Opacity, count);
  const auto colors = NewTuples<vtkUnsignedCharArray>(ArrayNames::HeadColor, 4, count);
  const LineEnds ends(layout, heads.heads.size());
  vtkNew<vtkCellArray> cells;
  cells->AllocateExact(count, 2 * count);
  vtkIdType i = 0;
  for (std::size_t h = 0; h < heads.heads.size(); ++h)
  {
    const atlas::Rgb color = ColorOf(heads, h);
    for (const atlas::AttentionLink& line : heads.heads[h].attention.lines)
    {
      const double share = std::min(static_cast<double>(line.weight) / heads.scale, 1.);
      cells->InsertNextCell(2, ends.PointsOf(h, line).data());
      weight->SetValue(i, line.weight);
      query->SetValue(i, words.rows[line.query]);
      key->SetValue(i, words.rows[line.key]);
      layer->SetValue(i, heads.layer);
      head->SetValue(i, heads.heads[h].head);
      opacity->SetValue(i, static_cast<float>(share));
      colors->SetTypedTuple(i++, WithOpacity(color, share).data());
    }
  }
  output->SetPoints(ends.MakePoints());
  output->SetLines(cells);
  vtkPointData* points = output->GetPointData();
  const auto rows = Repeated(RowsOf(words, ends.GetWords()).Get(), heads.heads.size());
  points->AddArray(rows);
  if (words.sequence != atlas::AllSequences)
  {
    points->SetPedigreeIds(rows);
  }
  points->AddArray(Repeated(SidesOf(ends.GetWords()).Get(), heads.heads.size()));
  for (vtkDataArray* array :
    std::initializer_list<vtkDataArray*>{ weight, query, key, layer, head, opacity, colors })
  {
    output->GetCellData()->AddArray(array);
  }
  CacheRanges(output->GetCellData());
}

void FillBars(const SentenceWords& words, const SentenceHeads& heads,
  const atlas::SentenceLayout& layout, vtkPolyData* output)
{
  const bool isKey = heads.bars == TokenSide::Key;
  const double perWeight = (isKey ? 1 : -1) * atlas::SentenceLayout::BarLength / LongestRow(heads);
  struct Bar
  {
    double sum;
    vtkIdType row;
    std::size_t head;
  };
  std::vector<Bar> bars;
  Shapes shapes;
  for (const Word& word : WordsOf(layout))
  {
    if (word.side != heads.bars || !layout.HasBars(word.page, word.side))
    {
      continue;
    }
    double x = layout.BarsBegin(word.page, word.side);
    const double y = layout.Place(word.page, word.side, word.position)[1];
    for (std::size_t h = 0; h < heads.heads.size(); ++h)
    {
      const double sum = LengthsOf(heads, h)[word.position];
      if (sum > 0)
      {
        const double end = x + perWeight * sum;
        shapes.AddRectangle(
          std::min(x, end), y - BarHeight / 2, std::max(x, end), y + BarHeight / 2);
        bars.push_back({ sum, words.rows[word.position], h });
        x = end;
      }
    }
  }
  shapes.MoveToPolys(output);
  ListArrays(bars, output->GetCellData())
    .Float(isKey ? ArrayNames::Received : ArrayNames::Given, &Bar::sum)
    .Id(ArrayNames::TokenIndex, &Bar::row)
    .Int(ArrayNames::Layer, [&](const Bar&) { return heads.layer; })
    .Int(ArrayNames::Head, [&](const Bar& bar) { return heads.heads[bar.head].head; })
    .Tuples(ArrayNames::HeadColor,
      [&](const Bar& bar) { return WithOpacity(ColorOf(heads, bar.head), 1); });
}

}
