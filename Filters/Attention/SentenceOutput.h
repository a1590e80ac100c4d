#pragma once

#include "Recording/Recording.h"
#include "Recording/SentenceAttention.h"
#include "Recording/SentenceLayout.h"

#include <vtkType.h>

#include <cstdint>
#include <string>
#include <vector>

class vtkPolyData;

namespace AttentionAtlas
{

/// The words of a sequence, by position. A word may have several tokens, see JoinedPictures.h.
struct SentenceWords
{
  std::int64_t sequence = 0;
  std::vector<std::int64_t> rows;  ///< of the recording's tokens: the first of each word
  std::int64_t endRow = 0;         ///< behind the last of them
  std::vector<std::string> tokens; ///< see vtkAttentionSentence
  std::vector<std::string> labels;
  std::vector<bool> hidden;

  /// For atlas::AllSequences the words are positions.
  SentenceWords(const atlas::Recording& recording, std::int64_t sequence);

  /// The word of a row of the recording's tokens; -1 if it is of another sequence.
  std::int64_t WordOf(std::int64_t row) const;

  /// The width of the widest label, at most 16, in heights of a line.
  double Width() const;
};

/// The attention of one head.
struct SentenceHead
{
  int head = 0;
  atlas::SentenceAttention attention;
};

/// The heads that are shown together.
struct SentenceHeads
{
  int layer = 0;
  std::vector<SentenceHead> heads;
  double scale = 1;                              ///< the weight of full opacity
  atlas::TokenSide bars = atlas::TokenSide::Key; ///< the side that has them

  /// The legend, written as that of TokenLegend.h.
  std::string Legend() const;
  /// What lines and bars mean. `quantity`: the words for what is shown.
  std::string Signs(const std::string& quantity, bool hasBars) const;
};

/// Fills the words of all pages, without Received and Given.
void FillWords(
  const SentenceWords& words, const atlas::SentenceLayout& layout, vtkPolyData* output);

/// Adds Received and Given to these: the means over heads.
void AddSums(const SentenceHeads& heads, const atlas::SentenceLayout& layout, vtkPolyData* words);

/// Fills the lines of all heads.
void FillLines(const SentenceWords& words, const SentenceHeads& heads,
  const atlas::SentenceLayout& layout, vtkPolyData* output);

/// Fills the bars of all heads.
void FillBars(const SentenceWords& words, const SentenceHeads& heads,
  const atlas::SentenceLayout& layout, vtkPolyData* output);

}
