#include "TokenMeshes.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFields.h"
#include "Execution.h"
#include "RankGroup.h"

#include <vtkCompositeDataIterator.h>
#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkFloatArray.h>
#include <vtkIdList.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace AttentionAtlas
{
namespace
{

namespace Names = ArrayNames;

constexpr const char* OfTokens = "tokens";
constexpr const char* OfSlices = "slices";
constexpr const char* OfSomeSlices = "some slices";

vtkSmartPointer<vtkDataObject> ShallowCopyOf(vtkDataObject* data)
{
  auto copy = vtkSmartPointer<vtkDataObject>::Take(data->NewInstance());
  copy->ShallowCopy(data);
  return copy;
}

/// Cells between two reports of progress.
constexpr vtkIdType CellsPerStep = vtkIdType{ 1 } << 18;

/// The means of the points of each cell.
std::shared_ptr<const std::vector<double>> CentersOf(
  vtkDataSet* mesh, const atlas::Progress& progress)
{
  const vtkIdType cells = mesh->GetNumberOfCells();
  auto centers = std::make_shared<std::vector<double>>(3 * cells, 0.0);
  auto* surface = vtkPolyData::SafeDownCast(mesh);
  if (surface != nullptr && surface->NeedToBuildCells())
  {
    surface->BuildCells(); // which the threads would else do at the same time
  }
  ParallelSteps(cells, CellsPerStep, progress,
    [&](vtkIdType begin, vtkIdType end)
    {
      vtkNew<vtkIdList> points;
      for (vtkIdType cell = begin; cell < end; ++cell)
      {
        mesh->GetCellPoints(cell, points);
        double* center = centers->data() + 3 * cell;
        const vtkIdType count = points->GetNumberOfIds();
        for (vtkIdType i = 0; i < count; ++i)
        {
          std::array<double, 3> point;
          mesh->GetPoint(points->GetId(i), point.data());
          std::transform(point.begin(), point.end(), center, center, std::plus<double>());
        }
        std::for_each(center, center + 3,
          [count](double& x) { x /= static_cast<double>(std::max<vtkIdType>(count, 1)); });
      }
    });
  return centers;
}

std::vector<double> TimesOf(vtkInformation* info)
{
  const int count = info != nullptr ? info->Length(SDDP::TIME_STEPS()) : 0;
  const double* times = count > 0 ? info->Get(SDDP::TIME_STEPS()) : nullptr;
  return { times, times + count };
}

std::int64_t IntegerField(vtkFieldData* fields, const char* name)
{
  vtkDataArray* array = fields->GetArray(name);
  return array != nullptr && array->GetNumberOfValues() > 0
           ? static_cast<std::int64_t>(array->GetComponent(0, 0))
           : 0;
}

/// An array of a bound mesh with this number of components, or any for 0.
template<class Array>
Array* RequireArray(
  const TokenMesh& mesh, const Binding& binding, const std::string& name, int components)
{
  vtkAbstractArray* found =
    AttributesOf(mesh.input, binding.association)->GetAbstractArray(name.c_str());
  auto* array = Array::SafeDownCast(found);
  if (array == nullptr || (components > 0 && array->GetNumberOfComponents() != components))
  {
    throw atlas::OptionError(mesh.name, ": expected the ", PlaceName(binding.association),
      " array '", name, "' that Bind Tokens made, found ",
      (found == nullptr ? "none" : "another one"), "; apply Bind Tokens to this data.");
  }
  return array;
}

}

std::vector<TokenMesh> CopyMeshes(vtkDataObject* input, vtkDataObject* output)
{
  std::vector<TokenMesh> meshes;
  auto* composite = vtkCompositeDataSet::SafeDownCast(input);
  if (composite == nullptr)
  {
    output->ShallowCopy(input);
    if (auto* mesh = vtkDataSet::SafeDownCast(input))
    {
      meshes.push_back({ mesh, vtkDataSet::SafeDownCast(output), "Input" });
    }
    return meshes;
  }
  auto* copies = vtkCompositeDataSet::SafeDownCast(output);
  copies->CopyStructure(composite);
  copies->GetFieldData()->PassData(composite->GetFieldData());
  const auto blocks = vtkSmartPointer<vtkCompositeDataIterator>::Take(composite->NewIterator());
  bool hasBlocks = false;
  for (blocks->InitTraversal(); !blocks->IsDoneWithTraversal(); blocks->GoToNextItem())
  {
    hasBlocks = true;
    vtkDataObject* block = blocks->GetCurrentDataObject();
    const auto copy = ShallowCopyOf(block);
    copies->SetDataSet(blocks, copy);
    if (auto* mesh = vtkDataSet::SafeDownCast(block))
    {
      meshes.push_back({ mesh, vtkDataSet::SafeDownCast(copy),
        "Input, block " + std::to_string(blocks->GetCurrentFlatIndex()) });
    }
  }
  atlas::ThrowIf<atlas::OptionError>(hasBlocks && meshes.empty(),
    "Input: expected a dataset with points or cells, found one with "
    "none of them, such as a recording.");
  return meshes;
}

void AddTimes(vtkInformationVector** inputs, int other, vtkInformationVector* outputs)
{
  const std::vector<double> added = TimesOf(inputs[other]->GetInformationObject(0));
  if (added.empty())
  {
    return;
  }
  std::vector<double> times = TimesOf(inputs[0]->GetInformationObject(0));
  times.insert(times.end(), added.begin(), added.end());
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  for (int port = 0; port < outputs->GetNumberOfInformationObjects(); ++port)
  {
    SetTimeSteps(outputs->GetInformationObject(port), times);
  }
}

vtkDataSetAttributes* AttributesOf(vtkDataSet* mesh, int association)
{
  return mesh->GetAttributes(association);
}

std::int64_t CountPlaces(vtkDataSet* mesh, int association)
{
  return mesh->GetNumberOfElements(association);
}

std::string PlaceName(int association)
{
  return association == vtkDataObject::POINT ? "point" : "cell";
}

atlas::PositionOf PositionsOf(vtkDataSet* mesh, int association, const atlas::Progress& progress)
{
  if (association == vtkDataObject::POINT)
  {
    return [held = vtkSmartPointer<vtkDataSet>(mesh)](std::int64_t place, double* position)
    { held->GetPoint(place, position); };
  }
  return [centers = CentersOf(mesh, progress)](std::int64_t place, double* position)
  { std::copy_n(centers->begin() + 3 * place, 3, position); };
}

std::vector<std::uint8_t> GhostsOf(vtkDataSet* mesh, int association)
{
  auto* kinds = vtkUnsignedCharArray::SafeDownCast(
    AttributesOf(mesh, association)->GetArray(vtkDataSetAttributes::GhostArrayName()));
  if (kinds == nullptr)
  {
    return {};
  }
  const bool isPoint = association == vtkDataObject::POINT;
  const int left = isPoint ? static_cast<int>(vtkDataSetAttributes::DUPLICATEPOINT) |
                               static_cast<int>(vtkDataSetAttributes::HIDDENPOINT)
                           : static_cast<int>(vtkDataSetAttributes::DUPLICATECELL) |
                               static_cast<int>(vtkDataSetAttributes::HIDDENCELL);
  std::vector<std::uint8_t> ghosts(kinds->GetNumberOfValues());
  std::transform(kinds->GetPointer(0), kinds->GetPointer(0) + ghosts.size(), ghosts.begin(),
    [left](unsigned char kind) -> std::uint8_t { return (kind & left) != 0 ? 1 : 0; });
  return ghosts;
}

std::string Binding::Text() const
{
  std::string text = PlaceName(this->association) + "\n" + this->tokens + "\n" + this->weights;
  for (const std::int64_t number : { this->firstToken, this->tokensPerStep, this->step })
  {
    text += "\n" + std::to_string(number);
  }
  return text;
}

void WriteBinding(const Binding& binding, vtkFieldData* fields)
{
  const bool isDense = binding.tokens.empty();
  AddField(fields, Names::TokenBinding,
    std::string(binding.weights.empty() ? OfTokens
                : isDense               ? OfSlices
                                        : OfSomeSlices));
  AddField(fields, Names::TokenAssociation, PlaceName(binding.association));
  AddField(fields, Names::TokenArray, binding.tokens);
  AddField(fields, Names::WeightArray, binding.weights);
  AddField(fields, Names::FirstToken, binding.firstToken);
  AddField(fields, Names::TokensPerStep, binding.tokensPerStep);
  AddField(fields, Names::TimeStep, binding.step);
}

std::optional<Binding> ReadBinding(vtkFieldData* fields)
{
  if (FieldText(fields, Names::TokenBinding).empty())
  {
    return std::nullopt;
  }
  Binding binding;
  binding.association = FieldText(fields, Names::TokenAssociation) == PlaceName(vtkDataObject::CELL)
                          ? vtkDataObject::CELL
                          : vtkDataObject::POINT;
  binding.tokens = FieldText(fields, Names::TokenArray);
  binding.weights = FieldText(fields, Names::WeightArray);
  binding.firstToken = IntegerField(fields, Names::FirstToken);
  binding.tokensPerStep = IntegerField(fields, Names::TokensPerStep);
  binding.step = IntegerField(fields, Names::TimeStep);
  return binding;
}

std::optional<Binding> FindBinding(const std::vector<TokenMesh>& meshes, const RankGroup& ranks)
{
  std::optional<Binding> found;
  for (const TokenMesh& mesh : meshes)
  {
    if (mesh.input->GetNumberOfPoints() == 0)
    {
      continue;
    }
    const std::optional<Binding> other = ReadBinding(mesh.input->GetFieldData());
    if (!other)
    {
      throw atlas::OptionError(
        mesh.name, ": expected data with tokens, found none; apply Bind Tokens first.");
    }
    if (CountPlaces(mesh.input, other->association) == 0)
    {
      continue;
    }
    if (found && !(*found == *other))
    {
      throw atlas::OptionError(mesh.name, ": expected meshes that are all bound in the same way, "
                                          "found several; apply one Bind Tokens to all.");
    }
    found = other;
  }
  // A rank without places learns the binding from the others.
  const std::string mine = found ? found->Text() : std::string();
  for (const std::vector<char>& bytes : ranks.Share({ mine.begin(), mine.end() }))
  {
    const std::string text(bytes.begin(), bytes.end());
    if (text.empty())
    {
      continue;
    }
    std::array<std::string, 6> lines;
    std::size_t begin = 0;
    for (std::string& line : lines)
    {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      line = text.substr(begin, end - begin);
      begin = std::min(end + 1, text.size());
    }
    const Binding other = { lines[0] == PlaceName(vtkDataObject::CELL) ? vtkDataObject::CELL
                                                                       : vtkDataObject::POINT,
      lines[1], lines[2], std::stoll(lines[3]), std::stoll(lines[4]), std::stoll(lines[5]) };
    if (found && !(*found == other))
    {
      throw atlas::OptionError("Input: expected pieces that are all bound in the same way, found "
                               "others; apply one Bind Tokens to all.");
    }
    found = other;
  }
  return found;
}

atlas::BoundPlaces PlacesOf(const TokenMesh& mesh, const Binding& binding)
{
  atlas::BoundPlaces places;
  places.count = CountPlaces(mesh.input, binding.association);
  places.firstToken = binding.firstToken;
  if (places.count == 0)
  {
    return places;
  }
  if (!binding.weights.empty())
  {
    auto* weights = RequireArray<vtkFloatArray>(mesh, binding, binding.weights, 0);
    places.width = weights->GetNumberOfComponents();
    places.weights = weights->GetPointer(0);
  }
  if (!binding.tokens.empty())
  {
    places.tokens =
      RequireArray<vtkIntArray>(mesh, binding, binding.tokens, static_cast<int>(places.width))
        ->GetPointer(0);
  }
  return places;
}

}
