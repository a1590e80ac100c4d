#pragma once

#include "Core/Oracle.h"
#include "ModelConversion.h"

#include <vtkAlgorithm.h>
#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkCommand.h>
#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkDataObject.h>
#include <vtkDataSet.h>
#include <vtkDataSetAttributes.h>
#include <vtkDoubleArray.h>
#include <vtkExecutive.h>
#include <vtkFieldData.h>
#include <vtkFloatArray.h>
#include <vtkIdList.h>
#include <vtkIdTypeArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>
#include <vtkSmartPointer.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkStringArray.h>
#include <vtkTable.h>
#include <vtkTrivialProducer.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace atlas::test
{

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// The errors that an algorithm reports, which then do not go to the console.
class ErrorLog
{
public:
  explicit ErrorLog(vtkAlgorithm* algorithm)
  {
    algorithm->AddObserver(vtkCommand::ErrorEvent, this, &ErrorLog::Add);
    // "returned failure for request" follows each error and adds no information.
    algorithm->GetExecutive()->AddObserver(vtkCommand::ErrorEvent, this, &ErrorLog::Ignore);
  }

  std::vector<std::string> Take() { return std::exchange(this->Messages, {}); }

private:
  std::vector<std::string> Messages;

  void Add(vtkObject*, unsigned long, void* message)
  {
    this->Messages.emplace_back(static_cast<const char*>(message));
  }
  void Ignore(vtkObject*, unsigned long, void*) {}
};

/// An output of an algorithm as it is, without an update.
template<class Data>
Data* OutputOf(vtkAlgorithm* algorithm, int port = 0)
{
  return Data::SafeDownCast(algorithm->GetOutputDataObject(port));
}

/// The same after an update of the first output.
template<class Data>
Data* Updated(vtkAlgorithm* algorithm, int port = 0)
{
  algorithm->Update();
  return OutputOf<Data>(algorithm, port);
}

/// The values of an output for points, cells and rows, and its blocks.
inline vtkIdType CountValues(vtkAlgorithm* algorithm, int port)
{
  vtkDataObject* output = algorithm->GetOutputDataObject(port);
  auto* blocks = vtkMultiBlockDataSet::SafeDownCast(output);
  vtkIdType count = blocks == nullptr ? 0 : blocks->GetNumberOfBlocks();
  for (const int type : { vtkDataObject::POINT, vtkDataObject::CELL, vtkDataObject::ROW })
  {
    vtkDataSetAttributes* attributes = output->GetAttributes(type);
    count += attributes == nullptr ? 0 : attributes->GetNumberOfTuples();
  }
  return count;
}

/// An algorithm whose errors are collected: none may be unread when it is destroyed.
template<class Algorithm>
class Observed
{
public:
  Observed() = default;
  ~Observed() { EXPECT_EQ(this->Errors.Take(), std::vector<std::string>()); }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

  Algorithm* operator->() { return this->Pointer; }
  Algorithm* Get() { return this->Pointer; }
  std::vector<std::string> TakeErrors() { return this->Errors.Take(); }

  /// The only error.
  std::string TakeError()
  {
    const std::vector<std::string> errors = this->TakeErrors();
    EXPECT_EQ(errors.size(), 1U);
    return errors.empty() ? "" : errors[0];
  }

  /// The only error of an update, after which all outputs are empty.
  std::string Error()
  {
    this->Get()->Update();
    for (int port = 0; port < this->Get()->GetNumberOfOutputPorts(); ++port)
    {
      EXPECT_EQ(CountValues(this->Get(), port), 0) << "output " << port;
    }
    return this->TakeError();
  }

private:
  vtkSmartPointer<Algorithm> Pointer = vtkSmartPointer<Algorithm>::New();
  ErrorLog Errors{ this->Pointer };
};

/// The progress that an algorithm reports as long as this lives, but for VTK's own 0 and 1, and
/// what is done at each report.
class Reports
{
public:
  std::vector<double> Progress;

  explicit Reports(
    vtkAlgorithm* algorithm, std::function<void()> act = [] {})
    : Algorithm(algorithm)
    , Act(std::move(act))
    , Tag(algorithm->AddObserver(vtkCommand::ProgressEvent, this, &Reports::Add))
  {
  }
  ~Reports() { this->Algorithm->RemoveObserver(this->Tag); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;

private:
  vtkAlgorithm* Algorithm;
  std::function<void()> Act;
  unsigned long Tag;

  void Add()
  {
    const double progress = this->Algorithm->GetProgress();
    if (progress > 0 && progress < 1)
    {
      this->Progress.push_back(progress);
      this->Act();
    }
  }
};

/// Cancels an algorithm, as a user would, as soon as it has done this share of its work.
class Canceler : public Reports
{
public:
  explicit Canceler(vtkAlgorithm* algorithm, double share = 0)
    : Reports(algorithm,
        [this, algorithm, share]
        {
          if (this->Progress.back() >= share)
          {
            algorithm->SetAbortExecute(1);
          }
        })
  {
  }
};

/// An environment variable for the time of a scope.
class Variable
{
public:
  Variable(const char* name, const char* value)
    : Name(name)
  {
    EXPECT_EQ(setenv(name, value, 1), 0);
  }
  ~Variable() { unsetenv(this->Name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

private:
  const char* Name;
};

/// The time steps of an algorithm.
inline std::vector<double> TimesOf(vtkAlgorithm* algorithm)
{
  algorithm->UpdateInformation();
  vtkInformation* info = algorithm->GetOutputInformation(0);
  const double* times = info->Get(vtkStreamingDemandDrivenPipeline::TIME_STEPS());
  const int count = info->Length(vtkStreamingDemandDrivenPipeline::TIME_STEPS());
  return times == nullptr ? std::vector<double>() : std::vector<double>(times, times + count);
}

inline vtkSmartPointer<vtkMultiBlockDataSet> DataSetOf(const AttentionOnlyModel& model)
{
  auto dataSet = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(model, dataSet);
  return dataSet;
}

/// Connects data that need no further update.
inline void Connect(vtkAlgorithm* algorithm, int port, vtkDataObject* data)
{
  const auto producer = vtkSmartPointer<vtkTrivialProducer>::New();
  producer->SetOutput(data);
  algorithm->SetInputConnection(port, producer->GetOutputPort());
}

inline std::filesystem::path ShippedModel()
{
  return std::filesystem::path(ATLAS_DATA_DIR) / "trained-n5-h3.safetensors";
}

inline AttentionOnlyModel TrainedModel()
{
  return ReadAttentionOnlyModel(ShippedModel());
}

/// All components of an array in a row; a failed test if there is no such array.
inline std::vector<double> Values(vtkFieldData* fields, const std::string& name)
{
  vtkDataArray* array = fields->GetArray(name.c_str());
  if (array == nullptr)
  {
    ADD_FAILURE() << "no array " << name;
    return {};
  }
  std::vector<double> values;
  for (vtkIdType i = 0; i < array->GetNumberOfTuples(); ++i)
  {
    for (int c = 0; c < array->GetNumberOfComponents(); ++c)
    {
      values.push_back(array->GetComponent(i, c));
    }
  }
  return values;
}

/// The texts of an array; a failed test if there is no such array.
inline std::vector<std::string> Texts(vtkFieldData* fields, const std::string& name)
{
  auto* array = vtkStringArray::SafeDownCast(fields->GetAbstractArray(name.c_str()));
  if (array == nullptr)
  {
    ADD_FAILURE() << "no texts " << name;
    return {};
  }
  std::vector<std::string> texts;
  for (vtkIdType i = 0; i < array->GetNumberOfValues(); ++i)
  {
    texts.emplace_back(array->GetValue(i));
  }
  return texts;
}

/// A filter on data that need no further update, with its outputs.
template<class Filter>
class On : public Observed<Filter>
{
public:
  On() = default;
  explicit On(vtkDataObject* input) { Connect(this->Get(), 0, input); }

  /// An output after an update of it.
  template<class Data = vtkDataSet>
  Data* Output(int port = 0)
  {
    this->Get()->Update(port);
    return OutputOf<Data>(this->Get(), port);
  }
  vtkPolyData* Geometry(int port = 0) { return this->template Output<vtkPolyData>(port); }
  vtkTable* Table(int port = 0) { return this->template Output<vtkTable>(port); }
  vtkImageData* Image(int port = 0)
  {
    this->Get()->UpdateInformation(); // announces its extent
    return this->template Output<vtkImageData>(port);
  }

  /// The first output, of which these columns and rows are asked for.
  vtkImageData* Part(int left, int right, int bottom, int top)
  {
    const int extent[6] = { left, right, bottom, top, 0, 0 };
    this->Get()->UpdateInformation();
    this->Get()->UpdateExtent(extent);
    auto* image = OutputOf<vtkImageData>(this->Get());
    EXPECT_THAT(
      std::vector<int>(image->GetExtent(), image->GetExtent() + 6), ElementsAreArray(extent, 6));
    return image;
  }

  /// Arrays of an output.
  std::vector<double> Points(const char* name, int port = 0)
  {
    return this->Array(vtkDataObject::POINT, name, port);
  }
  std::vector<double> Cells(const char* name, int port = 0)
  {
    return this->Array(vtkDataObject::CELL, name, port);
  }
  std::vector<double> Column(const char* name, int port = 0)
  {
    return this->Array(vtkDataObject::ROW, name, port);
  }
  std::vector<double> Field(const char* name, int port = 0)
  {
    return this->Array(vtkDataObject::FIELD, name, port);
  }
  std::vector<std::string> FieldTexts(const char* name, int port = 0)
  {
    return Texts(this->template Output<vtkDataObject>(port)->GetFieldData(), name);
  }

private:
  std::vector<double> Array(int type, const char* name, int port)
  {
    return Values(this->template Output<vtkDataObject>(port)->GetAttributesAsFieldData(type), name);
  }
};

/// An algorithm with its warnings.
template<class Algorithm>
class Warned : public On<Algorithm>
{
public:
  Warned() { this->Get()->AddObserver(vtkCommand::WarningEvent, this, &Warned::AddWarning); }
  explicit Warned(vtkDataObject* input)
    : Warned()
  {
    Connect(this->Get(), 0, input);
  }
  std::vector<std::string> TakeWarnings() { return std::exchange(this->Warnings, {}); }

private:
  std::vector<std::string> Warnings;

  void AddWarning(vtkObject*, unsigned long, void* message)
  {
    this->Warnings.emplace_back(static_cast<const char*>(message));
  }
};

/// The extent of an image, its columns and rows, and its origin; the bounds of any data.
inline std::vector<int> ExtentOf(vtkImageData* image)
{
  return { image->GetExtent(), image->GetExtent() + 6 };
}
inline std::vector<int> SizeOf(vtkImageData* image)
{
  return { image->GetDimensions(), image->GetDimensions() + 2 };
}
inline std::vector<double> OriginOf(vtkImageData* image)
{
  return { image->GetOrigin(), image->GetOrigin() + 3 };
}
inline std::vector<double> BoundsOf(vtkDataSet* data)
{
  return { data->GetBounds(), data->GetBounds() + 6 };
}
inline std::array<double, 6> BoundsOf(vtkDataSet* data, vtkIdType cell)
{
  std::array<double, 6> bounds;
  data->GetCellBounds(cell, bounds.data());
  return bounds;
}

/// Adds an array of these values to points, cells, rows or fields.
template<class Array, class Value>
void AddArray(
  vtkFieldData* fields, const char* name, const std::vector<Value>& values, int components = 1)
{
  vtkNew<Array> array;
  array->SetName(name);
  array->SetNumberOfComponents(components);
  for (const Value& value : values)
  {
    array->InsertNextValue(value);
  }
  fields->AddArray(array);
}

/// Chooses points or cells by their numbers, or by the values of their "Token Index".
inline vtkSmartPointer<vtkSelection> SelectionOf(const std::vector<vtkIdType>& ids,
  int content = vtkSelectionNode::INDICES, int field = vtkSelectionNode::POINT)
{
  vtkNew<vtkIdTypeArray> list;
  for (const vtkIdType id : ids)
  {
    list->InsertNextValue(id);
  }
  if (content == vtkSelectionNode::VALUES)
  {
    list->SetName("Token Index");
  }
  vtkNew<vtkSelectionNode> node;
  node->SetContentType(content);
  node->SetFieldType(field);
  node->SetSelectionList(list);
  auto selection = vtkSmartPointer<vtkSelection>::New();
  selection->AddNode(node);
  return selection;
}

inline std::set<std::string> Names(vtkFieldData* fields)
{
  std::set<std::string> names;
  for (int i = 0; i < fields->GetNumberOfArrays(); ++i)
  {
    names.insert(fields->GetArrayName(i));
  }
  return names;
}

/// Whether two arrays have equal names, types, shapes and bytes.
inline bool IsSame(vtkDataArray* a, vtkDataArray* b)
{
  const auto bytes = [](vtkDataArray* array)
  {
    return static_cast<std::size_t>(array->GetNumberOfValues()) *
           static_cast<std::size_t>(array->GetDataTypeSize());
  };
  return a != nullptr && b != nullptr && std::string(a->GetName()) == b->GetName() &&
         a->GetDataType() == b->GetDataType() &&
         a->GetNumberOfComponents() == b->GetNumberOfComponents() &&
         a->GetNumberOfTuples() == b->GetNumberOfTuples() &&
         std::memcmp(a->GetVoidPointer(0), b->GetVoidPointer(0), bytes(a)) == 0;
}

/// Expects the same arrays, equal to the byte.
inline void ExpectSameArrays(vtkFieldData* found, vtkFieldData* expected)
{
  ASSERT_EQ(Names(found), Names(expected));
  for (const std::string& name : Names(expected))
  {
    if (vtkStringArray::SafeDownCast(expected->GetAbstractArray(name.c_str())) != nullptr)
    {
      EXPECT_EQ(Texts(found, name), Texts(expected, name)) << name;
    }
    else
    {
      EXPECT_TRUE(IsSame(found->GetArray(name.c_str()), expected->GetArray(name.c_str()))) << name;
    }
  }
}

/// Expects that `part` has the bytes that a whole image has in its extent.
inline void ExpectIsPartOf(vtkImageData* part, vtkImageData* whole)
{
  vtkNew<vtkImageData> cropped;
  cropped->ShallowCopy(whole);
  cropped->Crop(part->GetExtent());
  ASSERT_EQ(part->GetNumberOfPoints(), cropped->GetNumberOfPoints());
  EXPECT_THAT(BoundsOf(part), ElementsAreArray(cropped->GetBounds(), 6));
  ExpectSameArrays(part->GetPointData(), cropped->GetPointData());
}

/// A vertex at each (theta_1, theta_2).
inline vtkSmartPointer<vtkPolyData> PointsAt(
  const std::vector<double>& theta1, const std::vector<double>& theta2)
{
  const auto points = vtkSmartPointer<vtkPoints>::New();
  points->SetDataTypeToDouble();
  const auto vertices = vtkSmartPointer<vtkCellArray>::New();
  for (std::size_t i = 0; i < theta1.size(); ++i)
  {
    const vtkIdType id = points->InsertNextPoint(theta1[i], theta2[i], 0);
    vertices->InsertNextCell(1, &id);
  }
  auto data = vtkSmartPointer<vtkPolyData>::New();
  data->SetPoints(points);
  data->SetVerts(vertices);
  return data;
}

}
