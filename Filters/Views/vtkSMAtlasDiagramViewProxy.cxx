#include "vtkSMAtlasDiagramViewProxy.h"

#include "Coloring.h"
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
#include <vtkSMPropertyHelper.h>
#include <vtkSMSessionProxyManager.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace
{

constexpr const char* Separator = "  \u00B7  ";

/// The properties of a source that say what of its input it shows, in the order of a title. The
/// text, which a narrow view cuts, is behind them.
constexpr const char* TitleProperties[] = { "AttentionKind", "Layer", "Head", "Quantity",
  "Circuit" };

/// Whether a property is shown in the panel: all of its visibility decorators allow it.
bool Applies(vtkSMProperty* property)
{
  vtkPVXMLElement* hints = property->GetHints();
  for (unsigned int i = 0; hints != nullptr && i < hints->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* hint = hints->GetNestedElement(i);
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

/// The words for the value of a property: of an enumeration its text, of a number the label before
/// it, or what the hint AtlasSpecial calls it.
std::string WordsOf(vtkSMProperty* property)
{
  const int value = vtkSMPropertyHelper(property, true).GetAsInt();
  if (auto* words = property->FindDomain<vtkSMEnumerationDomain>())
  {
    const char* text = words->GetEntryTextForValue(value);
    return text != nullptr ? text : "";
  }
  vtkPVXMLElement* hints = property->GetHints();
  for (unsigned int i = 0; hints != nullptr && i < hints->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* hint = hints->GetNestedElement(i);
    int special = 0;
    if (hint->GetName() == std::string("AtlasSpecial") &&
        hint->GetScalarAttribute("value", &special) != 0 && special == value)
    {
      return hint->GetAttributeOrEmpty("text");
    }
  }
  return property->GetXMLLabel() + (" " + std::to_string(value));
}

/// The words for a property of a source; empty if it does not apply.
std::string WordsOf(vtkSMProxy* source, const char* property)
{
  vtkSMProperty* found = source->GetProperty(property);
  return found != nullptr && Applies(found) ? WordsOf(found) : "";
}

/// How the text begins that a representation shows, in quotation marks, or the words for its
/// number.
std::string TextOf(vtkSMProxy* representation, vtkSMProxy* source)
{
  std::string words = WordsOf(source, "Sequence");
  auto* text = AttentionAtlas::ShownData(representation)
                 ->GetArrayInformation("Sequence Text", vtkDataObject::FIELD);
  return !words.empty() && text != nullptr && text->GetNumberOfStringValues() > 0
           ? "\u201C" + std::string(text->GetStringValue(0)) + "\u201D"
           : words;
}

}

vtkStandardNewMacro(vtkSMAtlasDiagramViewProxy);

vtkSMAtlasDiagramViewProxy::vtkSMAtlasDiagramViewProxy()
{
  // Before room is made for bars.
  this->AddObserver(vtkCommand::ResetCameraEvent, this, &vtkSMAtlasDiagramViewProxy::FitAgain, 1);
}

vtkSMAtlasDiagramViewProxy::~vtkSMAtlasDiagramViewProxy() = default;

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
  vtkSMPropertyHelper title(this, "ShownTitle");
  const std::string text = this->MakeTitle();
  if (title.GetAsString() != text)
  {
    title.Set(text.c_str());
    this->UpdateProperty("ShownTitle");
  }
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
  if (vtkSMPropertyHelper(this, "ShowTitle").GetAsInt() == 0)
  {
    return {};
  }
  std::string own = vtkSMPropertyHelper(this, "Title").GetAsString();
  if (!own.empty())
  {
    return own;
  }
  vtkSMPropertyHelper shown(this, "Representations");
  for (unsigned int i = 0; i < shown.GetNumberOfElements(); ++i)
  {
    vtkSMProxy* representation = shown.GetAsProxy(i);
    if (representation == nullptr || representation->GetProperty("Input") == nullptr ||
        vtkSMPropertyHelper(representation, "Visibility", true).GetAsInt() == 0 ||
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
    const char* array =
      vtkSMPropertyHelper(representation, "ColorArrayName", true).GetInputArrayNameToProcess();
    if (source->GetProperty("Quantity") == nullptr && array != nullptr && *array != '\0' &&
        !AttentionAtlas::EndsWith(array, "Color") && title.find(array) == std::string::npos)
    {
      add(array);
    }
    add(TextOf(representation, source));
    return title;
  }
  return {};
}
