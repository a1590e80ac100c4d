#pragma once

#include "AttentionAtlasGeometryModule.h"

#include <vtkHeadAlgorithm.h>

#include <memory>

/// Where in space a query attends: its attention as an array on a mesh. Input port 0: a dataset, or
/// a composite of datasets, from vtkBindTokens. Input port 1: the recording (vtkMultiBlockDataSet).
/// Input port 2 (optional): a vtkSelection of points or cells.
///
/// A query is a token, the place nearest to a position, or a selection of places: the mean over
/// them. A place of soft slices is the mix of their rows by its weights. Each token has a value,
/// that of Core's SpatialAttention.h: what the query attends to (FROM), what attends to it (TO), or
/// what it is made of (HOLDS). A place has the value of its token, or the sum over slices of its
/// weights times their values.
///
/// Output 0 is the input, geometry and arrays untouched, with the array Attention (float) of the
/// points or cells that are bound.
///
/// Output 1, vtkPolyData: lines from the center of the query to those of the tokens of largest
/// value that have places (FROM), or from these to it (TO). Cell arrays: Weight (float), Query, Key
/// (rows of the recording's tokens; of a mix its largest token), Layer, Head, Sequence (int),
/// MarkColor (unsigned char [3]).
///
/// Output 2, vtkPolyData: a vertex at the center of the query, with Token Index, Layer, Head,
/// Sequence and MarkColor, and for its label, which is seen where something hides it, the point
/// arrays Token (string, "Query" and its text or, for the mean of all sequences, its position),
/// Kind (int, 0) and MarkColor.
///
/// Output 3, vtkTable: the tokens of largest value, the largest first: Token Index (row of the
/// recording's tokens), Position (in the sequence), Token (string), Weight (float, the value),
/// Places (their number), Place Weight (double, the sum of their weights) and Center (double [3],
/// the mean of their positions by their weights; NaN without places).
///
/// Field data of outputs 1 and 2: Layer, Head and Sequence (int).
///
/// Time steps are those of the dataset and of the recording, which may be one of a model's
/// checkpoints.
///
/// On several ranks each has its part of the dataset, and the first one the other outputs, which
/// are equal to the byte on any number of ranks. Places that are ghosts count once. Canceling
/// leaves the outputs empty.
class ATTENTIONATLASGEOMETRY_EXPORT vtkSpatialAttention : public vtkHeadAlgorithm
{
public:
  static vtkSpatialAttention* New();
  vtkTypeMacro(vtkSpatialAttention, vtkHeadAlgorithm);

  enum QuantityType
  {
    WEIGHTS = 0,
    NORM_WEIGHTED = 1,
    ROLLOUT = 2
  };

  enum DirectionType
  {
    FROM = 0,
    TO = 1,
    HOLDS = 2
  };

  enum QueryByType
  {
    TOKEN = 0,
    PROBE = 1
  };

  /// Connects the recording, and the selection of places.
  void SetRecordingConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }
  void SetSelectionConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(2, data); }

  /// The quantity: WEIGHTS, NORM_WEIGHTED or ROLLOUT, see Core's RecordedAttention.h. Default:
  /// WEIGHTS.
  vtkSetClampMacro(Quantity, int, WEIGHTS, ROLLOUT);
  vtkGetMacro(Quantity, int);

  /// What is shown of the query. Default: FROM.
  vtkSetClampMacro(Direction, int, FROM, HOLDS);
  vtkGetMacro(Direction, int);

  /// What the query is without selected places: TOKEN, or PROBE, the place nearest to Probe.
  /// Default: TOKEN.
  vtkSetClampMacro(QueryBy, int, TOKEN, PROBE);
  vtkGetMacro(QueryBy, int);

  /// For TOKEN: the position of the token in the sequence, from 0. Default: 0.
  vtkSetMacro(Token, int);
  vtkGetMacro(Token, int);

  /// For PROBE: the position in space. Default: 0, 0, 0.
  vtkSetVector3Macro(Probe, double);
  vtkGetVector3Macro(Probe, double);

  /// Where steps of time are tokens: the step of the places of the query, from 0; -1: the step that
  /// is shown. Default: -1.
  vtkSetMacro(QueryStep, int);
  vtkGetMacro(QueryStep, int);

  /// The largest number of lines and rows of the table. Default: 10.
  vtkSetMacro(Count, int);
  vtkGetMacro(Count, int);

  /// How far the middle of a line is from a straight one, as a part of its length. Default: 0.
  vtkSetMacro(Bend, double);
  vtkGetMacro(Bend, double);

  /// Whether the value of a token is divided among its places, by their number or of slices by
  /// their weights, so that the values of all places add up to those of the tokens. Default: off.
  vtkSetMacro(DivideAmongPlaces, bool);
  vtkGetMacro(DivideAmongPlaces, bool);
  vtkBooleanMacro(DivideAmongPlaces, bool);

protected:
  vtkSpatialAttention();

  int RecordingPort() const override { return 1; }
  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Known;
  struct Query;

  Query FindQuery(const Known& known, const AttentionAtlas::Task& task) const;

  int Quantity = WEIGHTS;
  int Direction = FROM;
  int QueryBy = TOKEN;
  int Token = 0;
  double Probe[3] = { 0, 0, 0 };
  int QueryStep = -1;
  int Count = 10;
  double Bend = 0;
  bool DivideAmongPlaces = false;
  std::shared_ptr<Known> Last;
};
