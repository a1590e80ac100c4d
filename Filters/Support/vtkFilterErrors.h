#pragma once

#include "AttentionAtlasSupportModule.h"

#include <vtkObject.h>
#include <vtkWeakPointer.h>

#include <string>
#include <vector>

class vtkAlgorithm;

/**
 * @class vtkFilterErrors
 * @brief Why filters failed, for a client that shows it itself.
 *
 * The errors of these filters are not displayed: they are kept until Gather. Each rank has the
 * filters of its own.
 */
class ATTENTIONATLASSUPPORT_EXPORT vtkFilterErrors : public vtkObject
{
public:
  static vtkFilterErrors* New();
  vtkTypeMacro(vtkFilterErrors, vtkObject);

  /// Adds a filter, reader or writer. Those whose output it uses come before it.
  void AddFilter(vtkAlgorithm* filter);
  void RemoveAllFilters();

  /// Reads the error of the first filter that has failed, on the first rank where one has. All
  /// ranks of the global controller call this.
  void Gather();

  /// The error that Gather read; empty if none has failed.
  const char* GetText() const { return this->Text.c_str(); }

protected:
  vtkFilterErrors() = default;
  ~vtkFilterErrors() override;

private:
  struct Watched
  {
    vtkWeakPointer<vtkAlgorithm> filter;
    unsigned long observer = 0;
    std::string told; ///< what it reported since, unless it is one of our filters
  };

  std::vector<Watched> Filters;
  std::string Text;

  void Keep(vtkObject* filter, unsigned long event, void* text);
};
