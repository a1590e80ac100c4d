#include "AttributionPatching.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Files/MappedFile.h"
#include "Numerics/MatrixProduct.h"
#include "Run/GradientRun.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::array<EdgeInput, 3> InputsOfHead = { EdgeInput::Query, EdgeInput::Key,
  EdgeInput::Value };

/// A node that reads, by one of its inputs, what the first nodes write.
struct EdgeReader
{
  std::int32_t node = 0;
  EdgeInput input = EdgeInput::Stream;
  std::int64_t writers = 0;
};

std::vector<EdgeReader> ReadersOf(
  const TransformerConfig& config, const std::vector<CircuitNode>& nodes)
{
  const CircuitShape shape(config);
  std::vector<EdgeReader> readers;
  for (std::size_t i = 1; i < nodes.size(); ++i)
  {
    const auto node = static_cast<std::int32_t>(i);
    const std::int64_t writers = shape.WritersOf(nodes[i]);
    if (nodes[i].kind == CircuitNodeKind::Head)
    {
      for (const EdgeInput input : InputsOfHead)
      {
        readers.push_back({ node, input, writers });
      }
    }
    else
    {
      readers.push_back({ node, EdgeInput::Stream, writers });
    }
  }
  return readers;
}

/// One sequence of an input of texts.
TransformerInput SequenceOf(const TransformerInput& input, std::size_t s)
{
  TransformerInput one;
  one.tokens = { input.tokens[s] };
  if (!input.segments.empty())
  {
    one.segments = { input.segments[s] };
  }
  return one;
}

/// Where in several pairs an error is.
std::string PlaceOf(std::size_t pair, std::size_t pairs)
{
  return pairs > 1 ? " in pair " + std::to_string(pair) : "";
}

/// Calls `call`; messages of its errors begin with the name of the run.
template<class Call>
auto InRun(const std::string& name, const Call& call)
{
  try
  {
    return call();
  }
  catch (const ModelError& e)
  {
    throw ModelError(name, ": ", e.what());
  }
}

/// The runs of a prompt and of the one that is patched from.
struct PatchedPair
{
  const Transformer& Model;
  const TransformerConfig& Config;
  AttributionOptions Options;
  std::string Place; ///< " in pair i" of several, for messages
  std::int64_t Length;
  GradientRun Gradient;
  std::vector<CircuitNode> Nodes;
  DoubleMatrix CleanEmbedding;
  DoubleMatrix CorruptedEmbedding;
  TracedRun CleanRun;
  TracedRun CorruptedRun;
  LogitPair Logits;
  std::vector<std::int64_t> Tokens; ///< of the clean prompt, for a loss
  double Clean = 0;
  double Corrupted = 0;

  PatchedPair(const Transformer& model, const TransformerInput& clean,
    const TransformerInput& corrupted, std::string place, AttributionOptions options)
    : Model(model)
    , Config(model.GetConfig())
    , Options(std::move(options))
    , Place(std::move(place))
    , Length(static_cast<std::int64_t>(clean.tokens.front().size()))
    , Gradient(model, this->Length, this->Options.threads)
    , Nodes(CircuitNodes(this->Config))
    , CleanEmbedding(this->Gradient.Embed(clean))
    , CorruptedEmbedding(this->Gradient.Embed(corrupted))
    , CleanRun(InRun("Prompt" + this->Place,
        [&]
        {
          return this->Gradient.Run(this->CleanEmbedding, {}, this->Options.progress.Part(0, 0.5));
        }))
    , CorruptedRun(InRun("PatchFrom" + this->Place,
        [&]
        {
          return this->Gradient.Run(
            this->CorruptedEmbedding, {}, this->Options.progress.Part(0.5, 1));
        }))
  {
    if (this->Options.loss)
    {
      this->Tokens = clean.tokens.front();
    }
    const std::int64_t position =
      this->Options.position < 0 ? this->Length - 1 : this->Options.position;
    this->Logits = { this->Options.target.value_or(0), this->Options.against.value_or(0) };
    if (!this->Options.loss && (!this->Options.target || !this->Options.against))
    {
      this->Logits = ChooseTokens(this->Options.target, this->Options.against,
        this->Gradient.Logits(this->CorruptedRun, position),
        this->Gradient.Logits(this->CleanRun, position), ("PatchFrom" + this->Place).c_str());
    }
    this->Logits.position = position;
    this->Clean = InRun("Prompt" + this->Place, [&] { return this->Measure(this->CleanRun); });
    this->Corrupted =
      InRun("PatchFrom" + this->Place, [&] { return this->Measure(this->CorruptedRun); });
  }

  double Measure(const TracedRun& run) const
  {
    return this->Options.loss ? this->Gradient.Loss(run, this->Tokens)
                              : this->Gradient.Difference(run, this->Logits);
  }

  RunGradients Differentiate(const TracedRun& run, const Progress& progress) const
  {
    return this->Options.loss ? this->Gradient.DifferentiateLoss(run, this->Tokens, progress)
                              : this->Gradient.Differentiate(run, this->Logits, false, progress);
  }

  /// What a node's output in the corrupted run has beyond that in the clean one, of a run with the
  /// layers of both.
  DoubleMatrix ChangeOf(const CircuitNode& node) const
  {
    switch (node.kind)
    {
      case CircuitNodeKind::Head:
      {
        const std::int64_t d = this->Config.headDimension;
        return this->CorruptedRun.layers[node.layer].heads.middleCols(node.head * d, d) -
               this->CleanRun.layers[node.layer].heads.middleCols(node.head * d, d);
      }
      case CircuitNodeKind::Mlp:
        return this->CorruptedRun.layers[node.layer].mlp - this->CleanRun.layers[node.layer].mlp;
      default:
        return this->CorruptedEmbedding - this->CleanEmbedding;
    }
  }

  /// The gradient of a node's output.
  DoubleMatrix GradientOf(const CircuitNode& node, const RunGradients& gradients) const
  {
    switch (node.kind)
    {
      case CircuitNodeKind::Head:
      {
        const std::int64_t d = this->Config.headDimension;
        return gradients.layers[node.layer].heads.middleCols(node.head * d, d);
      }
      case CircuitNodeKind::Mlp:
        return gradients.layers[node.layer].mlp;
      default:
        return gradients.layers.front().residual;
    }
  }

  /// What a change of a node's output adds to that of its sublayer, of which heads are a part.
  DoubleMatrix OfSublayer(const CircuitNode& node, DoubleMatrix change) const
  {
    return node.kind == CircuitNodeKind::Head
             ? this->Gradient.OutputOfHead(node.layer, node.head, change)
             : change;
  }

  /// What a change of a sublayer's output adds to the residual stream of a run.
  DoubleMatrix Added(const TracedRun& run, const CircuitNode& node, DoubleMatrix change) const
  {
    switch (node.kind)
    {
      case CircuitNodeKind::Head:
        return this->Gradient.AddedByAttention(run, node.layer, change);
      case CircuitNodeKind::Mlp:
        return this->Gradient.AddedByMlp(run, node.layer, change);
      default:
        return change;
    }
  }

  /// What a change of a node's output adds to the residual stream, to first order.
  DoubleMatrix Written(
    const TracedRun& run, const CircuitNode& node, const DoubleMatrix& change) const
  {
    switch (node.kind)
    {
      case CircuitNodeKind::Head:
        return this->Gradient.WrittenByHead(run, node.layer, node.head, change);
      case CircuitNodeKind::Mlp:
        return this->Gradient.WrittenByMlp(run, node.layer, change);
      default:
        return change;
    }
  }

  /// The gradient of the residual stream by way of a reader.
  DoubleMatrix GradientBy(
    const TracedRun& run, const RunGradients& gradients, const EdgeReader& reader) const
  {
    const CircuitNode& node = this->Nodes[reader.node];
    switch (node.kind)
    {
      case CircuitNodeKind::Head:
        return this->Gradient.ByHead(
          run, gradients, node.layer, node.head, static_cast<HeadInput>(reader.input));
      case CircuitNodeKind::Mlp:
        return gradients.layers[node.layer].byMlp;
      default:
        return gradients.residual;
    }
  }

  /// The changes of the residual stream by all writers, a row each [nodes - 1, T d_model].
  DoubleMatrix WrittenChanges(const TracedRun& run, const Progress& progress) const
  {
    DoubleMatrix changes(this->Nodes.size() - 1, this->Length * this->Config.modelDimension);
    for (std::int64_t i = 0; i < changes.rows(); ++i)
    {
      const CircuitNode& node = this->Nodes[i];
      const DoubleMatrix written = this->Written(run, node, this->ChangeOf(node));
      std::copy_n(written.data(), written.size(), changes.row(i).data());
      progress(i + 1, changes.rows());
    }
    return changes;
  }

  /// Adds the effects of all edges, times a weight.
  void AddEdges(const TracedRun& run, const RunGradients& gradients, double weight,
    const std::vector<EdgeReader>& readers, const Progress& progress,
    std::vector<CircuitEdge>& edges) const
  {
    const SingleThreadedBlas blas;
    const DoubleMatrix changes = this->WrittenChanges(run, progress.Part(0, 0.3));
    std::vector<std::size_t> first; // edge of each reader
    std::size_t next = 0;
    for (const EdgeReader& reader : readers)
    {
      first.push_back(next);
      next += ToIndex(reader.writers);
    }
    constexpr std::int64_t block = 16; // readers that are multiplied at once
    const auto count = static_cast<std::int64_t>(readers.size());
    const auto addBlock = [&](std::int64_t begin)
    {
      const std::int64_t end = std::min(count, begin + block);
      DoubleMatrix by(end - begin, changes.cols());
      for (std::int64_t i = begin; i < end; ++i)
      {
        const DoubleMatrix one = this->GradientBy(run, gradients, readers[i]);
        std::copy_n(one.data(), one.size(), by.row(i - begin).data());
      }
      const std::int64_t writers = readers[end - 1].writers;
      DoubleMatrix products(writers, end - begin);
      MultiplyMatrices(writers, end - begin, changes.cols(), 1.0,
        DoubleMatrixBlock{ changes.data(), changes.cols() },
        DoubleMatrixBlock{ by.data(), by.cols(), true }, products.data(), end - begin);
      for (std::int64_t i = begin; i < end; ++i)
      {
        for (std::int64_t from = 0; from < readers[i].writers; ++from)
        {
          edges[first[i] + ToIndex(from)].effect += weight * products(from, i - begin);
        }
      }
    };
    const std::int64_t blocks = (count + block - 1) / block;
    const std::int64_t batch = std::int64_t{ 4 } * ThreadCount(this->Options.threads); // of blocks
    for (std::int64_t from = 0; from < blocks; from += batch)
    {
      const std::int64_t to = std::min(blocks, from + batch);
      ParallelFor(
        to - from, this->Options.threads, [&](std::int64_t b) { addBlock((from + b) * block); });
      progress.Part(0.3, 1)(to, blocks);
    }
  }

  Attribution Attribute(bool edges, const Progress& all) const
  {
    Attribution found;
    found.nodes = this->Nodes;
    found.effects = DoubleMatrix::Zero(this->Nodes.size(), this->Length);
    const std::vector<EdgeReader> readers = ReadersOf(this->Config, this->Nodes);
    if (edges)
    {
      found.edges = CircuitEdges(this->Config);
    }
    const std::int64_t steps = this->Options.steps;
    const double weight = 1 / static_cast<double>(steps);
    for (std::int64_t k = 1; k <= steps; ++k)
    {
      const Progress progress = all.Part(k - 1, k, steps);
      const double ran = edges ? 0.2 : 0.3;
      const double differentiated = edges ? 0.6 : 1;
      TracedRun between;
      if (k < steps)
      {
        between = InRun("step " + std::to_string(k) + " of " + std::to_string(steps) + this->Place,
          [&]
          {
            return this->Gradient.Run(
              this->CorruptedEmbedding +
                weight * static_cast<double>(k) * (this->CleanEmbedding - this->CorruptedEmbedding),
              {}, progress.Part(0, ran));
          });
      }
      const TracedRun& run = k < steps ? between : this->CleanRun;
      const RunGradients gradients = this->Differentiate(run, progress.Part(ran, differentiated));
      for (std::int64_t i = 0; i + 1 < found.effects.rows(); ++i)
      {
        found.effects.row(i) +=
          weight * this->ChangeOf(this->Nodes[i])
                     .cwiseProduct(this->GradientOf(this->Nodes[i], gradients))
                     .rowwise()
                     .sum()
                     .transpose();
      }
      if (edges)
      {
        this->AddEdges(
          run, gradients, weight, readers, progress.Part(differentiated, 1), found.edges);
      }
    }
    ThrowIf<ModelError>(!found.effects.allFinite() ||
                          std::any_of(found.edges.begin(), found.edges.end(),
                            [](const CircuitEdge& edge) { return !std::isfinite(edge.effect); }),
      "effects by gradients are not finite", this->Place, "; expected finite numbers.");
    return found;
  }

  double WithPatched(const std::vector<bool>& nodes, const Progress& progress) const
  {
    PatchedNodes patched = { &this->CorruptedRun,
      std::vector<bool>(this->Config.layers * this->Config.heads),
      std::vector<bool>(this->Config.layers) };
    for (std::size_t i = 0; i < std::min(nodes.size(), this->Nodes.size()); ++i)
    {
      const CircuitNode& node = this->Nodes[i];
      if (node.kind == CircuitNodeKind::Head)
      {
        patched.heads[node.layer * this->Config.heads + node.head] = nodes[i];
      }
      else if (node.kind == CircuitNodeKind::Mlp)
      {
        patched.mlps[node.layer] = nodes[i];
      }
    }
    const bool isCorrupted = !nodes.empty() && nodes[0];
    return this->Measure(this->Gradient.Run(
      isCorrupted ? this->CorruptedEmbedding : this->CleanEmbedding, patched, progress));
  }

  /// The measure at the end of this residual stream.
  double End(const DoubleMatrix& residual) const
  {
    return this->Measure(this->Gradient.RunFrom(this->Config.layers, residual));
  }

  double WithPatchedEdge(const CircuitEdge& edge, const Progress& progress) const
  {
    const SingleThreadedBlas blas;
    const TracedRun& run = this->CleanRun;
    const CircuitNode& writer = this->Nodes[edge.from];
    const CircuitNode& reader = this->Nodes[edge.to];
    const DoubleMatrix change =
      this->Added(run, writer, this->OfSublayer(writer, this->ChangeOf(writer)));
    progress(1, 4);
    if (reader.kind == CircuitNodeKind::Logits)
    {
      const double end = this->End(run.residual + change);
      progress(1, 1);
      return end;
    }
    const std::int64_t l = reader.layer;
    const TracedLayer& layer = run.layers[l];
    DoubleMatrix next = l + 1 < this->Config.layers ? run.layers[l + 1].residual : run.residual;
    const auto addMlp = [&](const DoubleMatrix& read)
    { next += this->Gradient.AddedByMlp(run, l, this->Gradient.MlpOutput(l, read) - layer.mlp); };
    if (reader.kind == CircuitNodeKind::Mlp)
    {
      addMlp(layer.middle + change);
    }
    else
    {
      HeadStreams streams = { layer.residual, layer.residual, layer.residual };
      (edge.input == EdgeInput::Query  ? streams.query
        : edge.input == EdgeInput::Key ? streams.key
                                       : streams.value) += change;
      const std::int64_t d = this->Config.headDimension;
      const DoubleMatrix z = this->Gradient.HeadOutput(l, reader.head, streams);
      const DoubleMatrix written = this->Added(
        run, reader, this->OfSublayer(reader, z - layer.heads.middleCols(reader.head * d, d)));
      next += written;
      if (CircuitShape(this->Config).mlps == CircuitMlps::AfterHeads)
      {
        addMlp(layer.middle + written);
      }
    }
    progress(1, 2);
    const double end =
      this->Measure(this->Gradient.RunFrom(l + 1, next, {}, progress.Part(0.5, 1)));
    progress(1, 1);
    return end;
  }

  /// The writers of the edges to each input.
  using Writers = std::map<std::pair<std::int32_t, EdgeInput>, std::set<std::int32_t>>;

  /// The stream that an input reads in a run along edges: that of the corrupted run, and what the
  /// writers of its edges changed. Those of a sublayer, which follow each other, change it
  /// together.
  DoubleMatrix StreamOf(DoubleMatrix stream, const Writers& writers, std::int32_t node,
    EdgeInput input, const std::vector<DoubleMatrix>& changes) const
  {
    const auto found = writers.find({ node, input });
    if (found == writers.end())
    {
      return stream;
    }
    const std::set<std::int32_t>& all = found->second;
    for (auto writer = all.begin(); writer != all.end();)
    {
      const CircuitNode& first = this->Nodes[*writer];
      DoubleMatrix change = changes[*writer];
      const auto isOfSublayer = [&](const CircuitNode& other)
      { return other.kind == first.kind && other.layer == first.layer; };
      for (++writer; writer != all.end() && isOfSublayer(this->Nodes[*writer]); ++writer)
      {
        change += changes[*writer];
      }
      stream += this->Added(this->CorruptedRun, first, std::move(change));
    }
    return stream;
  }

  /// What a node adds to its sublayer in a run along edges, beyond what it does in the corrupted
  /// run.
  DoubleMatrix ChangeAlong(
    const Writers& writers, std::int32_t i, const std::vector<DoubleMatrix>& changes) const
  {
    const CircuitNode& node = this->Nodes[i];
    const TracedLayer& layer = this->CorruptedRun.layers[node.layer];
    const auto stream = [&](EdgeInput input)
    {
      return StreamOf(
        input == EdgeInput::Stream ? layer.middle : layer.residual, writers, i, input, changes);
    };
    if (node.kind == CircuitNodeKind::Mlp)
    {
      return this->Gradient.MlpOutput(node.layer, stream(EdgeInput::Stream)) - layer.mlp;
    }
    const std::int64_t d = this->Config.headDimension;
    return this->OfSublayer(
      node, this->Gradient.HeadOutput(node.layer, node.head,
              { stream(EdgeInput::Query), stream(EdgeInput::Key), stream(EdgeInput::Value) }) -
              layer.heads.middleCols(node.head * d, d));
  }

  double WithEdges(const std::vector<CircuitEdge>& kept, const Progress& progress) const
  {
    const SingleThreadedBlas blas;
    Writers writers;
    for (const CircuitEdge& edge : kept)
    {
      writers[{ edge.to, edge.input }].insert(edge.from);
    }
    const auto last = static_cast<std::int32_t>(this->Nodes.size() - 1); // the logits
    std::vector<DoubleMatrix> changes(last);
    changes[0] = this->CleanEmbedding - this->CorruptedEmbedding;
    std::int32_t next = 1;
    while (next < last)
    {
      // Heads of a layer do not read each other.
      const bool isHead = this->Nodes[next].kind == CircuitNodeKind::Head;
      const std::int64_t count = isHead ? this->Config.heads : 1;
      ParallelFor(count, this->Options.threads,
        [&](std::int64_t k)
        {
          const std::int32_t i = next + static_cast<std::int32_t>(k);
          changes[i] = this->ChangeAlong(writers, i, changes);
        });
      next += static_cast<std::int32_t>(count);
      progress(next, last);
    }
    return this->End(
      StreamOf(this->CorruptedRun.residual, writers, last, EdgeInput::Stream, changes));
  }
};

}

/// A pair after the other one, in order, so that sums do not depend on threads.
struct AttributionPatching::Impl
{
  const Transformer& Model;
  std::vector<std::unique_ptr<const PatchedPair>> Pairs;

  Impl(const Transformer& model, const TransformerInput& clean, const TransformerInput& corrupted,
    const AttributionOptions& options)
    : Model(model)
  {
    const std::size_t count = clean.tokens.size();
    for (std::size_t i = 0; i < count; ++i)
    {
      AttributionOptions of = options;
      of.progress = options.progress.Part(i, i + 1, count);
      this->Pairs.push_back(std::make_unique<const PatchedPair>(
        model, SequenceOf(clean, i), SequenceOf(corrupted, i), PlaceOf(i, count), std::move(of)));
    }
  }

  /// The mean over pairs of what of(pair, progress) gives.
  template<class Of>
  double Mean(const Progress& progress, const Of& of) const
  {
    return ReadIntact(this->Model.GetFiles(),
      [&]
      {
        double sum = 0;
        const std::size_t count = this->Pairs.size();
        for (std::size_t i = 0; i < count; ++i)
        {
          sum += of(*this->Pairs[i], progress.Part(i, i + 1, count));
        }
        return sum / static_cast<double>(count);
      });
  }

  Attribution Attribute(bool edges, const Progress& progress) const
  {
    const std::size_t count = this->Pairs.size();
    std::int64_t longest = 0;
    for (const auto& pair : this->Pairs)
    {
      longest = std::max(longest, pair->Length);
    }
    Attribution mean;
    for (std::size_t i = 0; i < count; ++i)
    {
      Attribution found = this->Pairs[i]->Attribute(edges, progress.Part(i, i + 1, count));
      if (i == 0)
      {
        mean.nodes = found.nodes;
        mean.effects = DoubleMatrix::Zero(found.effects.rows(), longest);
        mean.edges = CircuitEdges(this->Pairs[i]->Config);
        mean.edges.resize(found.edges.size());
      }
      const double weight = 1 / static_cast<double>(count);
      mean.effects.leftCols(found.effects.cols()) += weight * found.effects;
      for (std::size_t k = 0; k < mean.edges.size(); ++k)
      {
        mean.edges[k].effect += weight * found.edges[k].effect;
      }
    }
    return mean;
  }
};

AttributionPatching::AttributionPatching(const Transformer& model, const TransformerInput& clean,
  const TransformerInput& corrupted, const AttributionOptions& options)
{
  CheckGradients(model);
  CheckAttribution(model, clean, corrupted, options);
  this->Data = ReadIntact(
    model.GetFiles(), [&] { return std::make_unique<Impl>(model, clean, corrupted, options); });
}

AttributionPatching::~AttributionPatching() = default;

const std::vector<CircuitNode>& AttributionPatching::GetNodes() const
{
  return this->Data->Pairs.front()->Nodes;
}

const LogitPair& AttributionPatching::GetLogits(std::size_t pair) const
{
  return this->Data->Pairs[pair]->Logits;
}

double AttributionPatching::Clean() const
{
  return this->Data->Mean({}, [](const PatchedPair& pair, const Progress&) { return pair.Clean; });
}

double AttributionPatching::Corrupted() const
{
  return this->Data->Mean(
    {}, [](const PatchedPair& pair, const Progress&) { return pair.Corrupted; });
}

Attribution AttributionPatching::Attribute(bool edges, const Progress& progress) const
{
  return ReadIntact(
    this->Data->Model.GetFiles(), [&] { return this->Data->Attribute(edges, progress); });
}

double AttributionPatching::WithPatched(
  const std::vector<bool>& nodes, const Progress& progress) const
{
  return this->Data->Mean(progress,
    [&](const PatchedPair& pair, const Progress& part) { return pair.WithPatched(nodes, part); });
}

double AttributionPatching::WithPatchedEdge(const CircuitEdge& edge, const Progress& progress) const
{
  return this->Data->Mean(progress, [&](const PatchedPair& pair, const Progress& part)
    { return pair.WithPatchedEdge(edge, part); });
}

double AttributionPatching::WithEdges(
  const std::vector<CircuitEdge>& kept, const Progress& progress) const
{
  return this->Data->Mean(progress,
    [&](const PatchedPair& pair, const Progress& part) { return pair.WithEdges(kept, part); });
}

void CheckAttribution(const Transformer& model, const TransformerInput& clean,
  const TransformerInput& corrupted, const AttributionOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  CheckInput(config, clean, "Prompt: ");
  CheckInput(config, corrupted, "PatchFrom: ");
  const std::vector<std::int64_t> lengths = SequenceLengths(config, clean);
  const std::vector<std::int64_t> others = SequenceLengths(config, corrupted);
  ThrowIf<OptionError>(lengths.empty() || lengths.size() != others.size(),
    "PatchFrom: expected as many prompts as Prompt has, ", lengths.size(), ", found ",
    others.size(), ".");
  for (std::size_t i = 0; i < lengths.size(); ++i)
  {
    ThrowIf<OptionError>(lengths[i] != others[i],
      "PatchFrom: expected as many tokens as the prompt has, ", lengths[i], ", found ", others[i],
      PlaceOf(i, lengths.size()), ".");
  }
  ThrowIf<OptionError>(options.steps < 1, "Steps: expected at least 1, found ", options.steps, ".");
  const std::int64_t shortest = *std::min_element(lengths.begin(), lengths.end());
  ThrowIf<OptionError>(options.position < -1 || options.position >= shortest,
    "Position: expected -1 or one of ", lengths.size() > 1 ? "all prompts" : "the prompt",
    ", 0 to ", shortest - 1, ", found ", options.position, ".");
  if (options.loss)
  {
    ThrowIf<OptionError>(options.target || options.against || options.position != -1,
      "Measure: expected, for the loss at all positions, neither Target, Against nor Position, ",
      "found ",
      (options.position != -1 ? "Position"
        : options.target      ? "Target"
                              : "Against"),
      ".");
    ThrowIf<OptionError>(
      shortest < 2, "Prompt: expected, for a loss, at least 2 tokens, found ", shortest, ".");
    for (const std::vector<std::int64_t>& tokens : clean.tokens)
    {
      const std::int64_t largest = *std::max_element(tokens.begin(), tokens.end());
      ThrowIf<OptionError>(largest >= model.GetWeights().unembedding.outputs,
        "Prompt: expected, for a loss, tokens that have logits, found ", largest, ".");
    }
    return;
  }
  RequireTokens(config, options.target, options.against);
}

double AttributionMemory(const Transformer& model, const std::vector<std::int64_t>& lengths,
  bool edges, int threads, bool loss)
{
  const TransformerConfig& config = model.GetConfig();
  const std::int64_t length = *std::max_element(lengths.begin(), lengths.end());
  const auto nodes = static_cast<double>(CircuitNodes(config).size());
  const double blocks = 17. * ThreadCount(threads); // of readers
  const double rows = edges ? nodes + blocks : 4;
  const double row =
    static_cast<double>(length) * static_cast<double>(config.modelDimension) * sizeof(double);
  constexpr double edge = 350; // bytes, with what circuits and a table of edges take
  double runs = GradientMemory(model, length, threads, loss); // of a step
  for (const std::int64_t one : lengths)
  {
    runs += 2 * TracedMemory(model, one);
  }
  return runs + rows * row + (edges ? static_cast<double>(CircuitEdgeCount(config)) * edge : 0);
}

}
