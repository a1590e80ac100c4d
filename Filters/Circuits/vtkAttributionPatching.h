#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

#include <memory>

class vtkMultiBlockDataSet;

/// Which heads and MLPs make a model predict one token and not another, and through which edges,
/// estimated by gradients. Input: a language model, a decoder. The measure is the logit of Target
/// minus that of Against at a position, or the loss on the tokens of Prompt. The effect of a node
/// is how much the measure would change if the node wrote what it writes in the run of PatchFrom;
/// that of an edge, if one input of a node read this from another node (attribution patching: Nanda
/// 2023; Syed et al. 2023; with integrated gradients: Hanna et al. 2024). Formulas: Core's
/// AttributionPatching.h.
///
/// Output port 0: a vtkPolyData, the graph: a point per node, a head at (head, layer, 0), an MLP to
/// the right of the heads of its layer, and above them by 0.5 if it reads what they write, the
/// embedding below and the logits above all, with the
/// point arrays Node (string), Layer, Head (int, -1 where there is none), In Circuit (int, 1 for
/// nodes at lines, those of the file, or without edges the Top strongest) and Effect (double); and
/// a line for each of the Top edges of the largest magnitude, or of the file, by rising magnitude,
/// with the cell arrays From, To, Input (string, Q, K, V or Stream), From Layer, From Head, To
/// Layer, To Head, Layer and Head (those of the later node), Effect, Head Name (string, "head 0.3
/// to head 1.5 (K)"), Opacity (float, 0.15 for the weakest line to 1 for the strongest) and
/// CompositionColor (unsigned char [4], the color of Input with that opacity). Field data: Lines
/// Left Out, Layers, Heads (int), Architecture, MLPs, CompositionColor Legend, Listed (string).
/// vtkCircuitWriter writes its lines, and its points in the circuit, to a file.
///
/// Output port 1: a vtkTable with a row per node but the logits: Node, Layer, Head, Effect and, if
/// Exact is on, Exact Effect (double), that of a run with the node patched. Output port 2: a
/// vtkTable with a row per edge, by falling magnitude, empty without edges: From, To, Input, From
/// Layer, From Head, To Layer, To Head, Effect and, with ExactEdges, Exact Effect, NaN for edges
/// beyond them. Output port 3: a vtkPolyData with a vertex per node
/// and its Token.
///
/// Output port 4: a vtkTable, empty unless Circuit is set, with a row per size of a circuit, of the
/// strongest nodes or edges, or one for that of a file: Size (int), Faithfulness, Without Circuit
/// and Incompleteness (double): with m the measure, (m - m PatchFrom) / (m Prompt - m PatchFrom) of
/// the run with all else as for PatchFrom, and of the run with the circuit as for PatchFrom.
/// Faithfulness is 1 if the circuit alone reproduces the whole model's difference (Hanna et al.
/// 2024); Without Circuit is the share of it that remains without the circuit (Marks et al. 2024).
/// Incompleteness is 0 if circuit and model without the same part of the circuit do the same (Wang
/// et al. 2022; Core's CircuitCurves.h).
///
/// Field data of all: Target, Against (string), Target TokenId, Against TokenId (int, of each
/// pair), Prompt Logit Difference and Source Logit Difference (double); of a loss instead Prompt
/// Loss and Source Loss (double). On several ranks the first one has all. A change of Top computes
/// nothing again. Canceling leaves all empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkAttributionPatching : public vtkTaskAlgorithm
{
public:
  static vtkAttributionPatching* New();
  vtkTypeMacro(vtkAttributionPatching, vtkTaskAlgorithm);

  enum PromptFormatType
  {
    LINES = 0,
    ONE_TEXT = 1,
    JSON_LINES = 2
  };

  enum MeasureType
  {
    LOGIT_DIFFERENCE = 0,
    LOSS = 1
  };

  enum CircuitType
  {
    NO_CIRCUIT = 0,
    NODES = 1,
    EDGES = 2,
    FROM_FILE = 3
  };

  /// The text whose run is explained, or several, as PromptFormat says, of which all measures and
  /// effects are means; of a model without a tokenizer, token ids separated by
  /// spaces. Null or empty: none, and the outputs are empty. Default: When John and Mary went to
  /// the store, John gave a drink to (of the task of Wang et al. 2023).
  vtkSetStdStringFromCharMacro(Prompt);
  vtkGetCharFromStdStringMacro(Prompt);

  /// The text of the other run of each, likewise; with as many tokens. Default: When Mary and John
  /// went to the store, Mary gave a drink to.
  vtkSetStdStringFromCharMacro(PatchFrom);
  vtkGetCharFromStdStringMacro(PatchFrom);

  /// How both are written, as vtkActivationPatching has it. Default: LINES.
  vtkSetClampMacro(PromptFormat, int, LINES, JSON_LINES);
  vtkGetMacro(PromptFormat, int);

  /// What is measured: the difference of two logits, or the LOSS, the mean cross-entropy in nats of
  /// each token of Prompt after the first, given those before, in all runs. It takes neither
  /// Target, Against nor Position. Default: LOGIT_DIFFERENCE.
  vtkSetClampMacro(Measure, int, LOGIT_DIFFERENCE, LOSS);
  vtkGetMacro(Measure, int);

  /// The token whose logit is measured, by text or id (Core's TokenFinder.h). Null or empty: the
  /// one that the run of Prompt predicts. Default: none.
  vtkSetStdStringFromCharMacro(Target);
  vtkGetCharFromStdStringMacro(Target);

  /// The token whose logit is subtracted, likewise. Null or empty: the one that the run of
  /// PatchFrom predicts. Default: none.
  vtkSetStdStringFromCharMacro(Against);
  vtkGetCharFromStdStringMacro(Against);

  /// Where the logits are: a position from 0, or -1 for the last. Default: -1.
  vtkSetClampMacro(Position, int, -1, VTK_INT_MAX);
  vtkGetMacro(Position, int);

  /// How many gradients are averaged, on the way from the embeddings of PatchFrom to those of
  /// Prompt; 1: that of the run of Prompt alone. Default: 10.
  vtkSetClampMacro(Steps, int, 1, VTK_INT_MAX);
  vtkGetMacro(Steps, int);

  /// Whether each node is patched in a run of its own, too. Default: off.
  vtkSetMacro(Exact, bool);
  vtkGetMacro(Exact, bool);
  vtkBooleanMacro(Exact, bool);

  /// How many of the strongest edges are patched in a run of their own, too; 0: none. Default: 0.
  vtkSetClampMacro(ExactEdges, int, 0, VTK_INT_MAX);
  vtkGetMacro(ExactEdges, int);

  /// Whether circuits are run alone: NO_CIRCUIT; those of the strongest NODES; of the strongest
  /// EDGES; or that FROM_FILE, which the graph then shows. Default: NO_CIRCUIT.
  vtkSetClampMacro(Circuit, int, NO_CIRCUIT, FROM_FILE);
  vtkGetMacro(Circuit, int);

  /// The file of a circuit of the model, for FROM_FILE (vtkCircuitWriter). Default: none.
  vtkSetStdStringFromCharMacro(CircuitFile);
  vtkGetCharFromStdStringMacro(CircuitFile);

  /// Whether edges are estimated, too; without them the graph has no lines. Circuits of edges
  /// estimate them in any case. Default: on.
  vtkSetMacro(Edges, bool);
  vtkGetMacro(Edges, bool);
  vtkBooleanMacro(Edges, bool);

  /// The largest number of lines; 0 for all. Default: 60.
  vtkSetClampMacro(Top, int, 0, VTK_INT_MAX);
  vtkGetMacro(Top, int);

protected:
  vtkAttributionPatching();

  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Result;
  struct Memory;

  Result Compute(
    vtkMultiBlockDataSet* input, const std::string& file, const AttentionAtlas::Task& task) const;

  std::string Prompt;
  std::string PatchFrom;
  std::string Target;
  std::string Against;
  std::string CircuitFile;
  int PromptFormat = LINES;
  int Measure = LOGIT_DIFFERENCE;
  int Position = -1;
  int Steps = 10;
  bool Exact = false;
  int ExactEdges = 0;
  int Circuit = NO_CIRCUIT;
  bool Edges = true;
  int Top = 60;
  std::shared_ptr<Memory> Kept;
};
