#ifndef vtkSummableColors_h
#define vtkSummableColors_h

#include "AttentionAtlasTorusModule.h"

#include <vtkDataSetAlgorithm.h>

#include <string>
#include <vector>

class vtkDataArray;

/**
 * @class vtkSummableColors
 * @brief Colours of vector arrays on one common scale, under which sums of vectors are sums of
 * colours.
 *
 * Input: any dataset with point arrays of 3 components. Output: the dataset with an array "NAME
 * Color" (unsigned char, 3) for each array NAME of Vectors, and in the field data the scale as
 * Color Gain and Color Offset (double): channel c is 255 (gain v_c + offset), rounded and clipped.
 *
 * On several ranks the scale is that of the data of all.
 */
class ATTENTIONATLASTORUS_EXPORT vtkSummableColors : public vtkDataSetAlgorithm
{
public:
  static vtkSummableColors* New();
  vtkTypeMacro(vtkSummableColors, vtkDataSetAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  enum ScaleType
  {
    ADDITIVE = 0,
    SHARED_RANGE = 1
  };

  ///@{
  /**
   * ADDITIVE: no offset, so that colours add wherever nothing clips; negative components are dark.
   * SHARED_RANGE: from the smallest component of all arrays to the largest, as in the published
   * figures. Default: ADDITIVE.
   */
  vtkSetClampMacro(Scale, int, ADDITIVE, SHARED_RANGE);
  vtkGetMacro(Scale, int);
  ///@}

  ///@{
  /**
   * Factor of ADDITIVE, for pictures of several datasets that are to be added up: intensity (0 to
   * 1) per unit of the vectors, positive and finite. 0, the default, chooses the one with which the
   * largest component has full intensity.
   */
  vtkSetMacro(Gain, double);
  vtkGetMacro(Gain, double);
  ///@}

  ///@{
  /**
   * The point arrays, by name; none, the default, are all of 3 components. Colours (unsigned char)
   * among them are passed over.
   */
  void AddVectors(const char* name);
  void ClearVectors();
  ///@}

protected:
  vtkSummableColors() = default;
  ~vtkSummableColors() override = default;

  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkSummableColors(const vtkSummableColors&) = delete;
  void operator=(const vtkSummableColors&) = delete;

  std::vector<vtkDataArray*> FindVectors(vtkDataSet* input) const;

  int Scale = ADDITIVE;
  double Gain = 0;
  std::vector<std::string> Vectors;
};

#endif
