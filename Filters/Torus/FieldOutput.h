#pragma once

#include "ArrayPool.h"
#include "AttentionOnly/FieldEvaluation.h"

#include <vtkDataArray.h>
#include <vtkSmartPointer.h>
#include <vtkType.h>

#include <string>
#include <vector>

class vtkDataArraySelection;
class vtkDataSetAttributes;

namespace AttentionAtlas
{

/// The quantities of AttentionTorus as VTK arrays: which exist, which are selected, and where they
/// are stored.
class FieldOutput
{
public:
  /// Adds the names of all quantities; those of per-head quantities have no head number. Class,
  /// Probability and ClassColor are on by default.
  static void AddQuantities(vtkDataArraySelection* selection);

  /// The selected arrays of a model with `heads` heads and `classes` classes. The name of a
  /// quantity ("Attention") selects it for all heads, the name of an array ("Attention 0") for one
  /// head. Throws std::runtime_error for any other name.
  FieldOutput(vtkDataArraySelection* selection, int heads, int classes);

  /// The size of the selected arrays per point, in bytes.
  double BytesPerPoint() const;

  /// The number of selected arrays.
  std::size_t ArrayCount() const { return this->Items.size(); }

  /// Takes the arrays from a pool; the result points into them.
  atlas::FieldArrays Allocate(ArrayPool& pool, vtkIdType points);

  /// The allocated arrays.
  std::vector<vtkDataArray*> Arrays() const;

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
