#pragma once

#include "AttentionAtlasTorusModule.h"
#include "PropertyList.h"

#include <vtkTaskAlgorithm.h>

#include <string>
#include <vector>

class vtkDataArray;

/// Colors vector arrays on a common scale, under which sums of vectors are sums of colors. Input:
/// any dataset with point arrays of 3 components. Output: the dataset with an array "NAME Color"
/// (unsigned char, 3) for each array NAME of Vectors, and in the field data the scale as Color Gain
/// and Color Offset (double): channel c is 255 (gain v_c + offset), rounded and clipped.
///
/// On several ranks the scale is that of the data on all ranks. The colors are those of the post
/// "Visualizing small Attention-only Transformers".
class ATTENTIONATLASTORUS_EXPORT vtkSummableColors : public vtkTaskAlgorithm
{
public:
  static vtkSummableColors* New();
  vtkTypeMacro(vtkSummableColors, vtkTaskAlgorithm);

  enum ScaleType
  {
    ADDITIVE = 0,
    SHARED_RANGE = 1
  };

  /// ADDITIVE: no offset, so that colors add up wherever no channel is clipped; negative components
  /// are dark. SHARED_RANGE: from the smallest component of all arrays to the largest, as in the
  /// published figures. Default: ADDITIVE.
  vtkSetClampMacro(Scale, int, ADDITIVE, SHARED_RANGE);
  vtkGetMacro(Scale, int);

  /// Factor of ADDITIVE: intensity (0 to 1) per unit of the vectors, positive and finite. Set it if
  /// images of several datasets are to be added. 0, the default, gives the largest component full
  /// intensity.
  vtkSetMacro(Gain, double);
  vtkGetMacro(Gain, double);

  /// The names of the point arrays; none, the default, means all with 3 components. Color arrays
  /// (unsigned char) are skipped.
  void AddVectors(const char* name) { AttentionAtlas::AppendText(this, this->Vectors, name); }
  void ClearVectors() { AttentionAtlas::Clear(this, this->Vectors); }

protected:
  vtkSummableColors();

  void Execute(AttentionAtlas::Task& task) override;

private:
  std::vector<vtkDataArray*> FindVectors(vtkDataSet* input) const;

  int Scale = ADDITIVE;
  double Gain = 0;
  std::vector<std::string> Vectors;
};
