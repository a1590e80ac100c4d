#pragma once

#include "LargestProducts.h"
#include "Weights/Transformer.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace atlas
{

/// The circuits of a head (Elhage et al. 2021, "A Mathematical Framework for Transformer
/// Circuits"), without biases. E is CircuitEmbedding, U the unembedding.
enum class CircuitKind
{
  QueryKey,    ///< E W_Q W_K^T E^T / sqrt(d_head): the score of a query (destination) token, row,
               ///< with a key (source) token, column
  OutputValue, ///< E W_V W_O U: what attention to a source token, row, adds to the logit of an
               ///< output token, column
  PositionQueryKey ///< W_pos W_Q W_K^T W_pos^T / sqrt(d_head), as QueryKey of positions
};

/// The names in arrays, by circuit: "QK", "OV", "PositionQK".
inline constexpr std::array<std::string_view, 3> CircuitNames = { "QK", "OV", "PositionQK" };

struct HeadCircuitOptions
{
  CircuitKind circuit = CircuitKind::QueryKey;
  std::int64_t layer = 0;
  std::int64_t head = 0;
  bool processes = true;            ///< whether weights are processed as TransformerLens does
  std::vector<std::int32_t> tokens; ///< at least one, unless the circuit is of positions
  LargestProductOptions largest;    ///< entries of each row, and threads
};

/// The largest entries of rows or columns: lists of `top` entries, one after another.
struct LargestEntries
{
  std::string_view direction; ///< what an entry is: "Source", "Destination" or "Output"
  std::int64_t top = 0;
  std::vector<TokenLogit> entries; ///< of each token, by falling value; equal ones by id. Of
                                   ///< positions, the id is a position
};

struct HeadCircuitTables
{
  std::vector<LargestEntries> largest; ///< QueryKey and PositionQueryKey: sources of each token as
                                       ///< a destination, then destinations of each as a source;
                                       ///< OutputValue: outputs
  DoubleMatrix entries; ///< of the chosen tokens, or of all positions: [rows, columns] as above
};

/// The number of rows and columns of `entries`. Throws as below for options that do not fit.
std::int64_t CircuitSize(const Transformer& model, const HeadCircuitOptions& options);

/// Evaluates a circuit of a head; of the matrix over the vocabulary only blocks are formed.
/// Throws OptionError for a layer, head, or `top` that does not fit and for positions of a model
/// without a position embedding, ModelError as RequireVocabulary, RequireUnembedding (OutputValue)
/// and ProcessedWeights do, and FileError for files that were changed.
HeadCircuitTables EvaluateHeadCircuit(const Transformer& model, const HeadCircuitOptions& options);

}
