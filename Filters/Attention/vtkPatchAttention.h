#pragma once

#include "AttentionAtlasAttentionModule.h"
#include "PropertyList.h"

#include <vtkHeadAlgorithm.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

class vtkMultiBlockDataSet;
class vtkSelection;

namespace atlas
{
struct PatchOptions;
struct RecordedPictures;
}
namespace AttentionAtlas
{
class MatrixPanels;
struct PatchCanvas;
struct ShownPatches;
}

/// The attention of one head on the pictures that a transformer saw. Input port 0: a recording of
/// images or of pictures among words (vtkMultiBlockDataSet). Input port 1 (optional): a
/// vtkSelection of tokens, by cells of output 0 or by values or pedigree ids of Token Index.
///
/// The weight of a token is how much the chosen tokens attend to it (From, the mean over them) or
/// how much it attends to them (To, the sum), as in the image view of AttentionViz (Yeh et al.
/// 2023); formulas in Core's PatchAttention.h. The chosen tokens are those selected in the image
/// or, if none is, the patch in row and column Patch.
///
/// Of pictures among words the pictures of a sequence, or one of them, are shown side by side, with
/// a gap of one patch; a patch is what one token stands for. The chosen tokens may then be words:
/// those that are selected, here or in other views, the patch in row and column Patch of
/// PatchPicture or, if that is -1, -1, the token at position Token. Words have no cells; the field
/// array Weight on Words is the sum of their weights. With AttentionKind ENCODER the images of the
/// encoder are shown, as those of other recordings of images, on the pictures of the text.
///
/// The center of the patch in row r and column c is at x = c, y = -r times the height of a patch,
/// whose width is 1, in the first picture. Class tokens are left of the picture.
///
/// Output 0, vtkPolyData: a cell per token of the image, or of the pictures that are shown, in
/// their order. Cell arrays: Weight (float), Heat (the same, for a color table that other views do
/// not share), Token Index (row in the recording's tokens; also the pedigree id), Position, Row,
/// Column (-1 for a class token), Layer, Head, Sequence (int); of pictures among words also Picture
/// (int, the number among those of the sequence). Layer is -1 for the mean over layers.
///
/// Output 1, vtkPolyData: a filled arrow per query and key, for each query and its strongest key,
/// or for all of at least ArrowThreshold; never to or from words. Cell arrays: Weight, Query, Key
/// (rows in the recording's tokens), Layer, Head, Sequence. The wider an arrow the larger its
/// weight.
///
/// Output 2, vtkPolyData: marks of the tokens whose strongest key, of at least ArrowThreshold, is
/// themselves (a disc), or a class token or word (a square); they have no arrow to it. Cell arrays:
/// those of the other two, and Mark (0 itself, 1 class token or word).
///
/// Output 3, vtkImageData: the picture, or all that are shown with white between them, exactly
/// under its patches, with a point in the middle of each pixel and the point array PictureColor
/// (unsigned char [3]). Its pixels are those that the model saw, as they were recorded or read
/// again from the file, if its pixels are still the same. If not, an error says so; then, and in
/// recordings without pictures, which gives a warning, each patch has its mean color or, if that
/// was not recorded, gray. The mean over all images (Sequence -1) has no picture.
///
/// Output 4, vtkPolyData: frames around the chosen tokens that have cells, with Token Index,
/// Position, Row, Column, Layer, Head and Sequence.
///
/// With AllHeads the picture is there once for each head, layers downward and heads rightward, with
/// gaps. Output 0 then has a cell per head and patch, without class tokens, with the Layer and Head
/// of each and, in place of Heat, RelativeHeat (float): the weight as a share of the largest weight
/// of a patch of its head. Outputs 1, 2 and 4 are empty, and the picture has at most 4096 pixels on
/// a side, or one per patch. Output 5, vtkPolyData: the titles of layers and heads, with vertices
/// and the point array Token (string), to be shown as Token Labels; empty without AllHeads.
///
/// Output 6, vtkPolyData: the cells of output 0 with their arrays, but as large as their patches,
/// whatever HeatSide is, for views to select them. A selection of these chooses the same tokens.
///
/// Outputs 1, 2 and 4 also have the cell array MarkColor (unsigned char [3]), cyan for keys, gray
/// for those of other queries than the chosen ones (with TO, for other keys), and green for what
/// was chosen, and the field array MarkColor Legend (string).
///
/// Field data of outputs 0, 1, 2, 4 and 6: Sequence, Layer and Head (int); of pictures among words
/// Weight on Words (double). Of one head output 0 has Signs (string), what is drawn in words, and
/// Heat Title (string), what other values than weights are called.
///
/// The size of the picture depends on the recording, so UpdateInformation updates the input. On
/// several ranks the first one has all cells, and each a part of the picture. Canceling leaves the
/// outputs empty.
class ATTENTIONATLASATTENTION_EXPORT vtkPatchAttention : public vtkHeadAlgorithm
{
public:
  static vtkPatchAttention* New();
  vtkTypeMacro(vtkPatchAttention, vtkHeadAlgorithm);

  enum QuantityType
  {
    WEIGHTS = 0,
    NORM_WEIGHTED = 1,
    ROLLOUT = 2
  };

  enum DirectionType
  {
    FROM = 0,
    TO = 1
  };

  enum ArrowsType
  {
    STRONGEST = 0,
    ABOVE = 1
  };

  /// The picture to show, of those among the words of the sequence, from 0; each group of frames of
  /// a video, or each frame where frames are pictures, is one. -1: all of them. Default: -1.
  vtkSetMacro(Picture, int);
  vtkGetMacro(Picture, int);

  /// Of pictures among words, the position of the chosen token in the sequence, from 0; -1: the
  /// last one, which is the newest where words are generated over time. Selected tokens and Patch
  /// take precedence. Default: -1.
  vtkSetMacro(Token, int);
  vtkGetMacro(Token, int);

  /// Of pictures among words, the picture in which Patch is, of those of the sequence, from 0.
  /// Default: 0.
  vtkSetMacro(PatchPicture, int);
  vtkGetMacro(PatchPicture, int);

  /// Whether the mean over all recorded layers is shown, in place of Layer. Not for ROLLOUT.
  /// Default: false.
  vtkSetMacro(MeanOfLayers, bool);
  vtkGetMacro(MeanOfLayers, bool);

  /// Whether all heads of all recorded layers are shown, in place of one: the picture once for
  /// each, as panels in a grid. ROLLOUT has one panel per layer. Default: false.
  vtkSetMacro(AllHeads, bool);
  vtkGetMacro(AllHeads, bool);

  /// Of the input, as of the last UpdateInformation: whether it has pictures among words; from -1
  /// the last picture of the sequence, and the last token.
  int GetHasWords() { return this->HasWords; }
  int* GetPictureRange() VTK_SIZEHINT(2) { return this->PictureRange; }
  int* GetTokenRange() VTK_SIZEHINT(2) { return this->TokenRange; }

  /// Connects the selection of tokens.
  void SetSelectionConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }

  /// The quantity: WEIGHTS, NORM_WEIGHTED or ROLLOUT, see Core's RecordedAttention.h. Default:
  /// WEIGHTS.
  vtkSetClampMacro(Quantity, int, WEIGHTS, ROLLOUT);
  vtkGetMacro(Quantity, int);

  /// The row and column of the chosen patch, from 0 at the top left; -1, -1: the class token or, in
  /// an image without one, all patches; of pictures among words Token. Selected tokens of the image
  /// take precedence. Default: -1, -1.
  vtkSetVector2Macro(Patch, int);
  vtkGetVector2Macro(Patch, int);

  /// FROM: what the chosen tokens attend to. TO: what attends to them. Default: FROM.
  vtkSetClampMacro(Direction, int, FROM, TO);
  vtkGetMacro(Direction, int);

  /// STRONGEST: an arrow from each query to its strongest key. ABOVE: to all keys of at least
  /// ArrowThreshold. Default: STRONGEST.
  vtkSetClampMacro(Arrows, int, STRONGEST, ABOVE);
  vtkGetMacro(Arrows, int);

  /// The least weight of arrows and marks, at least 0. Default: 0.1.
  vtkSetMacro(ArrowThreshold, double);
  vtkGetMacro(ArrowThreshold, double);

  /// The side of the square of a patch in output 0, as a share of the patch, above 0 and at most 1.
  /// Around it the picture can be seen. Default: 0.6.
  vtkSetMacro(HeatSide, double);
  vtkGetMacro(HeatSide, double);

  /// The chosen tokens, as rows in the recording's tokens, from 0, together with those of the
  /// selection. Those of other images change nothing. Default: none.
  void AddSelectedToken(vtkIdType row) { AttentionAtlas::Append(this, this->SelectedTokens, row); }
  void ClearSelectedTokens() { AttentionAtlas::Clear(this, this->SelectedTokens); }
  const std::vector<vtkIdType>& GetSelectedTokens() const { return this->SelectedTokens; }

protected:
  vtkPatchAttention();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  void ShowPicture(const AttentionAtlas::ShownPatches& shown,
    const AttentionAtlas::PatchCanvas& canvas, const atlas::RecordedPictures& pictures,
    const AttentionAtlas::Task& task);
  std::array<int, 2> FindSize(vtkMultiBlockDataSet* recording);
  AttentionAtlas::MatrixPanels PanelsOf(
    vtkMultiBlockDataSet* part, const AttentionAtlas::PatchCanvas& canvas) const;
  void ShowHead(AttentionAtlas::ShownPatches& shown, atlas::PatchOptions& options,
    const AttentionAtlas::Task& task);
  void ShowAllHeads(AttentionAtlas::ShownPatches& shown, atlas::PatchOptions& options,
    const AttentionAtlas::MatrixPanels& panels, const AttentionAtlas::Task& task);
  std::vector<std::int64_t> ChooseTokens(AttentionAtlas::ShownPatches& shown,
    const AttentionAtlas::MatrixPanels& panels, vtkSelection* selection) const;

  int HasWords = 0;
  int PictureRange[2] = { -1, 0 };
  int TokenRange[2] = { -1, 0 };
  int Picture = -1;
  int Token = -1;
  int PatchPicture = 0;
  bool MeanOfLayers = false;
  bool AllHeads = false;
  int Quantity = WEIGHTS;
  int Patch[2] = { -1, -1 };
  int Direction = FROM;
  int Arrows = STRONGEST;
  double ArrowThreshold = 0.1;
  double HeatSide = 0.6;
  std::vector<vtkIdType> SelectedTokens;
  /// The input and the image of which it was told that there is no picture.
  std::pair<vtkMTimeType, int> Told = { 0, 0 };
};
