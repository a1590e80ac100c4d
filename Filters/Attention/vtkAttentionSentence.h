#pragma once

#include "AttentionAtlasAttentionModule.h"
#include "PropertyList.h"

#include <vtkHeadAlgorithm.h>

#include <memory>
#include <vector>

namespace atlas
{
class Progress;
}
class vtkSelection;

/// The attention between the words of a sequence, as lines from queries to keys. Input port 0: a
/// recording (vtkMultiBlockDataSet). Input port 1 (optional): a vtkSelection of points of output 1.
///
/// The words stand in two columns, queries on the left and keys on the right (Vig 2019, "A
/// multiscale visualization of attention in the transformer model"). The distance of rows is 1, and
/// y runs downward. Values and sums are those of Core's SentenceAttention.h, places those of
/// SentenceLayout.h.
///
/// Output 0, vtkPolyData: a line per query and key from the query to the key, by head, query and
/// key. Cell arrays:
/// - Weight (float): the value, above 0 and at least Threshold
/// - Query, Key (id type): rows in the recording's tokens
/// - Layer, Head (int); Head is -1 for the mean over the heads
/// - Opacity (float): Weight, or its share of the largest value for NormWeighted
/// - HeadColor (unsigned char [4]): amber, or that of the head's number in the class palette if
///   several are shown; the last component is the opacity
///
/// Points have Token Index, also as pedigree ids, and Side. Lines of several heads begin and end
/// one below the other.
///
/// Output 1, vtkPolyData: a vertex per word. Point arrays:
/// - Token (string): the token or, if unknown, its place in the image, its id or its position
/// - Label (string): the same as a renderer draws it that puts letters from left to right, see
///   Core's ScreenText.h
/// - Side (unsigned char): 0 query, 1 key
/// - Token Index (id type): the row in the recording's tokens; also the pedigree id, so that a
///   selected word is selected in other views of the recording
/// - Sequence, Position (int), Hidden (unsigned char)
/// - Received, Given (float): the attention that the token receives as a key and gives as a query,
///   after tokens were hidden, from and to the chosen tokens, whatever the threshold and the range
///   of words; the mean over the heads that are shown
///
/// Output 2, vtkPolyData: bars (quadrilaterals) beside the words, whose length is Received, beside
/// the keys; if tokens are chosen among the keys it is Given, beside the queries. The bars of
/// several heads stand end to end; the longest is 4 rows long. In several pages, they are on those
/// of the same queries and keys. Cell arrays: Received or Given (float), Token Index, Layer, Head,
/// HeadColor.
///
/// The tokens of a picture among words that follow each other are one word with JoinPictures: what
/// it receives is the sum over its tokens, what it gives their mean, see Core's JoinedPictures.h.
/// Its Token Index and Position are those of the first token.
///
/// The words of the mean over sequences (Sequence -1) are positions.
///
/// Field data of all: Sequence, Sequence Text (string: how the text begins, if it is known), Layer,
/// HeadColor Legend (string), and View Bounds (double [4], least and largest x and y of words and
/// bars, which a view makes room for).
///
/// The ranges of properties depend on the recording, so UpdateInformation updates the input. On
/// several ranks the first one has all. Canceling leaves the outputs empty.
class ATTENTIONATLASATTENTION_EXPORT vtkAttentionSentence : public vtkHeadAlgorithm
{
public:
  static vtkAttentionSentence* New();
  vtkTypeMacro(vtkAttentionSentence, vtkHeadAlgorithm);

  enum QuantityType
  {
    WEIGHTS = 0,
    NORM_WEIGHTED = 1,
    ROLLOUT = 2
  };

  enum DirectionType
  {
    FROM_QUERIES = 0,
    TO_KEYS = 1
  };

  /// Connects the selection of words.
  void SetSelectionConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }

  /// Heads to show together, instead of Head; each counts once. None: Head alone. Default: none.
  void AddHead(int head) { AttentionAtlas::Append(this, this->Heads, head); }
  void ClearHeads() { AttentionAtlas::Clear(this, this->Heads); }
  const std::vector<int>& GetHeads() const { return this->Heads; }

  /// The quantity: WEIGHTS, NORM_WEIGHTED or ROLLOUT, as AttentionMap has them. Default: WEIGHTS.
  vtkSetClampMacro(Quantity, int, WEIGHTS, ROLLOUT);
  vtkGetMacro(Quantity, int);

  /// The least weight of a line, at least 0. Default: 0, all weights above 0.
  vtkSetMacro(Threshold, double);
  vtkGetMacro(Threshold, double);

  /// Whether the first token of the sequence is hidden. Default: false.
  vtkSetMacro(HideFirst, bool);
  vtkGetMacro(HideFirst, bool);

  /// Whether special tokens are hidden, see Core's SpecialTokens.h. Default: false.
  vtkSetMacro(HideSpecial, bool);
  vtkGetMacro(HideSpecial, bool);

  /// Tokens to hide: rows in the recording's tokens. Those of other sequences change nothing.
  /// Default: none.
  void AddHiddenToken(vtkIdType token) { AttentionAtlas::Append(this, this->HiddenTokens, token); }
  void ClearHiddenTokens() { AttentionAtlas::Clear(this, this->HiddenTokens); }
  const std::vector<vtkIdType>& GetHiddenTokens() const { return this->HiddenTokens; }

  /// Whether the weights of each query are divided by their sum if tokens are hidden, so that they
  /// add up to 1; with sinks, which keep their share, to less. Default: true.
  vtkSetMacro(Renormalize, bool);
  vtkGetMacro(Renormalize, bool);

  /// Whether the tokens of a picture among words are one word. FirstToken and TokenCount then count
  /// such words. Default: true.
  vtkSetMacro(JoinPictures, bool);
  vtkGetMacro(JoinPictures, bool);

  /// Whether the input, as of the last UpdateInformation, has pictures among words.
  int GetHasPictures() { return this->HasPictures; }

  /// Tokens to which the lines are restricted, on the side of Direction: rows in the recording's
  /// tokens, together with those of the selection. None, without a selection: all tokens. If none
  /// is in the sequence there are no lines. Default: none.
  void AddSelectedToken(vtkIdType row) { AttentionAtlas::Append(this, this->SelectedTokens, row); }
  void ClearSelectedTokens() { AttentionAtlas::Clear(this, this->SelectedTokens); }
  const std::vector<vtkIdType>& GetSelectedTokens() const { return this->SelectedTokens; }

  /// FROM_QUERIES: chosen tokens are queries. TO_KEYS: they are keys. If selected words are on one
  /// side only, and SelectedTokens is empty, it is their side that counts. Default: FROM_QUERIES.
  vtkSetClampMacro(Direction, int, FROM_QUERIES, TO_KEYS);
  vtkGetMacro(Direction, int);

  /// The position of the first word that is shown, from 0. Default: 0.
  vtkSetMacro(FirstToken, int);
  vtkGetMacro(FirstToken, int);

  /// The number of words that are shown, as far as there are. 0: all from the first. Default: 0.
  vtkSetMacro(TokenCount, int);
  vtkGetMacro(TokenCount, int);

  /// The rows after which a column of words goes on in another page, see Core's SentenceLayout.h.
  /// 0: one page. Default: 0.
  vtkSetMacro(RowsPerPage, int);
  vtkGetMacro(RowsPerPage, int);

protected:
  vtkAttentionSentence();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Shown;
  struct LastOutput;
  void FindWords(vtkSelection* selection, Shown& shown, const atlas::Progress& progress) const;
  void Evaluate(Shown& shown, const AttentionAtlas::Task& task) const;
  void Fill(const Shown& shown, const AttentionAtlas::Task& task) const;
  void ChooseTokens(vtkSelection* selection, Shown& shown) const;
  std::vector<bool> FindHidden(const Shown& shown) const;

  std::vector<int> Heads;
  int Quantity = WEIGHTS;
  double Threshold = 0;
  bool HideFirst = false;
  bool HideSpecial = false;
  std::vector<vtkIdType> HiddenTokens;
  bool Renormalize = true;
  bool JoinPictures = true;
  int HasPictures = 0;
  std::vector<vtkIdType> SelectedTokens;
  int Direction = FROM_QUERIES;
  int FirstToken = 0;
  int TokenCount = 0;
  int RowsPerPage = 0;
  std::shared_ptr<LastOutput> Last;
};
