#pragma once

#include "ArrayPool.h"
#include "vtkTorusAlgorithm.h"

#include <vtkDataArraySelection.h>
#include <vtkNew.h>

namespace AttentionAtlas
{
class FieldOutput;
}
namespace atlas
{
class FieldEvaluator;
}

/// Evaluates an attention-only transformer over the torus of word pairs. Input port 0: the model.
/// Input port 1 (optional): Points, any dataset. Its x and y are theta_1 and theta_2 in radians and
/// may lie outside [-pi, pi].
///
/// Output: without Points a vtkImageData, x = theta_1 (token 1), y = theta_2 (token 2), from -pi to
/// pi including both ends, so that spacing is 2 pi / (n - 1); with Points a copy of them. Point
/// arrays, as selected by Quantities (float unless noted, h = 0 ... H-1):
/// - Class (int): argmax of the logits, the lowest index on a tie
/// - Probability: softmax(logits) of that class, from 1/N to 1
/// - ClassColor (unsigned char, 3): the color of that class, fading to white at chance level
/// - Logits (N components): W_U r
/// - Score h, Attention h (0 to 1): from token 2 to token 1
/// - Word Mix h, Position Mix h, Mix h (3 components): the word part and the position part of
///   mix_h, and their sum mix_h
/// - Head Output h (3 components): out_h, not multiplied by its weight w_h
/// - Output (3 components): r
///
/// Field data: the model's dimensions. Formulas: Core's AttentionEvaluation.h, after the post
/// "Visualizing small Attention-only Transformers". Computed in single precision and in parallel;
/// results are equal to the byte for any number of threads and ranks. After an error the output is
/// empty, and the next update tries again.
class ATTENTIONATLASTORUS_EXPORT vtkAttentionTorus : public vtkTorusAlgorithm
{
public:
  static vtkAttentionTorus* New();
  vtkTypeMacro(vtkAttentionTorus, vtkTorusAlgorithm);

  /// Number of points along theta_1 and theta_2, each at least 2. Ignored with Points. Default:
  /// 512, 512.
  vtkSetVector2Macro(Resolution, int);
  vtkGetVector2Macro(Resolution, int);

  /// The quantities to compute, by the names listed above. A per-head name without number selects
  /// all heads, with a number one head. Default: Class, Probability, ClassColor.
  vtkDataArraySelection* GetQuantities() { return this->Quantities; }
  int GetNumberOfQuantityArrays() { return this->Quantities->GetNumberOfArrays(); }
  const char* GetQuantityArrayName(int index) { return this->Quantities->GetArrayName(index); }
  int GetQuantityArrayStatus(const char* name) { return this->Quantities->ArrayIsEnabled(name); }
  void SetQuantityArrayStatus(const char* name, int status)
  {
    this->Quantities->SetArraySetting(name, status);
  }
  void DisableAllQuantities();

  /// Connects the optional dataset of points, input port 1.
  void SetPointsConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }

  vtkMTimeType GetMTime() override;

protected:
  vtkAttentionTorus();

  int RequestDataObject(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;

private:
  void EvaluateImage(atlas::FieldEvaluator& evaluator, AttentionAtlas::FieldOutput& fields,
    const AttentionAtlas::Task& task);
  void EvaluatePoints(atlas::FieldEvaluator& evaluator, AttentionAtlas::FieldOutput& fields,
    const AttentionAtlas::Task& task);

  int Resolution[2] = { 512, 512 };
  vtkNew<vtkDataArraySelection> Quantities;
  AttentionAtlas::ArrayPool Pool;
};
