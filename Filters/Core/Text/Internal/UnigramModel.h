#pragma once

// Internal to Core: splits words into tokens. Tokenizer.h is the interface.

#include "PieceTrie.h"
#include "WordModel.h"

namespace atlas
{

/// Unigram (Kudo 2018), as SentencePiece does it: of all ways to split a word into tokens, the one
/// with the largest sum of scores (Viterbi 1967). A character that is no token costs 10 more than
/// the lowest score and becomes the unknown token, one for all in a row, or the tokens of its
/// bytes.
class UnigramModel : public WordModel
{
public:
  struct Piece
  {
    std::string_view text;
    std::int32_t id = 0;
    double score = 0;
    bool whole = false; ///< user-defined: its score is its length times the highest score
  };
  struct Options
  {
    std::optional<std::int64_t> unknown; ///< the unknown token
    bool byteFallback = false;           ///< write unknown characters as bytes, if these are tokens
    bool singlePrecision = false;        ///< round sums to float, as SentencePiece does
  };

  /// The pieces, which differ, are those that text can become. Messages start with `source`.
  UnigramModel(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<Piece>& pieces,
    const Options& options, const std::string& source);

  /// Throws FormatError for a character that has no token if there is no unknown token.
  void Encode(std::string_view word, std::vector<std::int64_t>& ids) const override;
  std::string_view Kind() const override { return "Unigram"; }

private:
  bool SinglePrecision;
  UnknownCharacters Unknown;
  PieceTrie Trie; ///< of the places in Pieces
  std::vector<std::int32_t> Ids;
  std::vector<double> Scores;
  std::vector<bool> Wholes;
  double HighestScore = 0;
  double UnknownScore = 0;

  /// The best way to reach a byte of the text.
  struct Step
  {
    double score = 0;
    std::uint32_t begin = 0; ///< of the last token
    std::int32_t piece = NotReached;
  };
  static constexpr std::int32_t NotReached = -2;
  static constexpr std::int32_t NoPiece = -1;

  void Offer(Step& step, double score, std::size_t begin, std::int32_t piece) const;
  std::vector<Step> Search(std::string_view word) const;
  std::string BytesOf(std::string_view token) const override;
};

}
