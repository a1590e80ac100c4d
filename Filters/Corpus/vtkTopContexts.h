#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkCorpusAlgorithm.h>

/// The strongest contexts of a head over a corpus, or of a feature of a sparse dictionary. A text
/// is a window of a document. Its best pair of a query and a key counts: by their score or weight,
/// where the key is neither the query nor the first token; or its best query, by what the head
/// writes or adds to the logit of the next token, with the key of its largest weight. In scores
/// ALiBi counts by distance, as slope x (key - query): scores of different places can be compared,
/// and the attention is the same. Of a feature the token counts at which it is strongest in the
/// window; it is the query, and there is no key: the position -1.
///
/// Output port 0, a vtkTable with a row per text: Rank (int, from 1), Value (double), Document,
/// Position (id type: of the query in the document), Query, Key (int: positions in the window),
/// Query Token, Key Token and Text (string), in which [ ] are around the query and ( ) around the
/// key.
///
/// Output port 1, a vtkPolyData with a point per word of the texts around both, a text below
/// another, for the representation Token Labels: Token (string), Side (unsigned char), Rank, Kind
/// (int: 0 query, 1 key, 2 both, -1 neither), MarkColor (unsigned char, 3; white of neither). Each
/// text begins with its rank and value.
///
/// Output port 2, a vtkPolyData with a rectangle behind each query and key: the cell arrays Kind,
/// Rank and MarkColor (unsigned char, 3).
///
/// Output port 3, a vtkTable with the tokens of the windows, for the second input of
/// vtkTransformerRecorder: Sequence, Position and TokenId (int). Field data of all: Layer, Head and
/// Measure (string), such as "Score, with the bias of ALiBi by distance", and if there are more
/// texts Listed (string), such as "10 of 20 texts"; of a feature, in place of the head, Feature
/// (int), Hook Name (string) and Active Share (double, of the tokens where it is active); of this
/// one, if it has a single text, also Query and Key (int), their positions.
///
/// Output port 4, a vtkPolyData with a rectangle around each text, for views to select it: the cell
/// array Rank.
class ATTENTIONATLASCORPUS_EXPORT vtkTopContexts : public vtkCorpusAlgorithm
{
public:
  static vtkTopContexts* New();
  vtkTypeMacro(vtkTopContexts, vtkCorpusAlgorithm);

  enum MeasureType
  {
    SCORE = 0,
    ATTENTION = 1,
    WRITTEN_NORM = 2,
    NEXT_TOKEN_EFFECT = 3
  };

  /// By what texts are found. Default: ATTENTION.
  vtkSetClampMacro(Measure, int, SCORE, NEXT_TOKEN_EFFECT);
  vtkGetMacro(Measure, int);

  /// The feature of the dictionary of the statistics, from 0, whose texts are shown in place of
  /// those of a head; -1: those of the head. Default: -1.
  vtkSetMacro(Feature, int);
  vtkGetMacro(Feature, int);

  /// The largest number of texts, at least 1. Default: 10.
  vtkSetClampMacro(Top, int, 1, VTK_INT_MAX);
  vtkGetMacro(Top, int);

  /// Words that are shown on either side of the query and of the key, at least 0. Default: 5.
  vtkSetClampMacro(Around, int, 0, VTK_INT_MAX);
  vtkGetMacro(Around, int);

  /// The rank of the only text of port 3, from 1. 0: all texts. Default: 0.
  vtkSetClampMacro(Recorded, int, 0, VTK_INT_MAX);
  vtkGetMacro(Recorded, int);

protected:
  vtkTopContexts();

  void Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task) override;

private:
  int Measure = ATTENTION;
  int Feature = -1;
  int Top = 10;
  int Around = 5;
  int Recorded = 0;
};
