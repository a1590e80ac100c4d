#pragma once

#include "Core/FocusOracle.h"
#include "Recordings.h"
#include "vtkTransformerReader.h"

namespace atlas::test
{

inline vtkTable* TableOf(vtkAlgorithm* algorithm, int port = 0)
{
  return Updated<vtkTable>(algorithm, port);
}

/// The numbers of a column; a failed test if there is none.
inline std::vector<double> Column(vtkTable* table, const std::string& name)
{
  return Values(table->GetRowData(), name);
}

inline std::vector<std::string> ColumnNames(vtkTable* table)
{
  std::vector<std::string> names;
  for (vtkIdType i = 0; i < table->GetNumberOfColumns(); ++i)
  {
    names.emplace_back(table->GetColumnName(i));
  }
  return names;
}

/// A transformer of the oracle, as its reader makes it.
class OracleModel
{
public:
  explicit OracleModel(const std::string& name)
  {
    this->Reader->SetFileName((TransformerOracle::Folder(name) / "config.json").c_str());
  }
  vtkAlgorithmOutput* Port() { return this->Reader->GetOutputPort(); }

private:
  vtkNew<vtkTransformerReader> Reader;
};

/// A filter on a model of the oracle.
template<class Filter>
class OnModel : public On<Filter>
{
public:
  explicit OnModel(const std::string& model)
    : Model(model)
  {
    this->Get()->SetInputConnection(this->Model.Port());
  }

private:
  OracleModel Model;
};

/// A filter on a recording and its model of the oracle.
template<class Filter>
class OnRecordingAndModel : public On<Filter>
{
public:
  OnRecordingAndModel(const Recording& recording, const std::string& model)
    : On<Filter>(DataSetOf(recording))
    , Model(model)
  {
    this->Get()->SetModelConnection(this->Model.Port());
  }

private:
  OracleModel Model;
};

}
