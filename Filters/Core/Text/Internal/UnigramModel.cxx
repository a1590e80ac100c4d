#include "UnigramModel.h"

#include "Base/Error.h"
#include "PieceText.h"
#include "Text/UnicodeText.h"

#include <algorithm>

namespace atlas
{
namespace
{

PieceTrie TrieOf(const std::vector<UnigramModel::Piece>& pieces)
{
  std::vector<std::pair<std::string_view, std::int32_t>> texts;
  texts.reserve(pieces.size());
  for (const UnigramModel::Piece& piece : pieces)
  {
    texts.emplace_back(piece.text, static_cast<std::int32_t>(texts.size()));
  }
  return PieceTrie(std::move(texts));
}

}

UnigramModel::UnigramModel(std::shared_ptr<const Vocabulary> vocabulary,
  const std::vector<Piece>& pieces, const Options& options, const std::string& source)
  : WordModel(std::move(vocabulary))
  , SinglePrecision(options.singlePrecision)
  , Unknown(this->GetVocabulary(), options.byteFallback, options.unknown, source)
  , Trie(TrieOf(pieces))
{
  double lowest = 0;
  bool isFirst = true;
  for (const Piece& piece : pieces)
  {
    this->Ids.push_back(piece.id);
    this->Scores.push_back(piece.score);
    this->Wholes.push_back(piece.whole);
    if (!piece.whole)
    {
      lowest = isFirst ? piece.score : std::min(lowest, piece.score);
      this->HighestScore = isFirst ? piece.score : std::max(this->HighestScore, piece.score);
      isFirst = false;
    }
  }
  constexpr double unknownPenalty = 10;
  this->UnknownScore = lowest - unknownPenalty;
}

void UnigramModel::Offer(Step& step, double score, std::size_t begin, std::int32_t piece) const
{
  if (step.piece == NotReached || score > step.score)
  {
    step.score = this->SinglePrecision ? static_cast<float>(score) : score;
    step.begin = static_cast<std::uint32_t>(begin);
    step.piece = piece;
  }
}

std::vector<UnigramModel::Step> UnigramModel::Search(std::string_view word) const
{
  std::vector<Step> steps(word.size() + 1);
  for (std::size_t begin = 0; begin < word.size();)
  {
    std::size_t next = begin;
    NextCharacter(word, next);
    const double before = steps[begin].score;
    bool hasCharacter = false; // the character alone is a token
    std::uint32_t node = PieceTrie::Root;
    for (std::size_t end = begin; end < word.size();)
    {
      node = this->Trie.Step(node, word[end++]);
      if (node == PieceTrie::Root)
      {
        break;
      }
      const std::int32_t piece = this->Trie.NumberAt(node);
      if (piece >= 0)
      {
        const std::size_t place = piece;
        const double score = this->Wholes[place]
                               ? static_cast<double>(end - begin) * this->HighestScore - 0.1
                               : this->Scores[place];
        this->Offer(steps[end], before + score, begin, piece);
        hasCharacter = hasCharacter || end == next;
      }
    }
    if (!hasCharacter)
    {
      this->Offer(steps[next], before + this->UnknownScore, begin, NoPiece);
    }
    begin = next;
  }
  return steps;
}

void UnigramModel::Encode(std::string_view word, std::vector<std::int64_t>& ids) const
{
  const std::vector<Step> steps = this->Search(word);
  std::vector<std::size_t> ends; // of the tokens, the last one first
  for (std::size_t end = word.size(); end > 0; end = steps[end].begin)
  {
    ends.push_back(end);
  }
  for (std::size_t i = ends.size(); i-- > 0;)
  {
    const Step& step = steps[ends[i]];
    if (step.piece >= 0)
    {
      ids.push_back(this->Ids[step.piece]);
      continue;
    }
    while (i > 0 && steps[ends[i - 1]].piece == NoPiece) // neighbors are one
    {
      --i;
    }
    this->Unknown.Add(word.substr(step.begin, ends[i] - step.begin), ids);
  }
}

std::string UnigramModel::BytesOf(std::string_view token) const
{
  return PieceText(token);
}

}
