#pragma once

#include "AttentionAtlasTokensModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

/// What a diagram shows at a place, in words: head, tokens, and numbers. Input: a vtkImageData with
/// point arrays in the plane z = 0, such as vtkAttentionMap makes, of which the square at Place is
/// described, or beside the squares the row or column of its label; or any other vtkDataSet, of
/// which the first cell, else the first point, is described, such as the part that was selected. Of
/// lines, whose Query and Key are token indices, the optional second input has the words: points
/// with the arrays Token Index, Token and Position.
///
/// Output: a vtkTable without rows. The field array Text (string) has one value, lines separated by
/// line breaks; it is missing where there is nothing. On several ranks, all have that of the first
/// rank that has something there.
///
/// The lines are, as far as the data has them: the head, from the arrays Layer and Head or, if
/// there are none, the field arrays; the query and the key, by their positions and the field arrays
/// Query Token and Key Token, or what Query Title and Key Title call them; the array Token; and the
/// numbers of Quantities.
class ATTENTIONATLASTOKENS_EXPORT vtkPointedText : public vtkTaskAlgorithm
{
public:
  static vtkPointedText* New();
  vtkTypeMacro(vtkPointedText, vtkTaskAlgorithm);

  /// x and y. Default: 0, 0.
  vtkSetVector2Macro(Place, double);
  vtkGetVector2Macro(Place, double);

  /// Names of arrays of one number each, separated by line breaks; those that the data does not
  /// have are left out. Empty: the array Weight, if there is one. Default: empty.
  vtkSetStdStringFromCharMacro(Quantities);
  vtkGetCharFromStdStringMacro(Quantities);

protected:
  vtkPointedText();

  void Execute(AttentionAtlas::Task& task) override;

private:
  double Place[2] = { 0, 0 };
  std::string Quantities;
};
