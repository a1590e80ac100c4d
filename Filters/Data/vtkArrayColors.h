#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkObject.h>
#include <vtkSmartPointer.h>

#include <string>

class vtkDataSet;
class vtkDoubleArray;

/**
 * @class vtkArrayColors
 * @brief The colors in which views show an array of a dataset, for a client without ParaView.
 *
 * They are those of ParaView's views: colors as they are, categories with a legend, or a scale.
 */
class ATTENTIONATLASDATA_EXPORT vtkArrayColors : public vtkObject
{
public:
  static vtkArrayColors* New();
  vtkTypeMacro(vtkArrayColors, vtkObject);

  /// Reads an array of points (association vtkDataObject::POINT) or cells (vtkDataObject::CELL).
  /// `isOurs`: whether the dataset is the output of a filter of this plugin. Returns whether the
  /// dataset has this array.
  bool Read(vtkDataSet* data, int association, const std::string& name, bool isOurs);

  /// Whether the values are themselves colors.
  bool AreColors() const { return this->Colors; }

  /// A title, then a line "RED GREEN BLUE MEANING" for each category, from 0 to 255; empty without
  /// categories.
  std::string GetLegend() const { return this->Legend; }

  /// Points of a continuous scale, in ascending order: a value, then red, green and blue from 0 to
  /// 1, which are mixed in CIE Lab between points. Empty for an array without one.
  vtkDoubleArray* GetScale() const;

protected:
  vtkArrayColors();
  ~vtkArrayColors() override;

private:
  bool Colors = false;
  std::string Legend;
  vtkSmartPointer<vtkDoubleArray> Scale;
};
