#pragma once

#include "AttentionAtlasTokensModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

class vtkDataSetAttributes;
class vtkUnsignedCharArray;

/// Finds the points of a token, and the heads that gather them. Input: a vtkDataSet or vtkTable
/// with the point or row array Token (string), or TokenId (integer) for the match TOKEN_ID;
/// optionally Layer and Head.
///
/// Output port 0: the input with the array Match (unsigned char): 1 for tokens that are found, else
/// 0. Port 1: the points that are found, with all arrays: vtkPolyData with a vertex per point, or
///    of a table its rows. Port 2: a vtkTable with a row per head: Layer, Head (int), Matches
///    (64-bit integer, how many points are found) and, of a dataset, Spread (double): the mean
///    distance of the points found, over that of all points of the head. Of more than 8,192 points,
///    as many in even steps stand for all. Spread is below 1 where a head gathers the word; rows
///    are sorted by it, the smallest first. It is NaN, and the head last, if fewer than two points
///    are found. Data without Layer or Head are one head with the number -1.
///
/// On several ranks the table has the heads of all, and is on the first rank.
class ATTENTIONATLASTOKENS_EXPORT vtkTokenSearch : public vtkTaskAlgorithm
{
public:
  static vtkTokenSearch* New();
  vtkTypeMacro(vtkTokenSearch, vtkTaskAlgorithm);

  enum MatchType
  {
    CONTAINS = 0,
    WHOLE = 1,
    REGULAR_EXPRESSION = 2,
    TOKEN_ID = 3
  };

  /// What is searched; for TOKEN_ID one or more ids, separated by spaces or commas. Empty: nothing
  /// is found. Default: empty.
  vtkSetStdStringFromCharMacro(Text);
  vtkGetCharFromStdStringMacro(Text);

  /// How: CONTAINS, the text is a part of the token. WHOLE, it is the token, white space at the
  /// ends of which does not count unless the text has some. REGULAR_EXPRESSION, the expression
  /// (PCRE2) matches a part of the token. TOKEN_ID, the id of the token is one of those. Default:
  /// CONTAINS.
  vtkSetClampMacro(Match, int, CONTAINS, TOKEN_ID);
  vtkGetMacro(Match, int);

  /// Whether capital and small letters differ. Default: off.
  vtkSetMacro(CaseSensitive, bool);
  vtkGetMacro(CaseSensitive, bool);
  vtkBooleanMacro(CaseSensitive, bool);

protected:
  vtkTokenSearch();

  int RequestDataObject(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  void FindTexts(vtkDataSetAttributes* arrays, const AttentionAtlas::Task& task,
    vtkUnsignedCharArray* found) const;
  void FindIds(vtkDataSetAttributes* arrays, vtkUnsignedCharArray* found) const;

  std::string Text;
  int Match = CONTAINS;
  bool CaseSensitive = false;
};
