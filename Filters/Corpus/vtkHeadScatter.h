#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkCorpusAlgorithm.h>

#include <memory>
#include <string>

/// A point for each head, placed by two of its statistics over a corpus, or near heads like it.
/// Heads are also grouped into clusters by average linkage (Core's HeadClusters.h), which is
/// computed again only for another input or ClusterBy.
///
/// Output port 0, a vtkPolyData with a disc per head in the square from 0 to 1: the cell arrays
/// Layer, Head, Name (string, such as 1.5) and Cluster (int, from 0), ClusterColor (unsigned char,
/// 3), and all columns of the input. Layer and Head are also point arrays. Field data: ClusterColor
/// Legend (string), a line "Cluster: heads", then a line "RED GREEN BLUE CLUSTER: HEADS" for each
/// cluster, with at most four heads and the number of others, such as +2.
///
/// Output port 1, a vtkPolyData of names, titles with units and numbers of axes for the
/// representation Token Labels. Output port 2, a vtkPolyData of the axes.
///
/// COLUMNS places heads by XColumn and YColumn. SIMILAR_STATISTICS and SIMILAR_ATTENTION place them
/// so that distances are about those of their statistics, or 1 minus the agreement of their
/// attention: classical multidimensional scaling (Torgerson 1952), without axes.
class ATTENTIONATLASCORPUS_EXPORT vtkHeadScatter : public vtkCorpusAlgorithm
{
public:
  static vtkHeadScatter* New();
  vtkTypeMacro(vtkHeadScatter, vtkCorpusAlgorithm);

  enum LayoutType
  {
    COLUMNS = 0,
    SIMILAR_STATISTICS = 1,
    SIMILAR_ATTENTION = 2
  };

  /// How heads are placed, see above. Default: COLUMNS.
  vtkSetClampMacro(Layout, int, COLUMNS, SIMILAR_ATTENTION);
  vtkGetMacro(Layout, int);

  /// The columns of the input that are the axes of COLUMNS. Default: Previous Token, Prefix
  /// Matching.
  vtkSetStdStringFromCharMacro(XColumn);
  vtkGetCharFromStdStringMacro(XColumn);
  vtkSetStdStringFromCharMacro(YColumn);
  vtkGetCharFromStdStringMacro(YColumn);

  /// The column of the input with which the area of discs grows, from a tenth to the whole. Null or
  /// empty: all are equal. Default: empty.
  vtkSetStdStringFromCharMacro(SizeColumn);
  vtkGetCharFromStdStringMacro(SizeColumn);

  enum DistanceType
  {
    STATISTICS = 0,
    AGREEMENT = 1
  };

  /// By what heads are grouped into clusters. Default: STATISTICS.
  vtkSetClampMacro(ClusterBy, int, STATISTICS, AGREEMENT);
  vtkGetMacro(ClusterBy, int);

  /// The number of clusters, at least 1, and at most the number of heads. Default: 4.
  vtkSetClampMacro(Clusters, int, 1, VTK_INT_MAX);
  vtkGetMacro(Clusters, int);

protected:
  vtkHeadScatter();

  void Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task) override;

private:
  struct Results;
  std::shared_ptr<Results> Last; ///< kept while other properties change

  int Layout = COLUMNS;
  std::string XColumn = "Previous Token";
  std::string YColumn = "Prefix Matching";
  std::string SizeColumn;
  int ClusterBy = STATISTICS;
  int Clusters = 4;
};
