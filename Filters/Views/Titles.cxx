#include "Titles.h"

#include "ColorBars.h"
#include "Coloring.h"
#include "NestedElements.h"
#include "ProxyValues.h"
#include "SecondInputs.h"
#include "Text/ScreenText.h"
#include "ViewTexts.h"

#include <vtkChart.h>
#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVContextView.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMEnumerationDomain.h>
#include <vtkSMOrderedPropertyIterator.h>
#include <vtkSMProperty.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewProxy.h>
#include <vtkStdString.h>
#include <vtkTextProperty.h>
#include <vtkTextRenderer.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace AttentionAtlas
{
namespace
{

constexpr const char* Separator = "  \u00B7  ";

/// The annotation of a chart that remembers the title that it has from us.
constexpr const char* TitleAnnotation = "AtlasTitle";

/// The sizes of letters, the distance of lines, and the room around them, in points.
constexpr int TitleFontSize = 13;
constexpr int FontSize = 11;
constexpr double Margin = 6;
constexpr double TitleHeight = 26; // of one line
constexpr double TitleLine = 18;
constexpr double LineHeight = 16;

/// The size of the title of a chart, in points.
constexpr int ChartFontSize = 14;

/// The largest number of characters of a model's name; one that is longer is cut in its middle.
constexpr std::size_t ModelLength = 28;

/// The properties of a source that say what of its input it shows, in the order of a title, behind
/// which are those with the hint AtlasTitle alone, and the texts. A narrow view cuts the end: there
/// are the model and the text.
constexpr std::array<const char*, 10> TitleProperties = { "AttentionKind", "Layer", "Head",
  "Quantity", "Circuit", "Query", "Key", "Target", "TargetToken", "Against" };
constexpr std::array<const char*, 2> TextProperties = { "Prompt", "Sequence" };

/// Whether a property is shown in the panel: all of its visibility decorators allow it.
bool Applies(vtkSMProperty* property)
{
  for (vtkPVXMLElement* hint : ElementsIn(property->GetHints()))
  {
    const char* name = hint->GetAttribute("property");
    const char* value = hint->GetAttribute("value");
    vtkSMProperty* decides = name != nullptr ? property->GetParent()->GetProperty(name) : nullptr;
    if (hint->GetAttributeOrEmpty("mode") == std::string("visibility") && decides != nullptr &&
        value != nullptr && vtkSMPropertyHelper(decides, true).GetAsInt() != std::atoi(value))
    {
      return false;
    }
  }
  return property->GetPanelVisibility() == nullptr ||
         std::string(property->GetPanelVisibility()) != "never";
}

/// What a hint AtlasTitle or AtlasSpecial of a property says about its value; null if nothing.
const char* HintOf(vtkSMProperty* property, const std::string& name, int value)
{
  for (vtkPVXMLElement* hint : ElementsIn(property->GetHints(), name))
  {
    int meant = 0;
    if (hint->GetScalarAttribute("value", &meant) != 0 && meant == value)
    {
      return hint->GetAttributeOrEmpty("text");
    }
  }
  return nullptr;
}

/// The prefix in the hint AtlasTitle of a property, or null if there is none.
const char* PrefixOf(vtkSMProperty* property)
{
  const std::vector<vtkPVXMLElement*> hints = ElementsIn(property->GetHints(), "AtlasTitle");
  return !hints.empty() ? hints.front()->GetAttributeOrEmpty("prefix") : nullptr;
}

std::string Quoted(const std::string& text)
{
  return "\u201C" + text + "\u201D";
}

/// The text of a field array of an output with one value; empty if there is none.
std::string FieldText(vtkPVDataInformation* data, const std::string& name)
{
  auto* array = data->GetArrayInformation(name.c_str(), vtkDataObject::FIELD);
  return array != nullptr && array->GetNumberOfTuples() == 1 &&
             array->GetNumberOfStringValues() == 1
           ? array->GetStringValue(0)
           : "";
}

/// The words of a name such as RepeatedTokens, with spaces between them.
std::string WithSpaces(const std::string& name)
{
  const auto isUpper = [](char letter) { return letter >= 'A' && letter <= 'Z'; };
  const auto isLower = [](char letter) { return letter >= 'a' && letter <= 'z'; };
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i)
  {
    const bool begins = i > 0 && isUpper(name[i]) && isLower(name[i - 1]) && i + 1 < name.size() &&
                        isLower(name[i + 1]);
    words += (begins ? " " : "") + std::string(1, name[i]);
  }
  return words;
}

/// A number with the label of a property, and the token there if the output says it; for `special`
/// values, which choose by themselves, the number that was chosen, or the word for them.
std::string WordsForNumber(
  vtkSMProperty* property, int value, const char* special, vtkPVDataInformation* data)
{
  const std::string name = property->GetXMLName();
  auto* field = data->GetArrayInformation(name.c_str(), vtkDataObject::FIELD);
  const bool isKnown = field != nullptr && field->GetNumberOfTuples() == 1;
  const int shown = isKnown ? static_cast<int>(field->GetComponentRange(0)[0]) : -1;
  if (special != nullptr && shown < 0)
  {
    return special;
  }
  const int number = special != nullptr ? shown : value;
  const bool isToken = number == shown && name != "Sequence"; // whose text is at the end
  const std::string token = isToken ? FieldText(data, name + " Text") : "";
  return property->GetXMLLabel() + (" " + std::to_string(number)) +
         (token.empty() ? token : " " + Quoted(token));
}

/// The words for the value of a property: what the hint AtlasTitle says; of a text the label before
/// it; of an enumeration its text.
std::string WordsOf(vtkSMProperty* property, vtkPVDataInformation* data)
{
  if (property->IsA("vtkSMStringVectorProperty"))
  {
    const std::string text = vtkSMPropertyHelper(property, true).GetAsString();
    return text.empty() ? text : property->GetXMLLabel() + (" " + Quoted(text));
  }
  const int value = vtkSMPropertyHelper(property, true).GetAsInt();
  if (const char* title = HintOf(property, "AtlasTitle", value))
  {
    return title;
  }
  if (auto* words = property->FindDomain<vtkSMEnumerationDomain>())
  {
    const char* text = words->GetEntryTextForValue(value);
    const char* prefix = PrefixOf(property);
    return text != nullptr ? (prefix != nullptr ? prefix : "") + WithSpaces(text) : "";
  }
  return WordsForNumber(property, value, HintOf(property, "AtlasSpecial", value), data);
}

/// The words for a list of heads, which stands in for the property Head; empty for an empty list.
std::string HeadsOf(vtkSMProperty* list)
{
  std::string words;
  const vtkSMPropertyHelper heads(list, true);
  for (unsigned int i = 0; i < heads.GetNumberOfElements(); ++i)
  {
    const int head = heads.GetAsInt(i);
    words += (i == 0 ? "Heads " : ", ") + (head < 0 ? std::string("mean") : std::to_string(head));
  }
  return words;
}

/// The words for a property of a source; empty if it does not apply.
std::string WordsOf(vtkSMProxy* source, const char* property, vtkPVDataInformation* data)
{
  vtkSMProperty* found = source->GetProperty(property);
  const bool isHead = found != nullptr && property == std::string("Head");
  vtkSMProperty* list = isHead ? source->GetProperty("Heads") : nullptr;
  const std::string heads = list != nullptr ? HeadsOf(list) : "";
  return !heads.empty() ? heads : found != nullptr && Applies(found) ? WordsOf(found, data) : "";
}

/// The words for a place that a source does not choose itself: that of the nearest source before it
/// which chooses a layer, head or sequence.
std::string WordsBefore(vtkSMProxy* source, const std::string& property)
{
  for (vtkSMSourceProxy* before : UpstreamOf(source))
  {
    if (before->GetProperty("Layer") != nullptr && before->GetProperty("Head") != nullptr)
    {
      return WordsOf(before, property.c_str(), before->GetDataInformation(0));
    }
  }
  return {};
}

/// The properties of a source that are in its title, in their order.
std::vector<std::string> TitlePropertiesOf(vtkSMProxy* source)
{
  std::vector<std::string> names(TitleProperties.begin(), TitleProperties.end());
  vtkNew<vtkSMOrderedPropertyIterator> properties;
  properties->SetProxy(source);
  for (properties->Begin(); !properties->IsAtEnd(); properties->Next())
  {
    const std::string name = properties->GetKey();
    if (PrefixOf(properties->GetProperty()) != nullptr &&
        std::count(names.begin(), names.end(), name) +
            std::count(TextProperties.begin(), TextProperties.end(), name) ==
          0)
    {
      names.push_back(name);
    }
  }
  names.insert(names.end(), TextProperties.begin(), TextProperties.end());
  return names;
}

/// The name of the file that a reader reads, without the ending; empty for other sources.
std::string FileOf(vtkSMProxy* source)
{
  for (const char* name : { "FileName", "FileNames" })
  {
    vtkSMPropertyHelper file(source, name, true);
    if (file.GetNumberOfElements() > 0 && file.GetAsString() != nullptr)
    {
      return std::filesystem::path(file.GetAsString()).stem().string();
    }
  }
  return {};
}

/// What the model is called from which a source has its data; empty if that is not known.
std::string ModelOf(vtkSMProxy* source)
{
  std::string file;
  for (vtkSMSourceProxy* before : UpstreamOf(source))
  {
    for (unsigned int port = 0; port < before->GetNumberOfOutputPorts(); ++port)
    {
      const std::string name = FieldText(before->GetDataInformation(port), "Model Name");
      if (!name.empty())
      {
        return name;
      }
    }
    file = file.empty() ? FileOf(before) : file;
  }
  return file;
}

/// Whether a byte of UTF-8 is one behind the first of a character.
bool Continues(char byte)
{
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// A name with at most ModelLength characters.
std::string Shortened(const std::string& name)
{
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < name.size(); ++i)
  {
    if (!Continues(name[i]))
    {
      begins.push_back(i);
    }
  }
  constexpr std::size_t Half = ModelLength / 2;
  return begins.size() <= ModelLength ? name
                                      : name.substr(0, begins[Half]) + Ellipsis +
                                          name.substr(begins[begins.size() - Half + 1]);
}

/// What a source is called: as in the pipeline browser, or in words if that is the name that
/// ParaView gave it.
std::string NameOf(vtkSMProxy* source)
{
  const char* registered = source->GetSessionProxyManager()->GetProxyName("sources", source);
  const std::string name = registered != nullptr ? registered : "";
  const std::string kind = source->GetXMLName();
  const bool isGiven =
    name.compare(0, kind.size(), kind) != 0 ||
    std::any_of(name.begin() + static_cast<std::ptrdiff_t>(kind.size()), name.end(),
      [](unsigned char letter) { return std::isdigit(letter) == 0; });
  return !name.empty() && isGiven ? name : source->GetXMLLabel();
}

/// The array that colors a representation, in words; empty if `said` names it.
std::string ArrayOf(vtkSMProxy* representation, const std::string& said)
{
  if (representation->GetProperty("ColorArrayName") == nullptr) // a chart
  {
    return {};
  }
  const Coloring coloring(representation);
  const std::string words = coloring.Title().empty() ? coloring.array : coloring.Title();
  vtkSMProxy* source = vtkSMPropertyHelper(representation, "Input").GetAsProxy();
  const bool isSaid = coloring.array.empty() || EndsWith(coloring.array, "Color") ||
                      said.find(coloring.array) != std::string::npos ||
                      source->GetProperty(coloring.array.c_str()) != nullptr; // found by it
  return isSaid ? "" : words;
}

/// A title as vtkPVContextView takes it, which replaces what is in braces.
std::string Escaped(const std::string& title)
{
  std::string escaped;
  for (const char letter : title)
  {
    escaped += letter == '{' || letter == '}' ? std::string(2, letter) : std::string(1, letter);
  }
  return escaped;
}

/// The title of a chart, cut to the width of its plot.
std::string FittedTitle(vtkSMViewProxy* view)
{
  vtkNew<vtkTextProperty> style;
  style->SetFontFamilyToArial();
  style->SetFontSize(Number(view, "ChartTitleFontSize"));
  const auto widthOf = [&style](const std::string& text) -> double
  {
    constexpr int Dpi = 72; // of charts
    std::array<int, 4> box = { 0, -1, 0, -1 };
    vtkTextRenderer::GetInstance()->GetBoundingBox(style, vtkStdString(text), box.data(), Dpi);
    return box[1] - box[0] + 1;
  };
  constexpr double Margins = 90; // beside the plot, above whose middle it is
  const double width = vtkSMPropertyHelper(view, "ViewSize").GetAsDouble(0) - Margins;
  return Escaped(CutText(atlas::ScreenText(MakeTitle(view)), width, widthOf));
}

/// Lets a title end above the plot, not behind its upper border.
void RaiseTitle(vtkSMViewProxy* view)
{
  auto* context = vtkPVContextView::SafeDownCast(view->GetClientSideObject());
  auto* chart = context != nullptr ? vtkChart::SafeDownCast(context->GetContextItem()) : nullptr;
  if (chart != nullptr)
  {
    chart->GetTitleProperties()->SetVerticalJustificationToBottom();
  }
}

void TitleChart(vtkSMViewProxy* view)
{
  vtkSMPropertyHelper shown(view, "ChartTitle");
  const char* known = view->GetAnnotation(TitleAnnotation);
  const std::string old = TextOf(shown);
  if (AreBarsByHand() || (known != nullptr && old != known))
  {
    return;
  }
  if (known == nullptr && old.empty() && FirstShown(view) != nullptr)
  {
    vtkSMPropertyHelper(view, "ChartTitleFontSize").Set(ChartFontSize);
  }
  const std::string title = FittedTitle(view);
  if (known == nullptr && (title.empty() || (!old.empty() && old != title)))
  {
    return;
  }
  view->SetAnnotation(TitleAnnotation, title.c_str());
  RaiseTitle(view);
  if (old != title)
  {
    shown.Set(title.c_str());
    view->UpdateVTKObjects();
  }
}

bool HasTitleHint(vtkSMProxy* representation)
{
  vtkPVXMLElement* hint = RepresentationHint(representation);
  return hint != nullptr && hint->FindNestedElementByName("Title") != nullptr;
}

/// The parts of a text that `separator` divides, as many in a line as are at most `width` wide, but
/// at least one. No line for an empty text.
std::vector<std::string> Wrapped(const std::string& text, const std::string& separator,
  double width, const std::function<double(const std::string&)>& widthOf)
{
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();)
  {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + separator.size();
    std::string longer = lines.empty() ? "" : lines.back();
    longer += lines.empty() ? part : separator + part;
    if (lines.empty() || widthOf(longer) > width)
    {
      lines.push_back(part);
    }
    else
    {
      lines.back() = longer;
    }
  }
  return lines;
}

/// Sets a text of a view if it is another.
void SetText(vtkSMViewProxy* view, const char* property, const std::string& text)
{
  if (view->GetProperty(property) != nullptr && TextOf({ view, property }) != text)
  {
    vtkSMPropertyHelper(view, property).Set(text.c_str());
    view->UpdateProperty(property);
  }
}

}

vtkSMProxy* FirstShown(vtkSMProxy* view)
{
  std::vector<vtkSMProxy*> ours = VisibleIn(view);
  ours.erase(std::remove_if(ours.begin(), ours.end(),
               [](vtkSMProxy* proxy) { return RepresentationHint(proxy) == nullptr; }),
    ours.end());
  const auto sourceOf = [](vtkSMProxy* representation)
  { return vtkSMPropertyHelper(representation, "Input").GetAsProxy(); };
  const auto isStep = [&](vtkSMProxy* of, vtkSMProxy* shown)
  {
    const std::vector<vtkSMSourceProxy*> upstream = UpstreamOf(sourceOf(shown));
    return sourceOf(of) != sourceOf(shown) &&
           std::find(upstream.begin(), upstream.end(), sourceOf(of)) != upstream.end();
  };
  const auto found = std::find_if(ours.begin(), ours.end(),
    [&](vtkSMProxy* proxy)
    {
      return std::none_of(
        ours.begin(), ours.end(), [&](vtkSMProxy* shown) { return isStep(proxy, shown); });
    });
  return found != ours.end() ? *found : nullptr;
}

std::string MakeTitle(vtkSMProxy* view)
{
  vtkSMProxy* representation = FirstShown(view);
  if (representation == nullptr)
  {
    return {};
  }
  vtkSMProxy* source = vtkSMPropertyHelper(representation, "Input").GetAsProxy();
  vtkPVDataInformation* data = ShownData(representation);
  const auto join = [](const std::string& title, const std::string& words)
  { return title + (words.empty() || title.empty() ? "" : Separator) + words; };
  const bool choosesPlace = source->GetProperty("Layer") != nullptr ||
                            source->GetProperty("Head") != nullptr ||
                            source->GetProperty("Sequence") != nullptr;
  std::string said = NameOf(source);
  for (const std::string& property : TitlePropertiesOf(source))
  {
    const bool isPlace = property == "Layer" || property == "Head" || property == "Sequence";
    said = join(said, isPlace && !choosesPlace ? WordsBefore(source, property)
                                               : WordsOf(source, property.c_str(), data));
  }
  // Of several scores of a head, the one that is shown.
  if (source->GetProperty("Quantity") == nullptr)
  {
    said = join(said, ArrayOf(representation, said));
  }
  const std::string heads = FieldText(data, "Head Name"); // of a pair
  said = join(said, heads.empty() ? heads : "Heads " + heads);
  said = join(said, FieldText(data, "Listed"));
  const std::string model = ModelOf(source);
  const bool isFile = said.compare(0, model.size(), model) == 0; // that is shown itself
  said = join(said, isFile ? "" : Shortened(model));
  const std::string text = FieldText(data, "Sequence Text");
  return join(said, text.empty() ? text : Quoted(text));
}

std::string MakeExplanation(vtkSMProxy* view)
{
  std::string all;
  const auto add = [&all](const std::string& text)
  {
    if (all.find(text) == std::string::npos)
    {
      all += (all.empty() ? "" : " ") + text;
    }
  };
  vtkSMProxy* first = FirstShown(view);
  vtkPVXMLElement* hint = first != nullptr ? RepresentationHint(first) : nullptr;
  vtkPVXMLElement* words = hint != nullptr ? hint->FindNestedElementByName("Explanation") : nullptr;
  add(words != nullptr ? words->GetAttributeOrEmpty("text") : "");
  for (vtkSMProxy* shown : VisibleIn(view))
  {
    if (shown->GetProperty("Input") != nullptr)
    {
      add(FieldText(ShownData(shown), "Signs"));
    }
  }
  return all;
}

void ShowTitle(vtkSMViewProxy* view)
{
  if (view->GetProperty("ChartTitle") != nullptr && view->GetProperty("ViewSize") != nullptr)
  {
    TitleChart(view);
  }
  else if (view->GetProperty("ShownTitle") != nullptr)
  {
    const std::string own = TextOf({ view, "Title" });
    const bool isShown = Number(view, "ShowTitle") != 0;
    SetText(view, "ShownTitle", !isShown ? "" : own.empty() ? MakeTitle(view) : own);
    SetText(view, "ShownExplanation", isShown && own.empty() ? MakeExplanation(view) : "");
  }
}

void SwitchTitleOn(vtkSMProxy* representation, vtkSMViewProxy* view)
{
  if (!HasTitleHint(representation) || AreBarsByHand() || view->GetProperty("ShowTitle") == nullptr)
  {
    return;
  }
  vtkSMPropertyHelper shown(view, "Representations");
  for (unsigned int i = 0; i < shown.GetNumberOfElements(); ++i)
  {
    vtkSMProxy* other = shown.GetAsProxy(i);
    if (other != nullptr && other != representation && HasTitleHint(other))
    {
      return; // the user may have switched it off since
    }
  }
  vtkSMPropertyHelper(view, "ShowTitle").Set(1);
}

std::string CutText(const std::string& text, double width,
  const std::function<double(const std::string&)>& widthOf, KeptPart kept)
{
  if (widthOf(text) <= width)
  {
    return text;
  }
  // With `size` bytes or fewer, so that characters are whole.
  const auto cut = [&text, kept](std::size_t size)
  {
    std::size_t begin = kept == KeptPart::End ? 0 : kept == KeptPart::Both ? size / 2 : size;
    while (begin > 0 && Continues(text[begin]))
    {
      --begin;
    }
    std::size_t end = kept == KeptPart::Begin ? text.size() : text.size() - (size - begin);
    while (end < text.size() && Continues(text[end]))
    {
      ++end;
    }
    return text.substr(0, begin) + Ellipsis + text.substr(end);
  };
  std::size_t fits = 0;
  for (std::size_t above = text.size(); above - fits > 1;)
  {
    const std::size_t middle = fits + (above - fits) / 2;
    (widthOf(cut(middle)) <= width ? fits : above) = middle;
  }
  return cut(fits);
}

TitleLines::TitleLines(
  ViewTexts& texts, const std::string& title, const std::string& explanation, double beside)
{
  constexpr std::size_t most = 2;
  const double room = (2 * Margin + beside) / texts.GetPoint();
  const double width = static_cast<double>(texts.GetSize()[0]) / texts.GetTiles()[0] - room;
  const auto widthOf = [&texts](int fontSize)
  {
    return [&texts, fontSize](const std::string& text) -> double
    { return texts.Measure(text, fontSize)[0]; };
  };
  this->Title = Wrapped(atlas::ScreenText(title), Separator, width, widthOf(TitleFontSize));
  if (this->Title.size() > most)
  {
    for (std::size_t i = most; i < this->Title.size(); ++i)
    {
      this->Title[most - 1] += Separator + this->Title[i];
    }
    this->Title.resize(most);
  }
  this->Explanation = Wrapped(explanation, " ", width, widthOf(FontSize));
  for (auto [lines, fontSize] :
    { std::pair(&this->Title, TitleFontSize), std::pair(&this->Explanation, FontSize) })
  {
    for (std::string& line : *lines)
    {
      line = texts.Cut(line, fontSize, width);
    }
  }
}

double TitleLines::Height() const
{
  return TitleHeight + TitleLine * (std::max(1., static_cast<double>(this->Title.size())) - 1) +
         LineHeight * static_cast<double>(this->Explanation.size());
}

void TitleLines::Show(ViewTexts& texts) const
{
  const auto size = texts.GetSize();
  const auto tiles = texts.GetTiles();
  const double point = 1 / texts.GetPoint();
  const auto show = [&](const std::string& text, int fontSize, bool isFaint, double below)
  {
    texts.Show(text, { fontSize, ViewTexts::Along::Left, ViewTexts::Across::Top, false, isFaint },
      { Margin * point * tiles[0], size[1] - below * point * tiles[1] });
  };
  double below = Margin;
  for (const std::string& line : this->Title)
  {
    show(line, TitleFontSize, false, below);
    below += TitleLine;
  }
  below = this->Height() - LineHeight * static_cast<double>(this->Explanation.size());
  for (const std::string& line : this->Explanation)
  {
    show(line, FontSize, false, below);
    below += LineHeight;
  }
}

}
