#pragma once

#include "AttentionAtlasEmbeddingModule.h"

#include <vtkRecordingAlgorithm.h>

#include <memory>
#include <vector>

namespace atlas
{
struct LayoutTask;
}
namespace AttentionAtlas
{
class RankGroup;
}

/// The queries and keys of each head, laid out in one plane or space. Input: a recording with
/// queries and keys. In each head the queries and keys of all chosen tokens are joined in one
/// space, where a small distance means a large dot product (Yeh et al. 2023, AttentionViz), and
/// laid out by principal components, t-SNE or UMAP. Formulas: Core's JointVectors.h,
/// HeadCorrelation.h, Principal.h, TSne.h and Umap.h. In cross attention the queries are of the
/// tokens of the target and the keys of those of the source, so their numbers differ.
///
/// Output 0: a vtkPolyData with a vertex per query and key: head by head in the order of layers and
/// heads, the queries of all chosen tokens and then their keys. The vertices alternate between
/// them, so that neither hides the other. Point arrays:
/// - Kind (unsigned char): 0 query, 1 key
/// - Token Index (id type): the row of the token in the recording; also the pedigree id, so that a
///   selection of tokens holds in all heads and in other views of the recording
/// - Layer, Head, Sequence, Position (int), Token (string)
/// - Relative Position (float): from 0 for the first token of the sequence to 1 for the last; in
///   cross attention of its text
/// - Norm (float): |q| or |k| before translation and scaling
/// - TokenId (64-bit integer), Token Count (int): how often the id occurs in the recording, in
///   cross attention in its sources or its targets; only if ids are known
/// - Segment (int): the token type; only if segments are known
/// - Row, Column (int): of the patch, -1 for a class token, and Patch Color (float [3]), its mean
///   red, green and blue, 0 to 1, if known; only for images
/// - TokenColor (unsigned char [3]): queries blue and keys vermilion, from pale for the first token
///   of the sequence to the full color for the last; as of vtkTokenColors
///
/// Field data: Method, Arrangement (string), Dimensions (int), TokenColor Legend (string).
///
/// Output 1: a vtkTable with a row per head, on the first rank. Columns: Layer, Head (int); Key
/// Scale (c); Correlation (Pearson, of q . k with the distance | q / c - c k | after translation,
/// over the pairs that the mask allows); Correlation Before (without translation and scaling); Rank
/// Correlation (Spearman, of q . k with 1 - cos, the mean over the queries of a sequence, then over
/// sequences, as in the published notebooks); Query Norm, Key Norm (the means); KL Divergence (in
/// nats) and Iterations (done) of t-SNE; Variance Explained (of PCA, 0 to 1, by the components
/// shown); Neighbors Kept (the share of the 15 nearest points that are among the 15 nearest in the
/// layout, 0 to 1). All but the first two and Iterations are double; NaN where not defined.
///
/// Output 2: a vtkPolyData with the titles of a grid, on the first rank: a vertex at each row and
/// column of heads, with the point arrays Token (string), "Layer 3" or "Head 5", and Side (unsigned
/// char): 0 for titles of layers, which are left of their point, and 2 for those of heads. Empty
/// for one head or overlaid ones.
///
/// Layouts are kept: a change of Arrangement, or of the chosen layer and head among those that are
/// known, computes none. If only scale or perplexity change, or the time of the recording, t-SNE
/// and UMAP start from the layout before, so that points stay near their places. Progress names the
/// number of heads and the divergence. Canceling keeps the layouts reached; heads that have not
/// begun are missing, until the next execution.
///
/// If each of several MPI ranks is asked for one piece, each lays out a part of the heads and
/// receives the other layouts; output 0 of each rank has a part of the heads. Together they are
/// equal to the byte for any number of ranks and threads.
class ATTENTIONATLASEMBEDDING_EXPORT vtkHeadEmbedding : public vtkRecordingAlgorithm
{
public:
  static vtkHeadEmbedding* New();
  vtkTypeMacro(vtkHeadEmbedding, vtkRecordingAlgorithm);

  enum MethodType
  {
    PCA = 0,
    TSNE = 1,
    UMAP = 2
  };
  enum KeyScalingType
  {
    SCALING_NONE = 0,
    NORMS = 1,
    OPTIMIZED = 2,
    FIXED = 3
  };
  enum MetricType
  {
    COSINE = 0,
    SQUARED_COSINE = 1,
    EUCLIDEAN = 2
  };
  enum PresetType
  {
    PRESET_NONE = 0,
    ATTENTION_VIZ = 1
  };
  enum ArrangementType
  {
    GRID = 0,
    OVERLAID = 1
  };

  /// The distance between the squares of neighboring heads in the grid, whose side is 1.
  static constexpr double GridStep = 1.2;

  /// PCA: principal components. TSNE: t-SNE (van der Maaten and Hinton 2008). UMAP: McInnes, Healy
  /// and Melville 2018. Default: PCA, which shows many heads at once.
  vtkSetClampMacro(Method, int, PCA, UMAP);
  vtkGetMacro(Method, int);

  /// The dimensions of the layout, 2 or 3. Default: 2.
  vtkSetClampMacro(Dimensions, int, 2, 3);
  vtkGetMacro(Dimensions, int);

  /// The index of the layer in the model, from 0; -1 for all that are recorded. Default: -1.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The index of the head, from 0; -1 for all. Default: -1.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// The index of the sequence or image, from 0; -1 for all. Default: -1.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// Whether keys are moved by mean(q) - mean(k) over the chosen tokens. The softmax does not
  /// change. Default: on.
  vtkSetMacro(KeyTranslation, bool);
  vtkGetMacro(KeyTranslation, bool);
  vtkBooleanMacro(KeyTranslation, bool);

  /// How the scale c is chosen by which queries are divided and keys multiplied. The softmax does
  /// not change, nor do layouts by a cosine metric. SCALING_NONE: 1. NORMS: sqrt(mean |q| / mean
  /// |k|). OPTIMIZED: the c from 1/16 to 16 with the lowest Correlation (see above). FIXED:
  /// KeyScale. Default: OPTIMIZED.
  vtkSetClampMacro(KeyScaling, int, SCALING_NONE, FIXED);
  vtkGetMacro(KeyScaling, int);

  /// The scale c for FIXED, above 0. Default: 1.
  vtkSetMacro(KeyScale, double);
  vtkGetMacro(KeyScale, double);

  /// The distance of t-SNE and UMAP, squared: COSINE: 2 (1 - cos). SQUARED_COSINE: (1 - cos)^2.
  /// EUCLIDEAN: |x - y|^2. Default: COSINE.
  vtkSetClampMacro(Metric, int, COSINE, EUCLIDEAN);
  vtkGetMacro(Metric, int);

  /// ATTENTION_VIZ: the settings of the published pictures of AttentionViz instead of KeyScaling,
  /// Metric, Perplexity, Iterations, Neighbors and MinimumDistance. Its t-SNE does not converge.
  /// Default: PRESET_NONE.
  vtkSetClampMacro(Preset, int, PRESET_NONE, ATTENTION_VIZ);
  vtkGetMacro(Preset, int);

  /// The perplexity of t-SNE: about how many neighbors a point has. Default: 50.
  vtkSetMacro(Perplexity, double);
  vtkGetMacro(Perplexity, double);

  /// -1 for all, and the last sequence, layer or head of the input; -1, 0 without input.
  int* GetSequenceRange() VTK_SIZEHINT(2);
  int* GetLayerRange() VTK_SIZEHINT(2);
  int* GetHeadRange() VTK_SIZEHINT(2);

  /// 1, and 50 or the largest perplexity that works for the tokens of the input, if that is less;
  /// 1, 50 without input.
  double* GetPerplexityRange() VTK_SIZEHINT(2);

  /// The iterations of t-SNE, at least 1. Default: 750.
  vtkSetClampMacro(Iterations, int, 1, VTK_INT_MAX);
  vtkGetMacro(Iterations, int);

  /// Whether the iterations of t-SNE are time steps of the output: the layout as it forms, at every
  /// FrameInterval-th iteration. They are kept in memory. Time steps of the input are then not
  /// available. Default: off.
  vtkSetMacro(IterationsAsTime, bool);
  vtkGetMacro(IterationsAsTime, bool);
  vtkBooleanMacro(IterationsAsTime, bool);

  /// The iterations between two time steps.
  static constexpr int FrameInterval = 10;

  /// The neighbors of UMAP, counting the point itself, at least 2. Default: 15.
  vtkSetClampMacro(Neighbors, int, 2, VTK_INT_MAX);
  vtkGetMacro(Neighbors, int);

  /// The distance of UMAP at which points do not attract each other any more, in units of the
  /// layout, at least 0. Default: 0.1.
  vtkSetMacro(MinimumDistance, double);
  vtkGetMacro(MinimumDistance, double);

  /// The largest number of tokens, of cross attention of each text, drawn at random; 0 for all.
  /// Default: 0.
  vtkSetClampMacro(Sample, int, 0, VTK_INT_MAX);
  vtkGetMacro(Sample, int);

  /// The seed of all random numbers, at least 0. Default: 0.
  vtkSetClampMacro(Seed, int, 0, VTK_INT_MAX);
  vtkGetMacro(Seed, int);

  /// GRID: a square of side 1 for each head, to which each axis is stretched; layers downward,
  /// heads to the right, at multiples of GridStep. In three dimensions a cube. One head alone, with
  /// Layer and Head at least 0, is at the origin, so that another takes its place. OVERLAID: the
  /// layouts as they are, all at the origin. Default: GRID.
  vtkSetClampMacro(Arrangement, int, GRID, OVERLAID);
  vtkGetMacro(Arrangement, int);

protected:
  vtkHeadEmbedding();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Part;
  struct Memory;
  Part Choose(const AttentionAtlas::Task& task);
  std::vector<atlas::LayoutTask> DealMissing(
    const Part& part, const AttentionAtlas::RankGroup& ranks);
  void LayOut(Part& part, const AttentionAtlas::Task& task);
  void MakeOutputs(const Part& part, const AttentionAtlas::Task& task);

  int Method = PCA;
  int Dimensions = 2;
  int Layer = -1;
  int Head = -1;
  int Sequence = -1;
  bool KeyTranslation = true;
  int KeyScaling = OPTIMIZED;
  double KeyScale = 1;
  int Metric = COSINE;
  int Preset = PRESET_NONE;
  double Perplexity = 50;
  int SequenceRange[2] = { -1, 0 };
  int LayerRange[2] = { -1, 0 };
  int HeadRange[2] = { -1, 0 };
  double PerplexityRange[2] = { 1, 50 };
  int Iterations = 750;
  bool IterationsAsTime = false;

  /// Whether there are layouts at several iterations, which are then the times of the outputs.
  bool HasFrames() const { return this->IterationsAsTime && this->Method == TSNE; }
  int Neighbors = 15;
  double MinimumDistance = 0.1;
  int Sample = 0;
  int Seed = 0;
  int Arrangement = GRID;
  std::shared_ptr<Memory> Known; ///< from earlier executions
};
