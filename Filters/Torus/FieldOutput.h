#pragma once

#include "FieldEvaluation.h"

#include <vtkDataArray.h>
#include <vtkSmartPointer.h>
#include <vtkType.h>

#include <string>
#include <vector>

class vtkDataArraySelection;
class vtkDataSetAttributes;

namespace AttentionAtlas
{

/// The quantities of AttentionTorus as VTK arrays: which exist, which are wanted, where they go.
class FieldOutput
{
public:
  /// The names of all quantities, a per-head one without a number. Class, Probability and
  /// ClassColor are on by default.
  static void AddQuantities(vtkDataArraySelection* selection);

  /// The arrays that `selection` wants of a model with that many heads and classes. A quantity of
  /// every head is chosen by its name ("Attention"), of one head by the name of its array
  /// ("Attention 0"). Throws std::runtime_error for a name that is neither.
  FieldOutput(vtkDataArraySelection* selection, int heads, int classes);

  /// Bytes that the wanted arrays take per point.
  double BytesPerPoint() const;

  /// Number of wanted arrays.
  std::size_t ArrayCount() const { return this->Items.size(); }

  /// Allocates the arrays; the result points into them.
  atlas::FieldArrays Allocate(vtkIdType points);

  /// Adds the allocated arrays and makes the first with one component the active scalars.
  void Attach(vtkDataSetAttributes* attributes) const;

private:
  struct Item
  {
    std::size_t quantity; ///< index in the table of quantities
    int head;             ///< -1 if the quantity is not per head
    std::string name;
    int components;
    vtkSmartPointer<vtkDataArray> array;
  };

  int Heads;
  std::vector<Item> Items;
};

}
