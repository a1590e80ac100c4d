#include "ActivationPatching.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Internal/LayerRunner.h"
#include "Internal/TransformerEmbedding.h"
#include "Internal/TransformerNorm.h"
#include "Internal/WideMath.h"
#include "LogitPair.h"
#include "Numerics/MatrixProduct.h"
#include "PromptMeans.h"
#include "Weights/ArchitectureLimits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace atlas
{
namespace
{

/// The most floats of the residual streams that run together: 256 MiB.
constexpr std::int64_t BatchFloats = std::int64_t{ 1 } << 26U;

/// The logit difference of two tokens.
class LogitDifference
{
public:
  LogitDifference(const LinearTensors& unembedding, std::int64_t target, std::int64_t against)
    : Target(UnembeddingColumn(unembedding, target))
    , Against(UnembeddingColumn(unembedding, against))
  {
    if (unembedding.bias.data != nullptr)
    {
      this->Bias = unembedding.bias.At(target) - unembedding.bias.At(against);
    }
  }

  double Of(const float* x) const
  {
    double target = 0;
    double against = 0;
    for (std::int64_t i = 0; i < this->Target.size(); ++i)
    {
      target += static_cast<double>(x[i]) * this->Target(i);
      against += static_cast<double>(x[i]) * this->Against(i);
    }
    return target - against + this->Bias;
  }

private:
  Eigen::RowVectorXd Target;
  Eigen::RowVectorXd Against;
  double Bias = 0;
};

std::int64_t TokensOf(const TransformerConfig& config, const TransformerInput& input)
{
  return SequenceOffsets(SequenceLengths(config, input)).back();
}

/// How many copies run together.
std::int64_t BatchCopies(const TransformerConfig& config, std::int64_t length)
{
  return std::max<std::int64_t>(BatchFloats / (length * config.modelDimension), 1);
}

/// So many copies of a sequence.
PackedSequences CopiesOf(std::int64_t length, std::int64_t count)
{
  return { std::vector<std::int64_t>(count, length), std::nullopt };
}

/// One map in the making. All arguments must outlive this object.
class Patching
{
public:
  Patching(const Transformer& model, const TransformerInput& prompt, const TransformerInput& source,
    const PatchingOptions& options)
    : Model(model)
    , Config(model.GetConfig())
    , Prompt(prompt)
    , Source(source)
    , Options(options)
    , Length(prompt.tokens.front().size())
    , Sites(PatchingSites(this->Config, this->Length, options))
    , Runner(model, this->Length, options.threads)
  {
    for (std::size_t i = 0; i < this->Sites.size(); ++i)
    {
      if (i % ToIndex(options.parts) == ToIndex(options.part) &&
          HasSite(this->Config, this->Sites[i]))
      {
        this->Mine.push_back(i);
        this->Layers += this->Config.layers - this->Sites[i].layer;
      }
    }
    this->Layers += (this->HasSource() ? 2 : 1) * this->Config.layers;
    this->ReferenceLayers =
      this->HasReference()
        ? this->Config.layers * TokensOf(this->Config, options.reference) / this->Length
        : 0;
    this->Layers += this->ReferenceLayers;
  }

  PatchingMap Run()
  {
    const SingleThreadedBlas blas;
    this->RunInputs();
    this->RunReference();
    PatchingMap map;
    this->ChooseTokens(map);
    const LogitDifference logits(this->Model.GetWeights().unembedding, map.target, map.against);
    map.prompt = logits.Of(this->PromptEnd.data());
    map.source = logits.Of((this->HasSource() ? this->SourceEnd : this->PromptEnd).data());
    for (const ActivationSite& site : this->Sites)
    {
      const bool isMissing = this->Options.part == 0 && !HasSite(this->Config, site);
      map.difference.push_back(isMissing ? std::numeric_limits<double>::quiet_NaN() : 0);
    }
    const std::size_t batch = BatchCopies(this->Config, this->Length);
    for (std::size_t begin = 0; begin < this->Mine.size(); begin += batch)
    {
      const std::size_t end = std::min(begin + batch, this->Mine.size());
      this->RunBatch({ this->Mine.begin() + static_cast<std::ptrdiff_t>(begin),
                       this->Mine.begin() + static_cast<std::ptrdiff_t>(end) },
        logits, map);
    }
    return map;
  }

private:
  const Transformer& Model;
  const TransformerConfig& Config;
  const TransformerInput& Prompt;
  const TransformerInput& Source;
  const PatchingOptions& Options;
  std::int64_t Length;
  std::vector<ActivationSite> Sites;
  std::vector<std::size_t> Mine; ///< sites of this part, by layer
  std::int64_t Layers = 0;       ///< of one sequence, to run in all
  std::int64_t LayersDone = 0;
  std::int64_t ReferenceLayers = 0; ///< of them, those of the reference
  LayerRunner Runner;
  Activations PromptRun;        ///< residual streams before all layers
  Activations SourceRun;        ///< what is patched
  std::vector<float> Means;     ///< [layers, width], of the reference
  std::vector<float> PromptEnd; ///< [d_model], what is multiplied by W_U at the last position
  std::vector<float> SourceEnd; ///< likewise

  bool HasSource() const { return this->Options.by == Replacement::Source; }
  bool HasReference() const { return this->Options.by == Replacement::MeanOverPrompts; }

  /// The progress of running so many layers next.
  Progress ProgressOf(std::int64_t layers) const
  {
    return this->Options.progress.Part(this->LayersDone, this->LayersDone + layers, this->Layers);
  }

  /// Runs the prompt and the source.
  void RunInputs()
  {
    const auto run = [this](const TransformerInput& input, ActivationPlace place,
                       Activations& found, std::vector<float>& end)
    {
      std::set<PlaceInLayer> places = { { this->Config.layers, ActivationPlace::Residual } };
      for (std::int64_t l = 0; l < this->Config.layers; ++l)
      {
        places.insert({ l, place });
      }
      found = CaptureActivations(
        this->Model, input, places, this->Options.threads, this->ProgressOf(this->Config.layers));
      this->LayersDone += this->Config.layers;
      end = this->EndsOf(found.at({ this->Config.layers, ActivationPlace::Residual }), 1);
    };
    run(this->Prompt, ActivationPlace::Residual, this->PromptRun, this->PromptEnd);
    if (this->HasSource())
    {
      run(this->Source, SliceOf(this->Config, this->Sites[0]).place, this->SourceRun,
        this->SourceEnd);
    }
  }

  /// Finds the means of all layers over the reference, if there is one.
  void RunReference()
  {
    if (!this->HasReference())
    {
      return;
    }
    const bool isHead = this->Options.kind == ActivationKind::HeadOutput;
    RecordOptions options;
    options.threads = this->Options.threads;
    options.progress = this->ProgressOf(this->ReferenceLayers);
    for (std::int64_t l = 0; l < this->Config.layers; ++l)
    {
      const auto kind = isHead ? ActivationKind::AttentionOutput : this->Options.kind; // all heads
      options.interventions.list.push_back({ { kind, l }, Replacement::MeanOverPrompts });
    }
    const TransformerInput& reference = this->Options.reference;
    this->Means = MeanOverAll(
      SumOverPrompts(this->Model, reference, options), SequenceLengths(this->Config, reference));
    this->LayersDone += this->ReferenceLayers;
  }

  /// What is multiplied by W_U at the last position of each copy, given the residual stream.
  std::vector<float> EndsOf(const std::vector<float>& x, std::int64_t copies) const
  {
    const auto d = static_cast<std::ptrdiff_t>(this->Config.modelDimension);
    std::vector<float> ends;
    for (std::int64_t i = 1; i <= copies; ++i)
    {
      const auto end = x.begin() + i * this->Length * d;
      ends.insert(ends.end(), end - d, end);
    }
    return this->ForLogits(std::move(ends));
  }

  /// The logits of the first row of ForLogits.
  std::vector<float> LogitsOf(const std::vector<float>& end) const
  {
    const LinearTensors& unembedding = this->Model.GetWeights().unembedding;
    std::vector<float> logits(unembedding.outputs);
    ApplyLinear(Linear(unembedding), 1, end.data(), logits.data(), {}, this->Options.threads);
    return logits;
  }

  /// Sets the two tokens, given or predicted.
  void ChooseTokens(PatchingMap& map) const
  {
    LogitPair found = { this->Options.target.value_or(0), this->Options.against.value_or(0) };
    if (!this->Options.target || !this->Options.against)
    {
      const std::vector<float> prompt = this->LogitsOf(this->PromptEnd);
      found = this->HasSource()
                ? atlas::ChooseTokens(this->Options.target, this->Options.against, prompt,
                    this->LogitsOf(this->SourceEnd), "PatchFrom")
                : atlas::ChooseTokens(this->Options.target, this->Options.against, prompt);
    }
    map.target = found.target;
    map.against = found.against;
  }

  /// Runs the prompt with one of these sites changed in each copy, together from the first changed
  /// layer on.
  void RunBatch(
    const std::vector<std::size_t>& batch, const LogitDifference& logits, PatchingMap& map)
  {
    const std::int64_t size = this->Length * this->Config.modelDimension;
    std::vector<float> x(batch.size() * ToIndex(size));
    std::size_t active = 0; // copies that have been changed
    for (std::int64_t l = this->Sites[batch.front()].layer; l < this->Config.layers; ++l)
    {
      for (; active < batch.size() && this->Sites[batch[active]].layer == l; ++active)
      {
        this->Start(batch[active], x.data() + static_cast<std::int64_t>(active) * size);
      }
      const PackedSequences copies = CopiesOf(this->Length, active);
      const auto change = [&](ActivationPlace place, const RowGroup& group, float* values)
      { this->Change(batch, l, place, group, values); };
      const auto layers = static_cast<std::int64_t>(active); // one of each copy
      this->Runner.Run(l, copies, x.data(), change, this->ProgressOf(layers));
      this->LayersDone += layers;
    }
    this->Measure(batch, x, logits, map);
  }

  /// Writes the residual stream [length, d_model] before the layer of a site.
  void Start(std::size_t index, float* x) const
  {
    const ActivationSite& site = this->Sites[index];
    const std::vector<float>& from = this->PromptRun.at({ site.layer, ActivationPlace::Residual });
    std::copy(from.begin(), from.end(), x);
    if (site.kind == ActivationKind::Residual)
    {
      this->ReplaceAt(index, x);
    }
  }

  /// Replaces the values of the prompt's copy [length, width] at a site.
  void ReplaceAt(std::size_t index, float* values) const
  {
    const ActivationSite& site = this->Sites[index];
    const ActivationSlice slice = SliceOf(this->Config, site);
    const float* given = nullptr;
    if (this->HasSource())
    {
      given = this->SourceRun.at({ site.layer, slice.place }).data();
    }
    else if (this->HasReference())
    {
      given = this->Means.data() + site.layer * slice.width + slice.first;
    }
    Replace(this->Config, { site, this->Options.by }, given, this->Length, values);
  }

  /// Changes what begins to differ inside layer l.
  void Change(const std::vector<std::size_t>& batch, std::int64_t l, ActivationPlace place,
    const RowGroup& group, float* values) const
  {
    const std::int64_t first = group.begin / this->Length;
    for (std::size_t s = 0; s + 1 < group.offsets.size(); ++s)
    {
      const std::size_t index = batch[ToIndex(first) + s];
      const ActivationSite& site = this->Sites[index];
      if (site.layer == l && SliceOf(this->Config, site).place == place)
      {
        this->ReplaceAt(index, values + group.offsets[s] * WidthOf(this->Config, place));
      }
    }
  }

  /// Sets the differences of a batch.
  void Measure(const std::vector<std::size_t>& batch, const std::vector<float>& x,
    const LogitDifference& logits, PatchingMap& map) const
  {
    const std::vector<float> ends = this->EndsOf(x, batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i)
    {
      const double found = logits.Of(ends.data() + i * ToIndex(this->Config.modelDimension));
      if (!std::isfinite(found))
      {
        throw ModelError("the run with ", ToText(this->Sites[batch[i]]),
          " changed: its logits are not finite; expected finite numbers.");
      }
      map.difference[batch[i]] = found;
    }
  }

  /// What is multiplied by W_U, from rows of the last residual stream.
  std::vector<float> ForLogits(std::vector<float> rows) const
  {
    const TransformerWeights& weights = this->Model.GetWeights();
    const auto count = static_cast<std::int64_t>(rows.size()) / this->Config.modelDimension;
    if (this->Config.finalNorm)
    {
      TransformerNorm(this->Config, weights.finalNorm)
        .Apply(count, this->Config.modelDimension, rows.data(), rows.data(), this->Options.threads);
    }
    const PackedSequences tokens(std::vector<std::int64_t>(count, 1), std::nullopt);
    std::vector<float> memory;
    TransformForLogits(this->Config, weights, tokens, rows.data(), memory, this->Options.threads);
    return memory.empty() ? rows : memory;
  }
};

}

std::vector<ActivationSite> PatchingSites(
  const TransformerConfig& config, std::int64_t length, const PatchingOptions& options)
{
  const bool isHead = options.kind == ActivationKind::HeadOutput;
  std::vector<ActivationSite> sites;
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    for (std::int64_t i = 0; i < (isHead ? config.heads : length); ++i)
    {
      sites.push_back({ options.kind, l, isHead ? i : 0, isHead ? options.position : i });
    }
  }
  return sites;
}

void CheckPatching(const Transformer& model, const TransformerInput& prompt,
  const TransformerInput& source, const PatchingOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  ThrowIf<OptionError>(config.input != InputKind::Tokens || !model.HasLogits(),
    "expected a model of texts with an unembedding, found one without, so there are no logits to "
    "compare.");
  ThrowIf<OptionError>(config.layers == 0, "expected a model with layers, found none to change.");
  RefuseSwitches(config, "comparing logits",
    { ArchitectureSwitch::Encoder, ArchitectureSwitch::LogitCap,
      ArchitectureSwitch::EmbeddingProjection });
  CheckInput(config, prompt);
  if (options.by == Replacement::MeanOverPrompts)
  {
    CheckInput(config, options.reference, "ReferencePrompts: ");
  }
  RequireTokens(config, options.target, options.against);
  const std::vector<std::int64_t> lengths = SequenceLengths(config, prompt);
  ThrowIf<OptionError>(
    options.kind == ActivationKind::HeadOutput && options.position >= lengths.front(),
    "Position: expected -1 or one of the prompt, 0 to ", lengths.front() - 1, ", found ",
    options.position, ".");
  Interventions interventions;
  interventions.source = source;
  for (const ActivationSite& site : PatchingSites(config, lengths.front(), options))
  {
    if (HasSite(config, site))
    {
      interventions.list.push_back({ site, options.by });
    }
  }
  ThrowIf<ModelError>(interventions.list.empty(),
    "expected a model with layers that have attention, found one of ", config.architecture,
    " without.");
  CheckInterventions(config, lengths, interventions);
}

std::uint64_t PatchingMemory(
  const Transformer& model, std::int64_t length, const PatchingOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  const std::vector<ActivationSite> sites = PatchingSites(config, length, options);
  const std::int64_t kept =
    config.modelDimension * 2 + WidthOf(config, SliceOf(config, sites[0]).place);
  const std::int64_t copies =
    std::min(static_cast<std::int64_t>(sites.size()), BatchCopies(config, length));
  const PackedSequences batch = CopiesOf(length, copies);
  const std::int64_t floats =
    (config.layers + 1) * length * kept + copies * length * config.modelDimension +
    LayerRunner::WorkingFloats(config, batch.LargestGroup(), options.threads);
  const TransformerWeights& weights = model.GetWeights();
  const std::uint64_t widened = WidenedBytes(weights, options.threads);
  std::uint64_t reference = 0;
  if (options.by == Replacement::MeanOverPrompts)
  {
    const PackedSequences prompts(SequenceLengths(config, options.reference), std::nullopt);
    const std::int64_t width = WidthOf(config, SliceOf(config, sites[0]).place);
    reference = ToIndex(VisitFloats(config, prompts, options.threads)) * sizeof(float) +
                ToIndex(config.layers * width) * prompts.offsets.size() * sizeof(double);
  }
  return ToIndex(floats) * sizeof(float) + widened + reference;
}

PatchingMap MapPatching(const Transformer& model, const TransformerInput& prompt,
  const TransformerInput& source, const PatchingOptions& options)
{
  CheckPatching(model, prompt, source, options);
  return ReadIntact(
    model.GetFiles(), [&] { return Patching(model, prompt, source, options).Run(); });
}

}
