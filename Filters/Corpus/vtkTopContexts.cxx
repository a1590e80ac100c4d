#include "vtkTopContexts.h"

#include "ArrayNames.h"
#include "CorpusConversion.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "LabelPlacement.h"
#include "ScoreParts.h"
#include "ScreenText.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkIdTypeArray.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkTable.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using atlas::TopContext;
using AttentionAtlas::AddColumn;

namespace
{

/// What a word is.
enum Kind
{
  NEITHER = -1,
  QUERY = 0,
  KEY = 1,
  BOTH = 2
};

Kind KindOf(const TopContext& context, std::int32_t position)
{
  if (position == context.query)
  {
    return position == context.key ? BOTH : QUERY;
  }
  return position == context.key ? KEY : NEITHER;
}

constexpr const char* Ellipsis = "\u2026";

bool IsNear(const TopContext& context, std::int32_t position, int around)
{
  return std::abs(position - context.query) <= around || std::abs(position - context.key) <= around;
}

std::string TokenAt(
  const atlas::CorpusStatistics& statistics, const TopContext& context, std::int32_t position)
{
  return AttentionAtlas::KindText(
    statistics, AttentionAtlas::FindKind(statistics, context.tokens[position]));
}

/// About how wide a label is, in rows, with the space behind it.
double WidthOf(const std::string& label)
{
  double width = atlas::LabelWidth(label); // 0.45 for a letter
  for (const char letter : label)
  {
    width -=
      std::string_view("iljtfrI.,:;'|!()[]{}`-").find(letter) != std::string_view::npos ? 0.17 : 0;
    width += std::string_view("mwMW@%").find(letter) != std::string_view::npos ? 0.35 : 0;
  }
  return 0.5 * width + 0.2;
}

/// Words and rectangles, a text below another.
class Page
{
public:
  Page(const atlas::CorpusStatistics& statistics, int around)
    : Statistics(statistics)
    , Around(around)
  {
    this->Sides->SetName(Names::Side);
    this->Texts->SetName(Names::Token);
    this->Ranks->SetName(Names::Rank);
    this->Kinds->SetName(Names::Kind);
    this->MarkRanks->SetName(Names::Rank);
    this->MarkKinds->SetName(Names::Kind);
    this->Colors->SetName(Names::MarkColor);
    this->Colors->SetNumberOfComponents(3);
  }

  void Add(const TopContext& context)
  {
    ++this->Rank;
    this->X = 0;
    this->AddWord(std::to_string(this->Rank) + ".", NEITHER);
    this->X = std::max(this->X, 2.);
    std::string run; // of words between marks, which are one label
    const auto addRun = [this, &run]
    {
      if (!run.empty())
      {
        this->AddWord(run, NEITHER);
        run.clear();
      }
    };
    bool isLeftOut = false;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(context.tokens.size()); ++i)
    {
      const bool isNear = IsNear(context, i, this->Around);
      const Kind kind = KindOf(context, i);
      if (kind != NEITHER)
      {
        addRun();
        this->AddWord(TokenAt(this->Statistics, context, i), kind);
      }
      else if (isNear)
      {
        run += TokenAt(this->Statistics, context, i);
      }
      else if (!isLeftOut)
      {
        run += Ellipsis;
      }
      isLeftOut = !isNear;
    }
    addRun();
  }

  void MoveTo(vtkPolyData* words, vtkPolyData* marks)
  {
    words->SetPoints(this->Points);
    words->SetVerts(this->Vertices);
    for (vtkAbstractArray* array : { static_cast<vtkAbstractArray*>(this->Texts.Get()),
           static_cast<vtkAbstractArray*>(this->Sides.Get()),
           static_cast<vtkAbstractArray*>(this->Ranks.Get()),
           static_cast<vtkAbstractArray*>(this->Kinds.Get()) })
    {
      words->GetPointData()->AddArray(array);
    }
    AttentionAtlas::SetFormat(words, AttentionAtlas::Formats::TopContextWords);
    marks->SetPoints(this->Corners);
    marks->SetPolys(this->Rectangles);
    marks->GetCellData()->AddArray(this->MarkRanks);
    marks->GetCellData()->AddArray(this->MarkKinds);
    marks->GetCellData()->AddArray(this->Colors);
    AttentionAtlas::SetFormat(marks, AttentionAtlas::Formats::TopContextMarks);
  }

private:
  const atlas::CorpusStatistics& Statistics;
  int Around;
  int Rank = 0;
  double X = 0;
  vtkNew<vtkPoints> Points;
  vtkNew<vtkCellArray> Vertices;
  vtkNew<vtkStringArray> Texts;
  vtkNew<vtkUnsignedCharArray> Sides;
  vtkNew<vtkIntArray> Ranks;
  vtkNew<vtkIntArray> Kinds;
  vtkNew<vtkPoints> Corners;
  vtkNew<vtkCellArray> Rectangles;
  vtkNew<vtkIntArray> MarkRanks;
  vtkNew<vtkIntArray> MarkKinds;
  vtkNew<vtkUnsignedCharArray> Colors;

  void AddWord(const std::string& text, Kind kind)
  {
    const double width = WidthOf(atlas::ScreenLabel(text));
    const double y = -static_cast<double>(this->Rank);
    const vtkIdType point = this->Points->InsertNextPoint(this->X, y, 0);
    this->Vertices->InsertNextCell(1, &point);
    this->Texts->InsertNextValue(text);
    this->Sides->InsertNextValue(1);
    this->Ranks->InsertNextValue(this->Rank);
    this->Kinds->InsertNextValue(kind);
    if (kind != NEITHER)
    {
      this->AddMark(width, y, kind);
    }
    this->X += width;
  }

  void AddMark(double width, double y, Kind kind)
  {
    constexpr double Half = 0.4;
    constexpr double Behind = -0.01;
    const std::array<vtkIdType, 4> corners = { this->Corners->InsertNextPoint(
                                                 this->X, y - Half, Behind),
      this->Corners->InsertNextPoint(this->X + width, y - Half, Behind),
      this->Corners->InsertNextPoint(this->X + width, y + Half, Behind),
      this->Corners->InsertNextPoint(this->X, y + Half, Behind) };
    this->Rectangles->InsertNextCell(4, corners.data());
    this->MarkRanks->InsertNextValue(this->Rank);
    this->MarkKinds->InsertNextValue(kind);
    // Queries green, keys pink, both gray, as queries and keys of a HeadEmbedding; light enough for
    // black letters.
    constexpr std::array<std::array<unsigned char, 3>, 3> MarkColors = { { { 166, 219, 160 },
      { 247, 178, 217 }, { 200, 200, 200 } } };
    this->Colors->InsertNextTypedTuple(MarkColors.at(kind).data());
  }
};

/// The text around both, the query in [ ] and the key in ( ).
std::string TextOf(const atlas::CorpusStatistics& statistics, const TopContext& context, int around)
{
  std::string text;
  bool isLeftOut = false;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(context.tokens.size()); ++i)
  {
    const bool isNear = IsNear(context, i, around);
    if (isNear)
    {
      text += i == context.query ? "[" : "";
      text += i == context.key ? "(" : "";
      text += TokenAt(statistics, context, i);
      text += i == context.key ? ")" : "";
      text += i == context.query ? "]" : "";
    }
    else if (!isLeftOut)
    {
      text += Ellipsis;
    }
    isLeftOut = !isNear;
  }
  return text;
}

/// The name of a measure, with what it counts otherwise than the model does.
std::string MeasureText(const atlas::CorpusStatistics& statistics, int measure)
{
  const bool hasBias = statistics.hasAlibi &&
                       static_cast<atlas::ContextMeasure>(measure) == atlas::ContextMeasure::Score;
  return std::string(atlas::ContextMeasureNames.at(measure)) +
         (hasBias ? ", with the bias of ALiBi by distance" : "");
}

}

vtkStandardNewMacro(vtkTopContexts);

vtkTopContexts::vtkTopContexts()
  : vtkCorpusAlgorithm({ "vtkTable", "vtkPolyData", "vtkPolyData", "vtkTable" })
{
}

void vtkTopContexts::Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task)
{
  const std::size_t head = atlas::FindCorpusHead(statistics, this->Layer, this->Head);
  std::vector<TopContext> contexts = statistics.heads[head].contexts.at(this->Measure);
  contexts.resize(std::min(contexts.size(), static_cast<std::size_t>(this->Top)));

  auto* table = task.Output<vtkTable>(0);
  std::vector<int> ranks(contexts.size());
  std::iota(ranks.begin(), ranks.end(), 1);
  AddColumn<vtkIntArray>(table, Names::Rank, ranks);
  AddColumn<vtkDoubleArray>(table, Names::Value, contexts,
    [](const TopContext& context) { return static_cast<double>(context.value); });
  AddColumn<vtkIdTypeArray>(table, Names::Document, contexts,
    [](const TopContext& context) { return static_cast<vtkIdType>(context.document); });
  AddColumn<vtkIdTypeArray>(table, Names::Position, contexts,
    [](const TopContext& context) { return vtkIdType{ context.begin } + context.query; });
  AddColumn<vtkIntArray>(
    table, Names::Query, contexts, [](const TopContext& context) { return context.query; });
  AddColumn<vtkIntArray>(
    table, Names::Key, contexts, [](const TopContext& context) { return context.key; });
  AddColumn<vtkStringArray>(table, Names::QueryToken, contexts,
    [&](const TopContext& context) { return TokenAt(statistics, context, context.query); });
  AddColumn<vtkStringArray>(table, Names::KeyToken, contexts,
    [&](const TopContext& context) { return TokenAt(statistics, context, context.key); });
  AddColumn<vtkStringArray>(table, Names::Text, contexts,
    [&](const TopContext& context) { return TextOf(statistics, context, this->Around); });
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::TopContexts);

  Page page(statistics, this->Around);
  for (const TopContext& context : contexts)
  {
    page.Add(context);
  }
  page.MoveTo(task.Output<vtkPolyData>(1), task.Output<vtkPolyData>(2));

  std::vector<std::array<int, 3>> tokens;
  int sequence = 0;
  for (std::size_t i = 0; i < contexts.size(); ++i)
  {
    if (this->Recorded == 0 || this->Recorded == ranks[i])
    {
      for (std::size_t t = 0; t < contexts[i].tokens.size(); ++t)
      {
        tokens.push_back({ sequence, static_cast<int>(t), contexts[i].tokens[t] });
      }
      ++sequence;
    }
  }
  auto* prompts = task.Output<vtkTable>(3);
  AddColumn<vtkIntArray>(
    prompts, Names::Sequence, tokens, [](const std::array<int, 3>& token) { return token[0]; });
  AddColumn<vtkIntArray>(
    prompts, Names::Position, tokens, [](const std::array<int, 3>& token) { return token[1]; });
  AddColumn<vtkIntArray>(
    prompts, Names::TokenId, tokens, [](const std::array<int, 3>& token) { return token[2]; });
  AttentionAtlas::SetFormat(prompts, AttentionAtlas::Formats::TopContextPrompts);
  if (this->Recorded > 0 && static_cast<std::size_t>(this->Recorded) <= contexts.size())
  {
    const TopContext& recorded = contexts[this->Recorded - 1];
    AttentionAtlas::AddField(prompts->GetFieldData(), Names::Query, recorded.query);
    AttentionAtlas::AddField(prompts->GetFieldData(), Names::Key, recorded.key);
  }
  for (int port = 0; port < 4; ++port)
  {
    vtkFieldData* fields = task.Output<vtkDataObject>(port)->GetFieldData();
    AttentionAtlas::AddField(fields, Names::Layer, this->Layer);
    AttentionAtlas::AddField(fields, Names::Head, this->Head);
    AttentionAtlas::AddField(
      fields, AttentionAtlas::MeasureField, MeasureText(statistics, this->Measure));
  }
}
