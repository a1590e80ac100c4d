#include "RepresentationDefaults.h"

#include "ClassPalette.h"

#include <vtkCommand.h>
#include <vtkDataObject.h>
#include <vtkNew.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVDataSetAttributesInformation.h>
#include <vtkPVSession.h>
#include <vtkPVXMLElement.h>
#include <vtkProcessModule.h>
#include <vtkSMPVRepresentationProxy.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMProxyManager.h>
#include <vtkSMSession.h>
#include <vtkSMSessionProxyManager.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSMViewProxy.h>
#include <vtkSessionIterator.h>
#include <vtkSmartPointer.h>
#include <vtkWeakPointer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <sstream>
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

/// Whether an array has this name, with or without the number of a head or a class.
bool IsNamed(const std::string& array, const std::string& name)
{
  return array == name || StartsWith(array, name + " ");
}

/// The hint AtlasRepresentation of the source of a representation, or null. Its elements say how a
/// representation begins, in their order: ColorArray (name, or suffix), Property (name, values or
/// text), Discs (see ShowDiscs), HiddenSeries (names of columns, with or without the number of a
/// head, that a chart does not draw, unless asked to). An element with the attribute `port` is for
/// that output port only.
vtkPVXMLElement* RepresentationHint(vtkSMProxy* representation)
{
  vtkSMProxy* producer = vtkSMPropertyHelper(representation, "Input", true).GetAsProxy();
  vtkPVXMLElement* hints = producer != nullptr ? producer->GetHints() : nullptr;
  return hints != nullptr ? hints->FindNestedElementByName("AtlasRepresentation") : nullptr;
}

/// What a representation shows: the array that colours it and the data that the array is of.
struct Coloring
{
  std::string array;
  vtkPVArrayInformation* arrayInformation = nullptr;
  int classes = 0;   ///< of the model that the data come from, 0 if they tell of none
  bool ours = false; ///< from a filter of this plugin, or computed from what one gave

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
    this->ours = this->classes > 0 || RepresentationHint(representation) != nullptr;
  }

  bool IsKnown() const { return this->ours && this->arrayInformation != nullptr; }

  bool ShowsColors() const
  {
    return this->IsKnown() && this->arrayInformation->GetDataType() == VTK_UNSIGNED_CHAR &&
           this->arrayInformation->GetNumberOfComponents() == 3 && EndsWith(this->array, "Color");
  }

  bool ShowsClasses() const
  {
    static const std::array<const char*, 7> names = { "Class", "Target", "Predicted", "First",
      "Second", "ClassColor", "TargetColor" };
    return this->classes > 0 && std::find(names.begin(), names.end(), this->array) != names.end();
  }

  /// Whether the range of the scale is that of the data.
  bool IsFitted() const
  {
    return this->array == "Scores" || this->array == "Content" || this->array == "Bias";
  }

  bool Shows(const std::string& name) const { return IsNamed(this->array, name); }
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

/// A continuous scale through `points` (value, red, green, blue).
void SetScale(vtkSMProxy* table, const std::vector<double>& points, bool keepRange)
{
  SetDoubles(table, "RGBPoints", points);
  vtkSMPropertyHelper(table, "ColorSpace").Set("Lab");
  if (keepRange)
  {
    KeepRange(table);
  }
  vtkSMPropertyHelper(table, "ScalarRangeInitialized", true).Set(1);
  table->UpdateVTKObjects();
}

/// Attention and probability: white is 0, black is 1, in every picture.
const std::vector<double> ShareScale = { 0, 1, 1, 1, 1, 0, 0, 0 };

/// Accuracy: white is 0, dark orange is 1.
const std::vector<double> AccuracyScale = { 0, 1, 0.96, 0.92, 0.5, 0.99, 0.55, 0.23, 1, 0.5, 0.15,
  0.01 };

/// Weights of AttentionMap: white is 0, dark blue is 1.
const std::vector<double> WeightScale = { 0, 1, 1, 1, 0.2, 0.91, 0.95, 1, 0.4, 0.62, 0.79, 0.88,
  0.6, 0.26, 0.57, 0.78, 0.8, 0.03, 0.32, 0.61, 1, 0.03, 0.15, 0.36 };

/// Scores: white is 0, where the frontier of the hardmax lies, whatever the range.
std::vector<double> ScoreScale(vtkPVArrayInformation* scores)
{
  const double* range = scores->GetComponentRange(0);
  const double largest = std::max({ std::abs(range[0]), std::abs(range[1]), 1e-30 });
  return { -largest, 0.23, 0.3, 0.75, 0, 1, 1, 1, largest, 0.7, 0.02, 0.15 };
}

/// What goes into the softmax of AttentionMap: light to dark orange over the range of the data.
std::vector<double> RangeScale(vtkPVArrayInformation* values)
{
  const double* range = values->GetComponentRange(0);
  const double low = range[0];
  const double step = std::max(range[1] - range[0], 1e-30) / 4;
  return { low, 1, 0.96, 0.92, low + step, 0.99, 0.82, 0.64, low + 2 * step, 0.99, 0.55, 0.24,
    low + 3 * step, 0.85, 0.28, 0, low + 4 * step, 0.5, 0.15, 0.02 };
}

/// Angles, from -pi to pi: reds for the first token's and blues for the second's, as in the source
/// document.
std::vector<double> AngleScale(bool first)
{
  const double pi = std::acos(-1.0);
  return first
           ? std::vector<double>{ -pi, 1, 0.94, 0.9, 0, 0.94, 0.36, 0.26, pi, 0.4, 0, 0.05 }
           : std::vector<double>{ -pi, 0.93, 0.96, 1, 0, 0.32, 0.6, 0.82, pi, 0.03, 0.19, 0.42 };
}

/// The scale of an array whose values have the same range in every picture; none for others.
std::vector<double> FixedScale(const Coloring& coloring)
{
  if (coloring.Shows("Attention") || coloring.array == "Probability")
  {
    return ShareScale;
  }
  if (coloring.Shows("Accuracy"))
  {
    return AccuracyScale;
  }
  if (coloring.array == "Weights")
  {
    return WeightScale;
  }
  if (coloring.array == "Theta1" || coloring.array == "Theta2")
  {
    return AngleScale(coloring.array == "Theta1");
  }
  return {};
}

/// Gives the lookup table of the coloured array its first look, unless somebody has fitted or
/// annotated it already: then it is the user's. Classes that it lacks are added to it.
void PrepareTable(const Coloring& coloring, vtkSMSessionProxyManager* manager)
{
  const std::vector<double> fixed = FixedScale(coloring);
  const bool score = coloring.Shows("Score") && coloring.arrayInformation != nullptr;
  const bool fitted = coloring.IsFitted() && coloring.arrayInformation != nullptr;
  if (fixed.empty() && !score && !fitted && !coloring.ShowsClasses())
  {
    return;
  }
  vtkNew<vtkSMTransferFunctionManager> tables;
  vtkSMProxy* table = tables->GetColorTransferFunction(coloring.array.c_str(), manager);
  const bool isIndexed = vtkSMPropertyHelper(table, "IndexedLookup").GetAsInt() != 0;
  const bool isNew =
    !isIndexed && vtkSMPropertyHelper(table, "ScalarRangeInitialized", true).GetAsInt() == 0;
  if (coloring.ShowsClasses())
  {
    const int classes = std::min(coloring.classes, MaximumLegend);
    const auto known =
      static_cast<int>(vtkSMPropertyHelper(table, "Annotations").GetNumberOfElements() / 2);
    if (isNew)
    {
      SetClassTable(table, 0, classes);
    }
    else if (isIndexed && known < classes)
    {
      SetClassTable(table, known, classes);
    }
  }
  else if (isNew && fitted)
  {
    SetScale(table, RangeScale(coloring.arrayInformation), false);
  }
  else if (isNew)
  {
    SetScale(table, score ? ScoreScale(coloring.arrayInformation) : fixed, true);
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

/// The data that a representation shows.
vtkPVDataInformation* ShownData(vtkSMProxy* representation)
{
  vtkSMPropertyHelper input(representation, "Input", true);
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  return producer->GetDataInformation(input.GetOutputPort());
}

/// Colours a representation whose array is gone by the first point array of its data, if its source
/// has the hint FollowArray: the name of the only array tells what it holds.
void FollowArray(vtkSMProxy* representation)
{
  vtkPVXMLElement* hint = RepresentationHint(representation);
  if (hint == nullptr || hint->FindNestedElementByName("FollowArray") == nullptr)
  {
    return;
  }
  vtkPVDataSetAttributesInformation* arrays =
    ShownData(representation)->GetAttributeInformation(vtkDataObject::POINT);
  const char* name =
    vtkSMPropertyHelper(representation, "ColorArrayName", true).GetInputArrayNameToProcess();
  if (name == nullptr || *name == '\0' || arrays == nullptr || arrays->GetNumberOfArrays() == 0 ||
      arrays->GetArrayInformation(name) != nullptr)
  {
    return;
  }
  vtkSMProxy* view = vtkSMViewProxy::FindView(representation);
  vtkSmartPointer<vtkSMProxy> table =
    vtkSMPropertyHelper(representation, "LookupTable", true).GetAsProxy();
  const bool hasBar =
    view != nullptr && vtkSMPVRepresentationProxy::IsScalarBarVisible(representation, view);
  vtkSMPVRepresentationProxy::SetScalarColoring(
    representation, arrays->GetArrayInformation(0)->GetName(), vtkDataObject::POINT);
  if (hasBar)
  {
    vtkNew<vtkSMTransferFunctionManager> tables;
    tables->HideScalarBarIfNotNeeded(table, view);
    vtkSMPVRepresentationProxy::SetScalarBarVisibility(representation, view, true);
  }
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
    representation->AddObserver(vtkCommand::UpdateDataEvent, this);
  }

  void Execute(vtkObject*, unsigned long event, void*) override
  {
    if (event == vtkCommand::UpdateDataEvent && this->Representation != nullptr &&
        !IsRestoring(this->Representation->GetSessionProxyManager()))
    {
      FollowArray(this->Representation);
    }
    // The array may be chosen before there are any data.
    if (event == vtkCommand::ModifiedEvent || this->Waits)
    {
      this->Update();
    }
  }

  void Update()
  {
    if (this->Representation == nullptr ||
        IsRestoring(this->Representation->GetSessionProxyManager()))
    {
      return;
    }
    const Coloring coloring(this->Representation);
    this->Waits = !coloring.array.empty() && coloring.arrayInformation == nullptr;
    if (coloring.IsKnown())
    {
      SetMapScalars(this->Representation, !coloring.ShowsColors());
    }
    if (coloring.ours)
    {
      PrepareTable(coloring, this->Representation->GetSessionProxyManager());
    }
  }

private:
  vtkWeakPointer<vtkSMProxy> Representation;
  bool Waits = false; ///< for the data of the array
};

/// Colours a representation by the first point or cell array that has this name or, if `suffix`, a
/// name that ends so; leaves it as it is if there is none.
void ColorBy(vtkSMProxy* representation, const std::string& name, bool suffix)
{
  if (representation->GetProperty("ColorArrayName") == nullptr) // of a chart or a spreadsheet
  {
    return;
  }
  for (const int association : { vtkDataObject::POINT, vtkDataObject::CELL })
  {
    auto* arrays = ShownData(representation)->GetAttributeInformation(association);
    for (int i = 0; arrays != nullptr && i < arrays->GetNumberOfArrays(); ++i)
    {
      const std::string found = arrays->GetArrayInformation(i)->GetName();
      if (suffix ? EndsWith(found, name) : found == name)
      {
        vtkSMPropertyHelper(representation, "ColorArrayName")
          .SetInputArrayToProcess(association, found.c_str());
        return;
      }
    }
  }
}

/// Sets a property of a representation, if it has it, from the attributes `values` or `text`.
void SetProperty(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  const char* name = element->GetAttributeOrEmpty("name");
  if (representation->GetProperty(name) == nullptr)
  {
    return;
  }
  vtkSMPropertyHelper property(representation, name);
  if (const char* text = element->GetAttribute("text"))
  {
    property.Set(text);
  }
  std::array<double, 3> values;
  const int count = element->GetVectorAttribute("values", 3, values.data());
  for (int c = 0; c < count; ++c) // one by one: integers take no array of doubles
  {
    property.Set(static_cast<unsigned int>(c), values.at(static_cast<std::size_t>(c)));
  }
}

/// Whether several ranks draw.
bool HasManyRanks(vtkSMProxy* representation)
{
  return representation->GetSession()->GetNumberOfProcesses(vtkPVSession::RENDER_SERVER) > 1;
}

/// A disc of the point's colour with a white and a black rim, which stands out on any colour. It is
/// drawn a fiftieth of the scene's depth before its point, so that no surface that the point lies
/// on cuts it.
constexpr const char* DiscShader = R"(//VTK::Color::Impl
float radius = length(offsetVCVSOutput.xy);
if (radius > 1.0) { discard; }
if (radius > 0.62) { diffuseColor = vec3(0.0); ambientColor = radius > 0.82 ? vec3(0.0) : vec3(1.0); }
else { ambientColor = diffuseColor; diffuseColor = vec3(0.0); }
gl_FragDepth = max(0.0, gl_FragCoord.z - 0.02);
)";

/// Shows points as discs, if the data have the point array of the attribute `array`: colours for
/// them. `z`: how far to raise them; `radius` of the discs, by default 0.1.
void ShowDiscs(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  const char* array = element->GetAttribute("array");
  if (representation->GetProperty("CustomShader") == nullptr ||
      (array != nullptr &&
        ShownData(representation)->GetArrayInformation(array, vtkDataObject::POINT) == nullptr))
  {
    return;
  }
  if (array != nullptr)
  {
    ColorBy(representation, array, false);
  }
  double radius = 0.1;
  element->GetScalarAttribute("radius", &radius);
  double z = 0;
  element->GetScalarAttribute("z", &z);
  vtkSMPropertyHelper(representation, "Representation")
    .Set(HasManyRanks(representation) ? "Collected Discs" : "Point Gaussian");
  vtkSMPropertyHelper(representation, "GaussianRadius").Set(radius);
  vtkSMPropertyHelper(representation, "Position").Set(2, z);
  vtkSMPropertyHelper(representation, "ShaderPreset").Set("Custom");
  vtkSMPropertyHelper(representation, "CustomShader").Set(DiscShader);
  // Selected points are drawn as squares behind the discs: large enough to be seen around them.
  vtkSMPropertyHelper(representation, "SelectionPointSize", true).Set(26);
}

/// Hides the series of a chart that the attribute `names` names, with spaces between.
void HideSeries(vtkSMProxy* representation, vtkPVXMLElement* element)
{
  if (representation->GetProperty("SeriesVisibility") == nullptr)
  {
    return;
  }
  std::istringstream text(element->GetAttributeOrEmpty("names"));
  const std::vector<std::string> names{ std::istream_iterator<std::string>(text), {} };
  vtkSMPropertyHelper visibility(representation, "SeriesVisibility");
  for (unsigned int i = 0; i + 1 < visibility.GetNumberOfElements(); i += 2)
  {
    const std::string series = visibility.GetAsString(i);
    if (std::any_of(names.begin(), names.end(),
          [&series](const std::string& name) { return IsNamed(series, name); }))
    {
      visibility.Set(i + 1, "0");
    }
  }
}

/// An image is shown as a texture, which is quick, but between the parts of several ranks textures
/// leave a seam.
void AvoidSeams(vtkSMProxy* representation)
{
  vtkSMPropertyHelper type(representation, "Representation", true);
  const char* name = type.GetAsString();
  if (name != nullptr && std::string(name) == "Slice" && HasManyRanks(representation))
  {
    type.Set("Surface");
  }
}

void ApplyHints(vtkSMProxy* representation)
{
  vtkPVXMLElement* hint = RepresentationHint(representation);
  const auto shown = static_cast<int>(vtkSMPropertyHelper(representation, "Input").GetOutputPort());
  for (unsigned int i = 0; hint != nullptr && i < hint->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* element = hint->GetNestedElement(i);
    const std::string kind = element->GetName();
    int port = shown;
    element->GetScalarAttribute("port", &port);
    if (port != shown)
    {
      continue;
    }
    if (kind == "ColorArray")
    {
      const char* suffix = element->GetAttribute("suffix");
      ColorBy(representation, suffix != nullptr ? suffix : element->GetAttributeOrEmpty("name"),
        suffix != nullptr);
    }
    else if (kind == "Discs")
    {
      ShowDiscs(representation, element);
    }
    else if (kind == "HiddenSeries")
    {
      HideSeries(representation, element);
    }
    else if (kind == "FollowArray")
    {
      continue; // at each update
    }
    else
    {
      SetProperty(representation, element);
    }
  }
  if (hint != nullptr)
  {
    AvoidSeams(representation);
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
    if (group == "representations" && info->Proxy->GetProperty("Input") != nullptr)
    {
      this->MeetRepresentation(info->Proxy, isNew);
    }
  }

private:
  void MeetRepresentation(vtkSMProxy* representation, bool isNew)
  {
    if (representation->GetProperty("ColorArrayName") == nullptr) // of a chart
    {
      if (isNew)
      {
        ApplyHints(representation);
      }
      return;
    }
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
