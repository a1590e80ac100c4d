#pragma once

#include "AttentionAtlasSupportModule.h"
#include "Base/Progress.h"
#include "Base/RemainingTime.h"
#include "Execution.h"
#include "RankGroup.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

class vtkAlgorithm;
class vtkDataObject;
class vtkInformation;
class vtkInformationVector;

namespace AttentionAtlas
{

/// One execution of a filter (vtkTaskAlgorithm): its data, its progress, and the ranks that take
/// part.
class ATTENTIONATLASSUPPORT_EXPORT Task
{
public:
  /// The input on a port, or nullptr if there is none.
  template<class Data>
  Data* Input(int port = 0) const
  {
    return Data::SafeDownCast(this->InputObject(port));
  }

  /// The output on a port. It is empty when the task begins.
  template<class Data>
  Data* Output(int port = 0) const
  {
    return Data::SafeDownCast(this->OutputObject(port));
  }
  /// The pipeline information of a port, or nullptr without one.
  vtkInformation* InputInformation(int port = 0) const;
  vtkInformation* OutputInformation(int port = 0) const;

  /// The port of the output that was asked for; the others are made, too.
  int Port() const { return this->AskedPort; }
  vtkInformationVector* Outputs() const { return this->OutputVector; }

  /// IsFirstPiece of the outputs.
  bool IsFirst() const;

  /// The ranks that execute together; this one if each executes alone.
  const RankGroup& Ranks() const { return this->Group; }

  /// Reports progress, 0 to 1, and throws atlas::Canceled once the user has canceled. To be called
  /// on the thread that executes the filter. The text of the progress is the time that is left,
  /// where all takes a minute or more.
  const atlas::Progress& Progress() const { return this->Report; }

  /// Same, but returns false instead, for what keeps a partial result. text: shown before the time
  /// that is left.
  bool GoesOn(double done, std::string text = {}) const;

  /// Tells that a file is read. If the task fails, the next update reads it again once it, or a
  /// file beside it, was changed. Null or empty: no file.
  void Reads(const char* fileName);

  /// Makes what was reached until the user canceled the result: the task does not end as canceled.
  void KeepCanceled() const;

  /// Used by vtkTaskAlgorithm, with the arguments of RequestData, which must outlive this object.
  Task(vtkAlgorithm* filter, vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector, const RankGroup& ranks);
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// The files that were read.
  const std::vector<std::string>& GetFiles() const { return this->Files; }

  /// When the filter was last modified.
  vtkMTimeType FilterTime() const;

private:
  vtkAlgorithm* Filter;
  vtkInformationVector** InputVector;
  vtkInformationVector* OutputVector;
  int AskedPort;
  const RankGroup& Group;
  atlas::Progress Report;
  mutable atlas::RemainingTime Time;
  std::vector<std::string> Files;

  vtkDataObject* InputObject(int port) const;
  vtkDataObject* OutputObject(int port) const;
};

/// An error that is known from an earlier execution, and known to all ranks.
class KnownError : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/// What a result depends on: times of data (TimeOf) and settings, as numbers.
using TaskKey = std::vector<double>;

template<class... Numbers>
TaskKey MakeKey(const Numbers&... numbers)
{
  return { static_cast<double>(numbers)... };
}

/// What a filter computed last, with what it depends on: VTK executes an image filter again for
/// another output or extent, and whenever it has failed.
template<class Result>
class LastResult
{
public:
  /// The result for a key: the last one if that has the same key, or that of compute(), a Result.
  /// An error of any rank is remembered by all until the filter is modified, and thrown as
  /// KnownError. All ranks of a filter that executes together call this.
  template<class Compute>
  const Result& Get(const Task& task, TaskKey key, const Compute& compute)
  {
    key.push_back(task.Ranks().Rank());
    key.push_back(task.Ranks().Count());
    const bool isKnown =
      this->Known == key && (this->Value || this->ErrorTime == task.FilterTime());
    if (task.Ranks().Any(!isKnown)) // all ranks compute, or none
    {
      this->Forget();
      try
      {
        this->Value = compute();
        task.Ranks().Any(false); // throws unless all ranks have it
      }
      catch (const atlas::Canceled&)
      {
        this->Forget();
        throw;
      }
      catch (const std::exception& e)
      {
        this->Forget();
        this->Known = std::move(key);
        this->Error = e.what();
        this->ErrorTime = task.FilterTime();
        throw;
      }
      this->Known = std::move(key);
    }
    if (!this->Value)
    {
      throw KnownError(this->Error);
    }
    return *this->Value;
  }

  void Forget()
  {
    this->Known.reset();
    this->Value.reset();
    this->Error.clear();
  }

private:
  std::optional<TaskKey> Known;
  std::optional<Result> Value;
  std::string Error; ///< if there is no value
  vtkMTimeType ErrorTime = 0;
};

}
