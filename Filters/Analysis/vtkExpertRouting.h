#pragma once

#include "AttentionAtlasAnalysisModule.h"

#include <vtkTaskAlgorithm.h>

/// Which experts a model chose for which tokens, and how they are used. Input: a recording with the
/// routing of a model with experts (Shazeer et al. 2017): of each layer with experts, those that
/// were chosen for each token, and the factors of their outputs. Formulas: Core's ExpertLoad.h.
///
/// Output 0: a vtkImageData, by Show.
/// - LAYERS: a point per token of the Sequence (rightward) and layer with experts (upward). Expert
///   (int), the one with the largest weight, and Expert Weight (float), that weight.
/// - EXPERTS: a point per token of the Sequence (rightward) and expert of the Layer (downward).
///   Expert and Expert Weight, 0 where it was not chosen.
/// - LOAD: a point per expert (rightward) and layer (upward). Expert, Count (int), the tokens of
///   all sequences that it was chosen for, Share (float) of all tokens and Mean Weight (float) over
///   those that it was chosen for. In a layer with fewer experts than others, Expert is -1 and all
///   else 0 beyond its last.
///
/// Of models whose routers add a bias to scores where they choose experts (DeepSeek-AI 2024:
/// DeepSeek-V3), points of tokens also have Expert Score (float), that of the router without the
/// bias, 0 where the expert was not chosen; those of LOAD Mean Score (float); and all Expert Bias
/// (float), that of the expert.
///
/// All have Layer; those of tokens also Sequence, Position (int) and Token Index (id type). Field
/// data: the labels Key Token (of columns) and Query Token (of rows), and their titles.
///
/// Output 1: a vtkTable with a row per expert of each layer: Layer, Expert, Count (int), Share and
/// Mean Weight (double), as above; with a bias also Mean Score and Expert Bias (double).
///
/// Output 2: a vtkTable with the Top tokens that go to each expert most often: Layer, Expert, Rank
/// (int, from 1), Token (string), Count (int, places where it goes there), Share (double, of all
/// places where it is) and Mean Weight (double); with a bias also Mean Score (double). Without rows
/// if tokens have neither ids nor texts.
///
/// Output 3: for LAYERS, vtkPolyData with the number of the Expert as Token (string) at the left
/// end of each cell, with Layer, Position and Side, for the representation Token Labels.
///
/// The size of the image depends on the recording, so UpdateInformation updates it. On several
/// ranks the first one has the tables and the labels.
class ATTENTIONATLASANALYSIS_EXPORT vtkExpertRouting : public vtkTaskAlgorithm
{
public:
  static vtkExpertRouting* New();
  vtkTypeMacro(vtkExpertRouting, vtkTaskAlgorithm);

  enum ShowType
  {
    LAYERS = 0,
    EXPERTS = 1,
    LOAD = 2
  };

  /// What the image shows, see above. Default: LAYERS.
  vtkSetClampMacro(Show, int, LAYERS, LOAD);
  vtkGetMacro(Show, int);

  /// The index of the sequence, from 0, for LAYERS and EXPERTS. Default: 0.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// The layer, counted from 0, for EXPERTS; one that has experts. Default: 0.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// How many tokens of each expert the second table has, at least 1. Default: 10.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// The first and last sequence of the input, and layer with routing, as of the last
  /// UpdateInformation; 0, 0 without input.
  int* GetSequenceRange() VTK_SIZEHINT(2) { return this->SequenceRange; }
  int* GetLayerRange() VTK_SIZEHINT(2) { return this->LayerRange; }

protected:
  vtkExpertRouting();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  int Show = LAYERS;
  int Sequence = 0;
  int Layer = 0;
  int Top = 10;
  int SequenceRange[2] = { 0, 0 };
  int LayerRange[2] = { 0, 0 };
};
