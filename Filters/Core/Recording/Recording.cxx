#include "Recording.h"

#include "Error.h"
#include "Tensor.h"

#include <algorithm>
#include <set>

namespace atlas
{
namespace
{

class Checker
{
public:
  Checker(const Recording& recording, const std::string& source)
    : Record(recording)
    , Source(source)
    , Rows(recording.tokens.Count())
  {
  }

  void Check() const
  {
    this->CheckTokens();
    this->CheckSequences();
    this->CheckLayers();
    this->CheckResidual();
    if (this->Record.logits.IsRecorded())
    {
      this->CheckRows("logits", this->Record.logits);
    }
  }

private:
  const Recording& Record;
  const std::string& Source;
  std::int64_t Rows;

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw ModelError(this->Source + ": " + message);
  }

  void CheckRows(const std::string& name, const SharedMatrix& matrix) const
  {
    if (matrix.rows != this->Rows || matrix.columns < 1)
    {
      this->Fail(name + ": expected a row for each of the " + std::to_string(this->Rows) +
                 " tokens, found shape " + ToString({ matrix.rows, matrix.columns }) + ".");
    }
  }

  void CheckColumns(const std::string& name, const SharedMatrix& matrix, std::int64_t columns) const
  {
    this->CheckRows(name, matrix);
    if (matrix.columns != columns)
    {
      this->Fail(name + ": expected shape " + ToString({ this->Rows, columns }) + ", found " +
                 ToString({ matrix.rows, matrix.columns }) + ".");
    }
  }

  template<class List>
  void CheckLength(const char* name, const List& list, bool optional) const
  {
    const auto length = static_cast<std::int64_t>(list.size());
    if (length != this->Rows && !(optional && list.empty()))
    {
      this->Fail("expected a " + std::string(name) + " for each of the " +
                 std::to_string(this->Rows) + " tokens, found " + std::to_string(length) + ".");
    }
  }

  void CheckTokens() const
  {
    const RecordedTokens& tokens = this->Record.tokens;
    this->CheckLength("position", tokens.position, false);
    this->CheckLength("token id", tokens.id, true);
    this->CheckLength("token text", tokens.text, true);
    this->CheckLength("segment", tokens.segment, true);
    this->CheckLength("patch row", tokens.row, true);
    this->CheckLength("patch column", tokens.column, true);
  }

  void CheckSequences() const
  {
    const std::vector<std::int64_t>& offsets = this->Record.sequenceOffsets;
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != this->Rows ||
        !std::is_sorted(offsets.begin(), offsets.end()))
    {
      this->Fail(
        "expected the first rows of the sequences to increase from 0 to the number of tokens, " +
        std::to_string(this->Rows) + ", found " + ToString(offsets) + ".");
    }
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    {
      for (std::int64_t row = offsets[s]; row < offsets[s + 1]; ++row)
      {
        const std::int32_t found = this->Record.tokens.sequence[static_cast<std::size_t>(row)];
        if (found != static_cast<std::int64_t>(s))
        {
          this->Fail("token " + std::to_string(row) + ": expected sequence " + std::to_string(s) +
                     ", found " + std::to_string(found) + ".");
        }
      }
    }
  }

  void CheckLayers() const
  {
    std::int32_t previous = -1;
    for (const RecordedLayer& layer : this->Record.layers)
    {
      const std::string name = "layer " + std::to_string(layer.index);
      if (layer.index <= previous || layer.index >= this->Record.layerCount)
      {
        this->Fail(name + ": expected layers in ascending order and below " +
                   std::to_string(this->Record.layerCount) + ".");
      }
      previous = layer.index;
      this->CheckHeads(name, layer);
    }
  }

  void CheckHeads(const std::string& layerName, const RecordedLayer& layer) const
  {
    const std::size_t heads = this->Record.layers.front().heads.size();
    const std::vector<double>& slopes = this->Record.alibiSlopes;
    if (layer.heads.size() != heads || heads == 0)
    {
      this->Fail(layerName + ": expected " + (heads == 0 ? "heads" : std::to_string(heads)) +
                 " as in layer " + std::to_string(this->Record.layers.front().index) + ", found " +
                 std::to_string(layer.heads.size()) + ".");
    }
    if (!slopes.empty() && slopes.size() != heads)
    {
      this->Fail(layerName + ": expected " + std::to_string(heads) + " ALiBi slopes, found " +
                 std::to_string(slopes.size()) + ".");
    }
    for (std::size_t h = 0; h < heads; ++h)
    {
      const RecordedHead& head = layer.heads[h];
      const std::string name = layerName + ", head " + std::to_string(h) + ": ";
      if (head.query.IsRecorded() != head.key.IsRecorded())
      {
        this->Fail(name + "expected both queries and keys or neither, found " +
                   (head.query.IsRecorded() ? "queries" : "keys") + " alone.");
      }
      this->CheckAsInFirstHead(name + "query", head, &RecordedHead::query);
      if (head.query.IsRecorded())
      {
        this->CheckColumns(name + "key", head.key, head.query.columns);
      }
      this->CheckAsInFirstHead(name + "value", head, &RecordedHead::value);
      this->CheckAsInFirstHead(name + "output", head, &RecordedHead::output);
      this->CheckAttention(name + "weights", head.weights);
      this->CheckAttention(name + "scores", head.scores);
    }
  }

  void CheckAsInFirstHead(
    const std::string& name, const RecordedHead& head, SharedMatrix RecordedHead::*quantity) const
  {
    const SharedMatrix& first = this->Record.layers.front().heads.front().*quantity;
    const SharedMatrix& matrix = head.*quantity;
    if (first.IsRecorded() != matrix.IsRecorded())
    {
      this->Fail(name + ": expected to be recorded in all heads or in none.");
    }
    if (matrix.IsRecorded())
    {
      this->CheckColumns(name, matrix, first.columns);
    }
  }

  void CheckAttention(const std::string& name, const std::vector<SharedMatrix>& attention) const
  {
    if (attention.empty())
    {
      return;
    }
    const auto sequences = static_cast<std::size_t>(this->Record.SequenceCount());
    if (attention.size() != sequences)
    {
      this->Fail(name + ": expected a matrix for each of the " + std::to_string(sequences) +
                 " sequences, found " + std::to_string(attention.size()) + ".");
    }
    for (std::size_t s = 0; s < sequences; ++s)
    {
      const std::int64_t length = this->Record.SequenceLength(static_cast<std::int64_t>(s));
      const SharedMatrix& matrix = attention[s];
      if (!matrix.IsRecorded() || matrix.rows != length || matrix.columns != length)
      {
        this->Fail(name + " of sequence " + std::to_string(s) + ": expected shape " +
                   ToString({ length, length }) + ", found " +
                   ToString({ matrix.rows, matrix.columns }) + ".");
      }
    }
  }

  void CheckResidual() const
  {
    const std::vector<SharedMatrix>& residual = this->Record.residual;
    const auto expected = static_cast<std::size_t>(this->Record.layerCount) + 1;
    if (!residual.empty() && residual.size() != expected)
    {
      this->Fail("expected " + std::to_string(expected) +
                 " residuals, one more than layers, found " + std::to_string(residual.size()) +
                 ".");
    }
    std::int64_t columns = -1;
    for (std::size_t l = 0; l < residual.size(); ++l)
    {
      if (residual[l].IsRecorded())
      {
        columns = columns < 0 ? residual[l].columns : columns;
        this->CheckColumns("residual " + std::to_string(l), residual[l], columns);
      }
    }
  }
};

}

std::vector<SharedMatrix> TokenMatrices(const Recording& recording)
{
  std::vector<SharedMatrix> matrices;
  std::set<const float*> seen;
  const auto add = [&](const SharedMatrix& matrix)
  {
    if (matrix.IsRecorded() && seen.insert(matrix.values.get()).second)
    {
      matrices.push_back(matrix);
    }
  };
  for (const RecordedLayer& layer : recording.layers)
  {
    for (const RecordedHead& head : layer.heads)
    {
      add(head.query);
      add(head.key);
      add(head.value);
      add(head.output);
    }
  }
  std::for_each(recording.residual.begin(), recording.residual.end(), add);
  add(recording.logits);
  return matrices;
}

void CheckRecording(const Recording& recording, const std::string& source)
{
  Checker(recording, source).Check();
}

}
