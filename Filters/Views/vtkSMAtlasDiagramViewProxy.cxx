#include "vtkSMAtlasDiagramViewProxy.h"

#include "Coloring.h"
#include "ProxyValues.h"
#include "vtkDiagramView.h"

#include <vtkCamera.h>
#include <vtkClientServerStream.h>
#include <vtkCommand.h>
#include <vtkDataObject.h>
#include <vtkObjectFactory.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMEnumerationDomain.h>
#include <vtkSMProperty.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace
{

constexpr const char* Separator = "  \u00B7  ";

/// The properties of a source that say what of its input it shows, in the order of a title. The
/// text, which a narrow view cuts, is behind them.
constexpr const char* TitleProperties[] = { "AttentionKind", "Layer", "Head", "Quantity", "Circuit",
  "Query", "Key", "Target", "TargetToken", "Against" };

/// The hints of a property.
std::vector<vtkPVXMLElement*> HintsOf(vtkSMProperty* property)
{
  std::vector<vtkPVXMLElement*> found;
  vtkPVXMLElement* hints = property->GetHints();
  for (unsigned int i = 0; hints != nullptr && i < hints->GetNumberOfNestedElements(); ++i)
  {
    found.push_back(hints->GetNestedElement(i));
  }
  return found;
}

/// Whether a property is shown in the panel: all of its visibility decorators allow it.
bool Applies(vtkSMProperty* property)
{
  for (vtkPVXMLElement* hint : HintsOf(property))
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
  for (vtkPVXMLElement* hint : HintsOf(property))
  {
    int meant = 0;
    if (hint->GetName() == name && hint->GetScalarAttribute("value", &meant) != 0 && meant == value)
    {
      return hint->GetAttributeOrEmpty("text");
    }
  }
  return nullptr;
}

std::string Quoted(const std::string& text)
{
  return "\u201C" + text + "\u201D";
}

/// The words for the value of a property: what the hint AtlasTitle says; of a text the label before
/// it; of an enumeration its text; of a number the label before it, or what the hint AtlasSpecial
/// calls it.
std::string WordsOf(vtkSMProperty* property)
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
    return text != nullptr ? text : "";
  }
  const char* special = HintOf(property, "AtlasSpecial", value);
  return special != nullptr ? special : property->GetXMLLabel() + (" " + std::to_string(value));
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
std::string WordsOf(vtkSMProxy* source, const char* property)
{
  vtkSMProperty* found = source->GetProperty(property);
  vtkSMProperty* list = property == std::string("Head") ? source->GetProperty("Heads") : nullptr;
  const std::string heads = list != nullptr ? HeadsOf(list) : "";
  return !heads.empty() ? heads : found != nullptr && Applies(found) ? WordsOf(found) : "";
}

/// How the text begins that a representation shows, in quotation marks, or the words for its
/// number.
std::string TextOf(vtkSMProxy* representation, vtkSMProxy* source)
{
  std::string words = WordsOf(source, "Sequence");
  auto* text = AttentionAtlas::ShownData(representation)
                 ->GetArrayInformation("Sequence Text", vtkDataObject::FIELD);
  return !words.empty() && text != nullptr && text->GetNumberOfStringValues() > 0
           ? Quoted(text->GetStringValue(0))
           : words;
}

}

vtkStandardNewMacro(vtkSMAtlasDiagramViewProxy);

vtkSMAtlasDiagramViewProxy::vtkSMAtlasDiagramViewProxy()
{
  // Before room is made for bars.
  this->AddObserver(vtkCommand::ResetCameraEvent, this, &vtkSMAtlasDiagramViewProxy::FitAgain, 1);
}

vtkSMAtlasDiagramViewProxy::Frame vtkSMAtlasDiagramViewProxy::GetFrame()
{
  vtkCamera* camera = this->GetActiveCamera();
  const double* focus = camera->GetFocalPoint();
  return { focus[0], focus[1], camera->GetParallelScale() };
}

void vtkSMAtlasDiagramViewProxy::SetFit(bool on)
{
  vtkSMPropertyHelper(this, "FitToData").Set(on ? 1 : 0);
}

vtkTypeUInt32 vtkSMAtlasDiagramViewProxy::PreRender(bool interactive)
{
  const vtkTypeUInt32 processes = this->Superclass::PreRender(interactive);
  if (this->IsFitting)
  {
    return processes;
  }
  const auto show = [this](const char* name, const std::string& text)
  {
    vtkSMPropertyHelper property(this, name);
    if (property.GetAsString() != text)
    {
      property.Set(text.c_str());
      this->UpdateProperty(name);
    }
  };
  show("ShownTitle", this->MakeTitle());
  show("ShownSigns", this->MakeSigns());
  // ParaView itself moves the focal point when it shows flat data for the first time.
  const Frame frame = this->GetFrame();
  if (this->Fitted && (frame[2] != (*this->Fitted)[2] || (interactive && frame != *this->Fitted)))
  {
    this->SetFit(false);
    this->Fitted.reset();
  }
  if (!interactive && vtkSMPropertyHelper(this, "FitToData").GetAsInt() != 0)
  {
    this->Fit();
  }
  return processes;
}

void vtkSMAtlasDiagramViewProxy::Fit()
{
  this->IsFitting = true;
  vtkClientServerStream stream;
  stream << vtkClientServerStream::Invoke << VTKOBJECT(this) << "ResetCamera"
         << vtkClientServerStream::End;
  this->ExecuteStream(stream);
  this->IsFitting = false;
  this->Fitted = this->GetFrame();
}

/// After the camera is reset, not to a part of the data alone.
void vtkSMAtlasDiagramViewProxy::FitAgain()
{
  auto* view = vtkDiagramView::SafeDownCast(this->GetClientSideObject());
  if (this->IsFitting || view == nullptr)
  {
    return;
  }
  const std::array<double, 6> bounds = view->GetShownBounds();
  const Frame frame = this->GetFrame();
  const double near = 1e-6 * std::max(bounds[1] - bounds[0], bounds[3] - bounds[2]);
  const bool isWhole = std::abs(frame[0] - (bounds[0] + bounds[1]) / 2) <= near &&
                       std::abs(frame[1] - (bounds[2] + bounds[3]) / 2) <= near;
  this->Fitted.reset();
  this->SetFit(isWhole);
}

std::string vtkSMAtlasDiagramViewProxy::MakeTitle()
{
  std::string own = vtkSMPropertyHelper(this, "Title").GetAsString();
  const bool isShown = AttentionAtlas::Number(this, "ShowTitle") != 0;
  if (!isShown || !own.empty())
  {
    return isShown ? own : "";
  }
  vtkSMPropertyHelper shown(this, "Representations");
  for (unsigned int i = 0; i < shown.GetNumberOfElements(); ++i)
  {
    vtkSMProxy* representation = shown.GetAsProxy(i);
    if (representation == nullptr || representation->GetProperty("Input") == nullptr ||
        AttentionAtlas::Number(representation, "Visibility") == 0 ||
        AttentionAtlas::RepresentationHint(representation) == nullptr)
    {
      continue;
    }
    vtkSMProxy* source = vtkSMPropertyHelper(representation, "Input").GetAsProxy();
    const char* name = this->GetSessionProxyManager()->GetProxyName("sources", source);
    std::string title = name != nullptr ? name : source->GetXMLLabel();
    const auto add = [&title](const std::string& words)
    { title += words.empty() ? "" : Separator + words; };
    for (const char* property : TitleProperties)
    {
      add(WordsOf(source, property));
    }
    // Of several scores of a head, the one that is shown.
    const AttentionAtlas::Coloring coloring(representation);
    const std::string& array = coloring.array;
    if (source->GetProperty("Quantity") == nullptr && !array.empty() &&
        !AttentionAtlas::EndsWith(array, "Color") && title.find(array) == std::string::npos)
    {
      const std::string words = coloring.Title();
      add(words.empty() ? array : words);
    }
    add(TextOf(representation, source));
    return title;
  }
  return {};
}

/// What all that is visible says of its signs, each once.
std::string vtkSMAtlasDiagramViewProxy::MakeSigns()
{
  std::string all;
  vtkSMPropertyHelper shown(this, "Representations");
  const bool isShown = AttentionAtlas::Number(this, "ShowTitle") != 0;
  for (unsigned int i = 0; isShown && i < shown.GetNumberOfElements(); ++i)
  {
    vtkSMProxy* representation = shown.GetAsProxy(i);
    if (representation == nullptr || representation->GetProperty("Input") == nullptr ||
        AttentionAtlas::Number(representation, "Visibility") == 0)
    {
      continue;
    }
    auto* signs =
      AttentionAtlas::ShownData(representation)->GetArrayInformation("Signs", vtkDataObject::FIELD);
    const std::string text =
      signs != nullptr && signs->GetNumberOfStringValues() > 0 ? signs->GetStringValue(0) : "";
    if (all.find(text) == std::string::npos)
    {
      all += (all.empty() ? "" : " ") + text;
    }
  }
  return all;
}
