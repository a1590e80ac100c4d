#ifndef vtkScoreParts_h
#define vtkScoreParts_h

#include "AttentionAtlasCorpusModule.h"

#include <vtkCorpusAlgorithm.h>

/**
 * @class vtkScoreParts
 * @brief The scores of a head over a corpus as a sum of products of one query and one key feature.
 *
 * The leading parts by what they add to the variance of scores (formulas: Core's ScoreParts.h).
 *
 * Output port 0, a vtkTable with a row per part: Part (int, from 1), Strength, Variance, Share (of
 * the variance of all parts) and Cumulative (double). Field data: Layer, Head, Variance.
 *
 * Output port 1, a vtkTable of the tokens at the ends of the parts, among those that were drawn:
 * Part, Kind (int: 0 query, 1 key), End (string: Lowest, Highest), Rank (int, from 1), Coordinate
 * (double), Token (string), TokenId (int), Document and Position (id type: in the document).
 *
 * Output port 2, a vtkPolyData with a point for each query and each key that was drawn: its
 * coordinates of the first three parts times the root of their strength, so that the inner product
 * of a query and a key is what these parts add to their score. Point arrays: Kind, Token, TokenId,
 * Document, Position.
 */
class ATTENTIONATLASCORPUS_EXPORT vtkScoreParts : public vtkCorpusAlgorithm
{
public:
  static vtkScoreParts* New();
  vtkTypeMacro(vtkScoreParts, vtkCorpusAlgorithm);

  ///@{
  /**
   * The largest number of parts, at least 1. Default: 8.
   */
  vtkSetClampMacro(Parts, int, 1, VTK_INT_MAX);
  vtkGetMacro(Parts, int);
  ///@}

  ///@{
  /**
   * Tokens at each end of a part, at least 1. Default: 10.
   */
  vtkSetClampMacro(Ends, int, 1, VTK_INT_MAX);
  vtkGetMacro(Ends, int);
  ///@}

protected:
  vtkScoreParts();
  ~vtkScoreParts() override = default;

  void Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task) override;

private:
  vtkScoreParts(const vtkScoreParts&) = delete;
  void operator=(const vtkScoreParts&) = delete;

  int Parts = 8;
  int Ends = 10;
};

#endif
