#pragma once

#include "AttentionAtlasTokensModule.h"

#include <vtkTaskAlgorithm.h>

/// Colors queries and keys by what is known of their tokens. Input port 0: a vtkDataSet or vtkTable
/// whose points or rows are tokens, such as vtkHeadEmbedding makes. Input port 1 (optional): the
/// recording of the tokens (vtkMultiBlockDataSet). A quantity is taken from the array of its name
/// or else from the recording, by the array Token Index.
///
/// Output port 0: the input with the array TokenColor (unsigned char, 3), and in the field data its
/// legend as one text, TokenColor Legend: a line with the title, then a line "RED GREEN BLUE TEXT"
/// for each entry. Port 1: the legend as a vtkTable with the columns Label (string), Value (double,
/// NaN for entries without one), Kind (int, -1 for entries of both kinds) and TokenColor. On
/// several ranks the table is on the first; colors are on the scale of all ranks.
///
/// Queries and keys have the colors 0 (blue) and 1 (vermilion) of the class palette; data without
/// the array Kind are as queries. A value is shown by the intensity 0.25 + 0.75 p of the color on
/// white, with p from 0 to 1 (Yeh et al. 2023):
/// - POSITION, ROW, COLUMN, SEGMENT, SENTENCE_LENGTH: p = value / largest value
/// - RELATIVE_POSITION: p = position / (length - 1); BRIGHTNESS: p = largest channel of the patch's
///   mean color (the value of HSV)
/// - NORM: p = (norm - least) / (largest - least) over queries and keys of the head
/// - TOKEN_COUNT: p = log(count) / log(largest count)
///
/// POSITION_MOD_5 repeats Periods hues, dark for queries and light for keys. HUE shows the hue of
/// the patch's mean color at full saturation, PATCH_COLOR that color itself. Tokens without a
/// value, such as the class token of an image, are gray.
class ATTENTIONATLASTOKENS_EXPORT vtkTokenColors : public vtkTaskAlgorithm
{
public:
  static vtkTokenColors* New();
  vtkTypeMacro(vtkTokenColors, vtkTaskAlgorithm);

  enum ByType
  {
    KIND = 0,
    POSITION,
    RELATIVE_POSITION,
    POSITION_MOD_5,
    NORM,
    TOKEN_COUNT,
    ROW,
    COLUMN,
    HUE,
    BRIGHTNESS,
    SEGMENT,
    SENTENCE_LENGTH,
    PATCH_COLOR
  };

  /// Connects the recording.
  void SetRecordingConnection(vtkAlgorithmOutput* data) { this->SetInputConnection(1, data); }

  /// The quantity that is shown, see above. Default: KIND.
  vtkSetClampMacro(By, int, KIND, PATCH_COLOR);
  vtkGetMacro(By, int);

  /// After how many positions the hues of POSITION_MOD_5 repeat, 1 to 24. Default: 5.
  vtkSetMacro(Periods, int);
  vtkGetMacro(Periods, int);

protected:
  vtkTokenColors();

  void Execute(AttentionAtlas::Task& task) override;

private:
  int By = KIND;
  int Periods = 5;
};
