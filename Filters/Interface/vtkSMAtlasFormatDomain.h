#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMDomain.h>

#include <string>
#include <vector>

class vtkPVDataInformation;

/**
 * @class vtkSMAtlasFormatDomain
 * @brief Limits the input of a filter to data of certain formats.
 *
 * A format is the text in the field array `Format` of a data object (Filters/Data/DataFormat.h). In
 * XML, inside an InputProperty:
 *
 *     <AtlasFormatDomain name="format" formats="attention-atlas.recording" />
 *
 * `formats` is a list separated by spaces. Data without a format, that is without the array, is in
 * the domain only if the element has the attribute absent="accepted". This is for data that users
 * make themselves, in a Programmable Source for example; the filter reports what it lacks.
 *
 * `fields` and `arrays` are further limits, lists separated by semicolons: the data must have one
 * of these field arrays, and all of these arrays of points, cells or rows. Without `formats` the
 * data may have any format.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasFormatDomain : public vtkSMDomain
{
public:
  static vtkSMAtlasFormatDomain* New();
  vtkTypeMacro(vtkSMAtlasFormatDomain, vtkSMDomain);

  /// IN_DOMAIN if every (unchecked) input of the property fits. Otherwise, and if there is no input
  /// or no data yet, NOT_IN_DOMAIN.
  int IsInDomain(vtkSMProperty* property) override;

protected:
  vtkSMAtlasFormatDomain() = default;

  int ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element) override;

private:
  bool Fits(vtkPVDataInformation* data) const;

  std::vector<std::string> Formats;
  std::vector<std::string> Fields;
  std::vector<std::string> Arrays;
  bool AcceptsAbsent = false;
};
