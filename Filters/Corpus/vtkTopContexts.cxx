#include "vtkTopContexts.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Corpus/ScoreParts.h"
#include "CorpusConversion.h"
#include "DataFormat.h"
#include "Drawing/ColorLegend.h"
#include "Drawing/LabelPlacement.h"
#include "ListArrays.h"
#include "Shapes.h"
#include "Task.h"
#include "Text/ScreenText.h"
#include "TitleFields.h"

#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using atlas::TopContext;

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

/// Queries green, keys pink, both gray, as queries and keys of a HeadEmbedding; light enough for
/// black letters.
constexpr std::array<atlas::Rgb, 3> MarkColors = { { { 166, 219, 160 }, { 247, 178, 217 },
  { 200, 200, 200 } } };

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
  return std::abs(position - context.query) <= around ||
         (context.key >= 0 && std::abs(position - context.key) <= around);
}

std::string TokenAt(
  const atlas::CorpusStatistics& statistics, const TopContext& context, std::int32_t position)
{
  return position < 0 ? "" : KindText(statistics, FindKind(statistics, context.tokens[position]));
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

/// A word of a text, or several between marks.
struct Word
{
  std::string text;
  int rank;
  Kind kind;
  bool endsAtPoint; ///< it is to the left of its point, otherwise to the right
};

/// Words and rectangles, a text below another.
class Page
{
public:
  Page(const atlas::CorpusStatistics& statistics, int around)
    : Statistics(statistics)
    , Around(around)
  {
  }

  void Add(const TopContext& context)
  {
    ++this->Rank;
    this->X = 0;
    std::array<char, 32> value;
    const double size = std::abs(context.value);
    if (size >= 0.001 && size < 10)
    {
      std::snprintf(value.data(), value.size(), "%d.  %.3f", this->Rank, context.value);
    }
    else
    {
      std::snprintf(value.data(), value.size(), "%d.  %.3g", this->Rank, context.value);
    }
    this->AddPiece({ value.data(), NEITHER, false });
    this->X = std::max(this->X, 3.5);
    for (const Piece& piece : this->PiecesOf(context))
    {
      this->AddPiece(piece);
    }
    constexpr double Half = 0.5;
    const double y = -static_cast<double>(this->Rank);
    this->Texts.AddRectangle(0, y - Half, this->X, y + Half, Behind);
  }

  void MoveTo(vtkPolyData* words, vtkPolyData* marks, vtkPolyData* texts)
  {
    this->Vertices.MoveToVerts(words);
    ListArrays(this->Words, words->GetPointData())
      .Text(Names::Token, &Word::text)
      .Byte(Names::Side, [](const Word& word) { return word.endsAtPoint ? 0 : 1; })
      .Int(Names::Rank, &Word::rank)
      .Int(Names::Kind, &Word::kind)
      .Tuples(Names::MarkColor, [](const Word& word)
        { return word.kind != NEITHER ? MarkColors.at(word.kind) : atlas::Rgb{ 255, 255, 255 }; });
    SetFormat(words, Formats::TopContextWords);
    this->Rectangles.MoveToPolys(marks);
    ListArrays(this->Marks, marks->GetCellData())
      .Int(Names::Rank, &Word::rank)
      .Int(Names::Kind, &Word::kind)
      .Tuples(Names::MarkColor, [](const Word& mark) { return MarkColors.at(mark.kind); });
    SetFormat(marks, Formats::TopContextMarks);
    for (vtkPolyData* marked : { words, marks })
    {
      AddField(marked->GetFieldData(), Names::MarkColorLegend, this->Legend());
    }
    this->Texts.MoveToPolys(texts);
    std::vector<int> ranks(this->Rank);
    std::iota(ranks.begin(), ranks.end(), 1);
    ListArrays(ranks, texts->GetCellData()).Int(Names::Rank);
    SetFormat(texts, Formats::TopContextMarks);
  }

private:
  static constexpr double Behind = -0.01; ///< z of what is behind words

  const atlas::CorpusStatistics& Statistics;
  int Around;
  int Rank = 0;
  double X = 0;
  Shapes Vertices;
  std::vector<Word> Words;
  Shapes Rectangles;
  Shapes Texts;
  std::vector<Word> Marks; ///< words with a rectangle

  /// A mark, or the words before or behind one, which are one label.
  struct Piece
  {
    std::string text;
    Kind kind;
    bool joinsNext; ///< lies at the next piece, whatever room is left before it
  };

  /// Letters are not exactly as wide as WidthOf says. What is left is where words are left out or
  /// begin, so that marks do not tear words.
  std::vector<Piece> PiecesOf(const TopContext& context) const
  {
    std::vector<Piece> pieces;
    std::string run;
    bool isOpen = true; // whether room may be before the run
    const auto addRun = [&](bool joinsNext)
    {
      if (!run.empty())
      {
        pieces.push_back({ std::exchange(run, {}), NEITHER, joinsNext });
      }
      isOpen = true;
    };
    bool isLeftOut = false;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(context.tokens.size()); ++i)
    {
      const bool isNear = IsNear(context, i, this->Around);
      const std::string token = isNear ? TokenAt(this->Statistics, context, i) : "";
      const Kind kind = KindOf(context, i);
      if (kind != NEITHER)
      {
        addRun(isOpen || token.compare(0, 1, " ") != 0);
        pieces.push_back({ token, kind, false });
        isOpen = false;
      }
      else if (!isNear && !isLeftOut)
      {
        run += Ellipsis;
        if (!pieces.empty())
        {
          addRun(false);
        }
      }
      run += kind == NEITHER ? token : "";
      isLeftOut = !isNear;
    }
    addRun(false);
    return pieces;
  }

  void AddPiece(const Piece& piece)
  {
    const double width = WidthOf(atlas::ScreenLabel(piece.text));
    const double y = -static_cast<double>(this->Rank);
    this->Vertices.AddVertex(this->X + (piece.joinsNext ? width : 0), y);
    this->Words.push_back({ piece.text, this->Rank, piece.kind, piece.joinsNext });
    if (piece.kind != NEITHER)
    {
      constexpr double Half = 0.4;
      this->Rectangles.AddRectangle(this->X, y - Half, this->X + width, y + Half, Behind);
      this->Marks.push_back(this->Words.back());
    }
    this->X += width;
  }

  std::string Legend() const
  {
    const bool hasBoth = std::any_of(
      this->Marks.begin(), this->Marks.end(), [](const Word& mark) { return mark.kind == BOTH; });
    const bool hasKeys =
      this->Marks.empty() || std::any_of(this->Marks.begin(), this->Marks.end(),
                               [](const Word& mark) { return mark.kind != QUERY; });
    atlas::ColorLegend legend("Token");
    for (const auto& [kind, name] :
      { std::pair(QUERY, hasKeys ? "query" : "active"), { KEY, "key" }, { BOTH, "both" } })
    {
      if (kind == QUERY || (kind == KEY && hasKeys) || (kind == BOTH && hasBoth))
      {
        legend.Add(MarkColors.at(kind), name);
      }
    }
    return legend.Text();
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

/// The strongest texts of a feature. Throws OptionError unless the statistics have it.
std::vector<TopContext> TextsOfFeature(const atlas::CorpusStatistics& statistics, int feature)
{
  const auto count = static_cast<std::int64_t>(statistics.features.size());
  atlas::ThrowIf<atlas::OptionError>(count == 0,
    "Feature: expected -1, a head's texts, for "
    "statistics without a dictionary, found ",
    feature, ".");
  atlas::ThrowIf<atlas::OptionError>(feature < -1 || feature >= count,
    "Feature: expected one from 0 to ", count - 1, ", or -1 for the head, found ", feature, ".");
  std::vector<TopContext> contexts = statistics.features[feature].contexts;
  for (TopContext& context : contexts)
  {
    context.key = -1;
  }
  return contexts;
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
  : vtkCorpusAlgorithm({ "vtkTable", "vtkPolyData", "vtkPolyData", "vtkTable", "vtkPolyData" })
{
}

void vtkTopContexts::Show(const atlas::CorpusStatistics& statistics, Task& task)
{
  const bool isFeature = this->Feature != -1;
  const auto ofHead = [&]
  {
    return statistics.heads[atlas::FindCorpusHead(statistics, this->Layer, this->Head)].contexts.at(
      this->Measure);
  };
  std::vector<TopContext> contexts =
    isFeature ? TextsOfFeature(statistics, this->Feature) : ofHead();
  const std::size_t kept = contexts.size();
  contexts.resize(std::min(kept, static_cast<std::size_t>(this->Top)));

  auto* table = task.Output<vtkTable>(0);
  ListArrays(contexts, table->GetRowData())
    .Int(Names::Rank, [rank = 0](const TopContext&) mutable { return ++rank; })
    .Double(Names::Value, &TopContext::value)
    .Id(Names::Document, &TopContext::document)
    .Id(Names::Position,
      [](const TopContext& context) { return vtkIdType{ context.begin } + context.query; })
    .Int(Names::Query, &TopContext::query)
    .Int(Names::Key, &TopContext::key)
    .Text(Names::QueryToken,
      [&](const TopContext& context) { return TokenAt(statistics, context, context.query); })
    .Text(Names::KeyToken,
      [&](const TopContext& context) { return TokenAt(statistics, context, context.key); })
    .Text(Names::Text,
      [&](const TopContext& context) { return TextOf(statistics, context, this->Around); });
  SetFormat(table, Formats::TopContexts);

  Page page(statistics, this->Around);
  for (const TopContext& context : contexts)
  {
    page.Add(context);
  }
  page.MoveTo(
    task.Output<vtkPolyData>(1), task.Output<vtkPolyData>(2), task.Output<vtkPolyData>(4));

  std::vector<std::array<int, 3>> tokens;
  int sequence = 0;
  for (std::size_t i = 0; i < contexts.size(); ++i)
  {
    if (this->Recorded == 0 || this->Recorded == static_cast<int>(i) + 1)
    {
      for (std::size_t t = 0; t < contexts[i].tokens.size(); ++t)
      {
        tokens.push_back({ sequence, static_cast<int>(t), contexts[i].tokens[t] });
      }
      ++sequence;
    }
  }
  auto* prompts = task.Output<vtkTable>(3);
  ListArrays(tokens, prompts->GetRowData())
    .Int(Names::Sequence, [](const auto& token) { return token[0]; })
    .Int(Names::Position, [](const auto& token) { return token[1]; })
    .Int(Names::TokenId, [](const auto& token) { return token[2]; });
  SetFormat(prompts, Formats::TopContextPrompts);
  if (this->Recorded > 0 && static_cast<std::size_t>(this->Recorded) <= contexts.size())
  {
    const TopContext& recorded = contexts[this->Recorded - 1];
    AddField(prompts->GetFieldData(), Names::Query, recorded.query);
    AddField(prompts->GetFieldData(), Names::Key, recorded.key);
  }
  if (!isFeature)
  {
    this->AddHead(task);
  }
  for (int port = 0; port < 5; ++port)
  {
    vtkFieldData* fields = task.Output<vtkDataObject>(port)->GetFieldData();
    AddField(
      fields, MeasureField, isFeature ? "Activation" : MeasureText(statistics, this->Measure));
    if (isFeature)
    {
      AddField(fields, Names::Feature, this->Feature);
      AddField(
        fields, Names::HookName, statistics.dictionary.substr(0, statistics.dictionary.find(',')));
      AddField(fields, ActiveShareField,
        static_cast<double>(statistics.features[this->Feature].active) /
          static_cast<double>(std::max<std::int64_t>(statistics.featureTokens, 1)));
    }
    AddListed(fields, contexts.size(), kept, "texts");
  }
}
