#include "RepresentationDefaults.h"

#include "ClassPalette.h"

#include <vtkCommand.h>
#include <vtkDataObject.h>
#include <vtkNew.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVSession.h>
#include <vtkPVXMLElement.h>
#include <vtkProcessModule.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMProxyManager.h>
#include <vtkSMSession.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSessionIterator.h>
#include <vtkSmartPointer.h>
#include <vtkWeakPointer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace
{

constexpr const char* VocabularySizeField = "VocabularySize";
/// Legends of more classes than this could not be read.
constexpr int MaximumLegend = 1024;

bool EndsWith(const std::string& text, const std::string& end)
{
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool StartsWith(const std::string& text, const std::string& begin)
{
  return text.compare(0, begin.size(), begin) == 0;
}

/// What a representation shows: the array that colours it and the data that the array is of.
struct Coloring
{
  std::string array;
  vtkPVArrayInformation* arrayInformation = nullptr;
  int classes = 0; ///< 0 if the data are not ours

  explicit Coloring(vtkSMProxy* representation)
  {
    vtkSMPropertyHelper input(representation, "Input", true);
    auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
    vtkSMPropertyHelper color(representation, "ColorArrayName", true);
    const char* name = color.GetInputArrayNameToProcess();
    if (producer == nullptr || name == nullptr)
    {
      return;
    }
    this->array = name;
    vtkPVDataInformation* data = producer->GetDataInformation(input.GetOutputPort());
    this->arrayInformation = data->GetArrayInformation(name, color.GetInputArrayAssociation());
    if (auto* field = data->GetArrayInformation(VocabularySizeField, vtkDataObject::FIELD))
    {
      this->classes = static_cast<int>(field->GetComponentRange(0)[1]);
    }
  }

  bool IsKnown() const { return this->classes > 0 && this->arrayInformation != nullptr; }

  bool ShowsColors() const
  {
    return this->IsKnown() && this->arrayInformation->GetDataType() == VTK_UNSIGNED_CHAR &&
           this->arrayInformation->GetNumberOfComponents() == 3 && EndsWith(this->array, "Color");
  }

  bool ShowsClasses() const
  {
    static const std::array<const char*, 7> names = { "Class", "Target", "Predicted", "First",
      "Second", "ClassColor", "TargetColor" };
    return std::find(names.begin(), names.end(), this->array) != names.end();
  }
};

void KeepRange(vtkSMProxy* table)
{
  vtkSMPropertyHelper(table, "AutomaticRescaleRangeMode").Set(vtkSMTransferFunctionManager::NEVER);
}

std::vector<double> GetDoubles(vtkSMProxy* proxy, const char* property)
{
  return vtkSMPropertyHelper(proxy, property).GetDoubleArray();
}

void SetDoubles(vtkSMProxy* proxy, const char* property, const std::vector<double>& values)
{
  vtkSMPropertyHelper(proxy, property).Set(values.data(), static_cast<unsigned int>(values.size()));
}

/// Gives the classes from `known` to `classes` a legend entry and a colour each.
void SetClassTable(vtkSMProxy* table, int known, int classes)
{
  std::vector<double> colors = GetDoubles(table, "IndexedColors");
  colors.resize(std::min(colors.size(), static_cast<std::size_t>(3 * known)));
  vtkSMPropertyHelper annotations(table, "Annotations");
  annotations.SetNumberOfElements(static_cast<unsigned int>(2 * classes));
  for (int k = known; k < classes; ++k)
  {
    const std::string text = std::to_string(k);
    annotations.Set(static_cast<unsigned int>(2 * k), text.c_str());
    annotations.Set(static_cast<unsigned int>(2 * k + 1), text.c_str());
  }
  for (int k = static_cast<int>(colors.size() / 3); k < classes; ++k)
  {
    for (const std::uint8_t c : atlas::ClassColor(k))
    {
      colors.push_back(c / 255.);
    }
  }
  SetDoubles(table, "IndexedColors", colors);
  // The GUI would replace the legend by the values that it finds in the data, and look through all
  // of them at each Apply.
  vtkSMPropertyHelper(table, "AnnotationsInitialized", true).Set(1);
  KeepRange(table);
  vtkSMPropertyHelper(table, "IndexedLookup").Set(1);
  table->UpdateVTKObjects();
}

/// A continuous scale through `points` (value, red, green, blue) that keeps its range.
void SetScale(vtkSMProxy* table, const std::vector<double>& points)
{
  SetDoubles(table, "RGBPoints", points);
  vtkSMPropertyHelper(table, "ColorSpace").Set("Lab");
  KeepRange(table);
  vtkSMPropertyHelper(table, "ScalarRangeInitialized", true).Set(1);
  table->UpdateVTKObjects();
}

/// Attention and probability: white is 0, black is 1, in every picture.
const std::vector<double> ShareScale = { 0, 1, 1, 1, 1, 0, 0, 0 };

/// Scores: white is 0, where the frontier of the hardmax lies, whatever the range.
std::vector<double> ScoreScale(vtkPVArrayInformation* scores)
{
  const double* range = scores->GetComponentRange(0);
  const double largest = std::max({ std::abs(range[0]), std::abs(range[1]), 1e-30 });
  return { -largest, 0.23, 0.3, 0.75, 0, 1, 1, 1, largest, 0.7, 0.02, 0.15 };
}

/// Gives the lookup table of the coloured array its first look.
void PrepareTable(const Coloring& coloring, vtkSMSessionProxyManager* manager)
{
  const bool share = StartsWith(coloring.array, "Attention ") || coloring.array == "Probability";
  const bool score = StartsWith(coloring.array, "Score ");
  if (!coloring.IsKnown() || !(coloring.ShowsClasses() || share || score))
  {
    return;
  }
  // A table that the manager has to create is new; an older one belongs to the user.
  const unsigned int before = manager->GetNumberOfProxies("lookup_tables");
  vtkNew<vtkSMTransferFunctionManager> tables;
  vtkSMProxy* table = tables->GetColorTransferFunction(coloring.array.c_str(), manager);
  const bool isNew = manager->GetNumberOfProxies("lookup_tables") > before;
  if (coloring.ShowsClasses())
  {
    const int classes = std::min(coloring.classes, MaximumLegend);
    const auto known =
      static_cast<int>(vtkSMPropertyHelper(table, "Annotations").GetNumberOfElements() / 2);
    if (isNew)
    {
      SetClassTable(table, 0, classes);
    }
    else if (vtkSMPropertyHelper(table, "IndexedLookup").GetAsInt() != 0 && known < classes)
    {
      SetClassTable(table, known, classes);
    }
  }
  else if (isNew)
  {
    SetScale(table, share ? ShareScale : ScoreScale(coloring.arrayInformation));
  }
}

/// Sets whether a representation maps its colour array through its table. ParaView's colour map
/// editor answers that by fitting the table that the representation has at that moment, which still
/// is the one of another array, to the range of the new array; so the table is kept as it was.
void SetMapScalars(vtkSMProxy* representation, bool map)
{
  vtkSMPropertyHelper mapScalars(representation, "MapScalars", true);
  if ((mapScalars.GetAsInt() != 0) == map)
  {
    return;
  }
  vtkSMProxy* table = vtkSMPropertyHelper(representation, "LookupTable", true).GetAsProxy();
  vtkSMProxy* opacities =
    vtkSMPropertyHelper(representation, "ScalarOpacityFunction", true).GetAsProxy();
  const std::vector<double> colors =
    table != nullptr ? GetDoubles(table, "RGBPoints") : std::vector<double>();
  const std::vector<double> points =
    opacities != nullptr ? GetDoubles(opacities, "Points") : std::vector<double>();
  mapScalars.Set(map ? 1 : 0);
  if (table != nullptr && GetDoubles(table, "RGBPoints") != colors)
  {
    SetDoubles(table, "RGBPoints", colors);
    table->UpdateVTKObjects();
  }
  if (opacities != nullptr && GetDoubles(opacities, "Points") != points)
  {
    SetDoubles(opacities, "Points", points);
    opacities->UpdateVTKObjects();
  }
}

/// A state that is being loaded, or stepped to by undo and redo, knows how its proxies look.
bool IsRestoring(vtkSMSessionProxyManager* manager)
{
  return manager->GetInLoadXMLState() || !manager->IsStateUpdateNotificationEnabled();
}

/// Follows the array that colours a representation.
class ColoringObserver : public vtkCommand
{
public:
  static ColoringObserver* New() { return new ColoringObserver; }
  vtkTypeMacro(ColoringObserver, vtkCommand);

  void Observe(vtkSMProxy* representation)
  {
    this->Representation = representation;
    representation->GetProperty("ColorArrayName")->AddObserver(vtkCommand::ModifiedEvent, this);
  }

  void Execute(vtkObject*, unsigned long, void*) override { this->Update(); }

  void Update()
  {
    if (this->Representation == nullptr ||
        IsRestoring(this->Representation->GetSessionProxyManager()))
    {
      return;
    }
    const Coloring coloring(this->Representation);
    if (coloring.IsKnown())
    {
      SetMapScalars(this->Representation, !coloring.ShowsColors());
      PrepareTable(coloring, this->Representation->GetSessionProxyManager());
    }
  }

private:
  vtkWeakPointer<vtkSMProxy> Representation;
};

/// Colours a representation by a point or cell array, if its source has it.
void ColorBy(vtkSMProxy* representation, const char* array)
{
  vtkSMPropertyHelper input(representation, "Input", true);
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  vtkPVDataInformation* data = producer->GetDataInformation(input.GetOutputPort());
  for (const int association : { vtkDataObject::CELL, vtkDataObject::POINT })
  {
    if (data->GetArrayInformation(array, association) != nullptr)
    {
      vtkSMPropertyHelper(representation, "ColorArrayName")
        .SetInputArrayToProcess(association, array);
    }
  }
}

/// Sets the properties, and the array that colours, that the hint AtlasRepresentation of the source
/// names. Those with the attribute `ranks` are for servers of several ranks only, those with
/// `port` for that output port.
void ApplyHints(vtkSMProxy* representation)
{
  const vtkSMPropertyHelper input(representation, "Input", true);
  vtkSMProxy* producer = input.GetAsProxy();
  const int outputPort = static_cast<int>(input.GetOutputPort());
  vtkPVXMLElement* hints = producer != nullptr ? producer->GetHints() : nullptr;
  vtkPVXMLElement* ours =
    hints != nullptr ? hints->FindNestedElementByName("AtlasRepresentation") : nullptr;
  const bool manyRanks =
    representation->GetSession()->GetNumberOfProcesses(vtkPVSession::RENDER_SERVER) > 1;
  for (unsigned int i = 0; ours != nullptr && i < ours->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* element = ours->GetNestedElement(i);
    const char* name = element->GetAttributeOrEmpty("name");
    int port = -1;
    if (element->GetScalarAttribute("port", &port) != 0 && port != outputPort)
    {
      continue;
    }
    if (std::string(element->GetName()) == "ColorArray")
    {
      ColorBy(representation, name);
      continue;
    }
    const bool onlyOnRanks = element->GetAttribute("ranks") != nullptr;
    if (representation->GetProperty(name) == nullptr || (onlyOnRanks && !manyRanks))
    {
      continue;
    }
    vtkSMPropertyHelper property(representation, name);
    std::array<double, 3> values;
    if (const char* text = element->GetAttribute("text"))
    {
      property.Set(text);
    }
    const int count = element->GetVectorAttribute("values", 3, values.data());
    for (int c = 0; c < count; ++c) // one by one: integers take no array of doubles
    {
      property.Set(static_cast<unsigned int>(c), values.at(static_cast<std::size_t>(c)));
    }
  }
  representation->UpdateVTKObjects();
}

/// Names the legend of a colour array by what the colours mean, where ParaView would write
/// "ClassColor Magnitude".
void NameLegend(vtkSMProxy* scalarBar)
{
  vtkSMProxy* table = vtkSMPropertyHelper(scalarBar, "LookupTable", true).GetAsProxy();
  const char* name = table != nullptr
                       ? scalarBar->GetSessionProxyManager()->GetProxyName("lookup_tables", table)
                       : nullptr;
  for (const char* meaning : { "Class", "Target" })
  {
    if (name != nullptr && StartsWith(name, std::string(meaning) + "Color."))
    {
      vtkSMPropertyHelper(scalarBar, "Title").Set(meaning);
      vtkSMPropertyHelper(scalarBar, "ComponentTitle").Set("");
      scalarBar->UpdateVTKObjects();
    }
  }
}

/// Meets every representation and legend as it is registered, in every session of the client.
class RepresentationObserver : public vtkCommand
{
public:
  static RepresentationObserver* New() { return new RepresentationObserver; }
  vtkTypeMacro(RepresentationObserver, vtkCommand);

  void ObserveSession(vtkSMSession* session)
  {
    vtkSMSessionProxyManager* manager =
      session != nullptr ? session->GetSessionProxyManager() : nullptr;
    if (manager != nullptr && manager->HasObserver(vtkCommand::RegisterEvent, this) == 0)
    {
      manager->AddObserver(vtkCommand::RegisterEvent, this);
    }
  }

  void Execute(vtkObject* caller, unsigned long event, void* data) override
  {
    if (event == vtkCommand::ConnectionCreatedEvent)
    {
      auto* module = vtkProcessModule::SafeDownCast(caller);
      this->ObserveSession(
        vtkSMSession::SafeDownCast(module->GetSession(*static_cast<vtkIdType*>(data))));
      return;
    }
    const auto* info = static_cast<vtkSMProxyManager::RegisteredProxyInformation*>(data);
    if (info->Type != vtkSMProxyManager::RegisteredProxyInformation::PROXY)
    {
      return;
    }
    const std::string group = info->GroupName;
    const bool isNew = !IsRestoring(info->Proxy->GetSessionProxyManager());
    if (group == "scalar_bars" && isNew)
    {
      NameLegend(info->Proxy);
    }
    if (group == "representations" && info->Proxy->GetProperty("ColorArrayName") != nullptr &&
        info->Proxy->GetProperty("Input") != nullptr)
    {
      this->MeetRepresentation(info->Proxy, isNew);
    }
  }

private:
  void MeetRepresentation(vtkSMProxy* representation, bool isNew)
  {
    vtkNew<ColoringObserver> observer; // the property that it observes keeps it
    observer->Observe(representation);
    if (isNew)
    {
      ApplyHints(representation);
      observer->Update();
      representation->UpdateVTKObjects();
    }
  }
};

}

void InstallRepresentationDefaults()
{
  vtkProcessModule* module = vtkProcessModule::GetProcessModule();
  const auto type = vtkProcessModule::GetProcessType();
  static bool installed = false;
  if (installed || module == nullptr ||
      (type != vtkProcessModule::PROCESS_CLIENT && type != vtkProcessModule::PROCESS_BATCH))
  {
    return;
  }
  installed = true;
  vtkNew<RepresentationObserver> observer; // the module and the sessions keep it
  module->AddObserver(vtkCommand::ConnectionCreatedEvent, observer);
  const auto sessions = vtkSmartPointer<vtkSessionIterator>::Take(module->NewSessionIterator());
  for (sessions->InitTraversal(); !sessions->IsDoneWithTraversal(); sessions->GoToNextItem())
  {
    observer->ObserveSession(vtkSMSession::SafeDownCast(sessions->GetCurrentSession()));
  }
}
