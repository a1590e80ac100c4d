#pragma once

#include "AttentionOnlyModel.h"
#include "ModelConversion.h"

#include <vtkAlgorithm.h>
#include <vtkCellArray.h>
#include <vtkCommand.h>
#include <vtkDataArray.h>
#include <vtkDataSetAttributes.h>
#include <vtkExecutive.h>
#include <vtkFieldData.h>
#include <vtkIdTypeArray.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>
#include <vtkSmartPointer.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkStringArray.h>
#include <vtkTrivialProducer.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

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

private:
  vtkSmartPointer<Algorithm> Pointer = vtkSmartPointer<Algorithm>::New();
  ErrorLog Errors{ this->Pointer };
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
    EXPECT_TRUE(IsSame(found->GetArray(name.c_str()), expected->GetArray(name.c_str()))) << name;
  }
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
