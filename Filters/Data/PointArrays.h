#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkType.h>

#include <cstdint>
#include <string>
#include <vector>

class vtkDataArray;
class vtkDataObject;
class vtkDataSetAttributes;

/// The arrays of points that stand for tokens, and their heads.
namespace AttentionAtlas
{

/// Where the arrays of tokens are: the point data of a dataset, or the rows of a table.
ATTENTIONATLASDATA_EXPORT vtkDataSetAttributes* TokenAttributes(vtkDataObject* data);

/// The number of points of a dataset, or of rows of a table.
ATTENTIONATLASDATA_EXPORT vtkIdType TokenRows(vtkDataObject* data);

/// Throws atlas::OptionError unless the array of that name is there, with one number per row.
/// `advice` ends the message: who makes the array.
ATTENTIONATLASDATA_EXPORT vtkDataArray* RequireNumbers(
  vtkDataSetAttributes* attributes, const char* name, const std::string& advice);

/// The numbers of an array as integers. Throws atlas::OptionError, with the row, for a number that
/// is none.
ATTENTIONATLASDATA_EXPORT std::vector<std::int64_t> Integers(vtkDataArray* array);

/// The rows of one head.
struct HeadRows
{
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::vector<vtkIdType> rows; ///< rising
};

/// Groups rows by their layer and head, in ascending order. Lists that are empty put all rows into
/// one group of layer and head -1.
ATTENTIONATLASDATA_EXPORT std::vector<HeadRows> GroupByHead(
  const std::vector<std::int64_t>& layers, const std::vector<std::int64_t>& heads, vtkIdType count);

/// The same by the arrays Layer and Head; a missing one is all -1.
ATTENTIONATLASDATA_EXPORT std::vector<HeadRows> HeadsOf(
  vtkDataSetAttributes* attributes, vtkIdType count);

}
