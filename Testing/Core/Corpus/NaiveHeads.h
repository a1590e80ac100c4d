#pragma once

#include "Corpus/CorpusFile.h"
#include "Corpus/CorpusRun.h"
#include "Files/Safetensors.h"
#include "TemporaryDirectory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>

namespace atlas::test
{

inline std::filesystem::path ShippedModel(const std::string& name)
{
  return std::filesystem::path(ATLAS_DATA_DIR) / "models" / name;
}

inline std::shared_ptr<const OpenTransformer> OpenModel(const std::string& name)
{
  return OpenTransformer::Open(ShippedModel(name), "");
}

/// Writes some 25,000 tokens of the King James Bible, which the shipped statistics quote: three
/// quotations in a line, so that lines are longer than a window. Returns the path.
inline std::string WriteProse(const TemporaryDirectory& folder)
{
  const CorpusStatistics shipped =
    ReadCorpus(std::filesystem::path(ATLAS_DATA_DIR) / "corpus" / "language-2.safetensors");
  const auto model = OpenModel("language-2");
  std::string path = (folder / "prose.txt").string();
  std::ofstream file(path);
  std::set<std::pair<std::int64_t, std::int64_t>> quoted;
  for (const CorpusHead& head : shipped.heads)
  {
    for (const TopContext& context : head.contexts.front())
    {
      if (quoted.emplace(context.document, context.begin).second)
      {
        std::string text =
          model->GetTokenizer().Decode({ context.tokens.begin(), context.tokens.end() });
        std::replace(text.begin(), text.end(), '\n', ' ');
        file << text << (quoted.size() % 3 == 0 ? "\n" : " ");
      }
    }
  }
  return path;
}

inline CorpusStatistics Measure(const OpenTransformer& model, const std::string& file,
  const CorpusOptions& options, std::int64_t limit = 0, int threads = 0)
{
  CorpusStatistics statistics = BeginCorpus(model, "model", options);
  CorpusRunOptions run;
  run.files = { file };
  run.tokenLimit = limit;
  run.threads = threads;
  MeasureCorpus(model, run, statistics);
  return statistics;
}

/// The windows of a text that were measured.
inline std::vector<CorpusWindow> WindowsOf(
  const OpenTransformer& model, const std::string& file, const CorpusStatistics& statistics)
{
  CorpusText text(model, { file }, statistics.options);
  std::vector<CorpusWindow> windows;
  for (std::int64_t w = 0; w < statistics.windows; ++w)
  {
    windows.push_back(text.Next().value());
  }
  return windows;
}

/// What the heads of an attention-only model do on a sequence, by their definition in double
/// precision: causal, with layer normalization, and with learned positions or ALiBi of eight heads.
/// It asks for weights by their names in TransformerLens.
class NaiveHeads
{
public:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  struct Head
  {
    Rows query;
    Rows key;
    Rows value;
    Rows scores; ///< ALiBi by distance, slope x (key - query)
    Rows attention;
    Rows written;     ///< z W_O
    Rows withoutBias; ///< the same of values that have no bias
  };

  struct Run
  {
    std::vector<Head> heads; ///< by layer
    Rows residual;           ///< after the last layer
  };

  explicit NaiveHeads(const std::string& model)
    : Weights(ShippedModel(model) / "model.safetensors")
    , Embedding(this->Get("embed.W_E"))
    , Unembed(this->Get("ln_final.w").row(0).asDiagonal() * this->Get("unembed.W_U"))
  {
    this->Unembed.colwise() -= this->Unembed.rowwise().mean().eval();
  }

  /// W_U [d_model, vocabulary] with the gain of the final normalization, without its mean over the
  /// vocabulary.
  const Rows& Unembedding() const { return this->Unembed; }

  Rows Output(std::int64_t layer, std::int64_t head) const
  {
    return this->OfHead("blocks." + std::to_string(layer) + ".attn.W_O", head);
  }

  static Rows Normalized(const Rows& x)
  {
    const Rows centered = x.colwise() - x.rowwise().mean();
    const Eigen::ArrayXd squares = centered.array().square().rowwise().mean();
    return (centered.array().colwise() / (squares + 1e-5).sqrt()).matrix();
  }

  Run Evaluate(const std::vector<std::int64_t>& ids) const
  {
    Run run;
    Rows& x = run.residual;
    x.resize(static_cast<Eigen::Index>(ids.size()), this->Embedding.cols());
    for (Eigen::Index t = 0; t < x.rows(); ++t)
    {
      x.row(t) = this->Embedding.row(ids[t]);
    }
    const bool isAlibi = !this->Has("pos_embed.W_pos");
    if (!isAlibi)
    {
      x += this->Get("pos_embed.W_pos").topRows(x.rows());
    }
    for (int layer = 0; this->Has("blocks." + std::to_string(layer) + ".attn.W_Q"); ++layer)
    {
      const std::string block = "blocks." + std::to_string(layer) + ".";
      const Rows normed = Normalized(x) * this->Get(block + "ln1.w").row(0).asDiagonal();
      const Rows shifted = normed.rowwise() + this->Get(block + "ln1.b").row(0);
      x.rowwise() += this->Get(block + "attn.b_O").row(0);
      for (int h = 0; h < 8; ++h)
      {
        const auto linear = [&](const char* kind) -> Rows
        {
          const Rows weight = this->OfHead(block + "attn.W_" + kind, h);
          return (shifted * weight).rowwise() + this->Get(block + "attn.b_" + kind).row(h);
        };
        Head head = { linear("Q"), linear("K"), linear("V"), {}, {}, {}, {} };
        head.scores = head.query * head.key.transpose() / 4;
        head.attention = Rows::Zero(x.rows(), x.rows());
        for (Eigen::Index i = 0; i < x.rows(); ++i)
        {
          for (Eigen::Index j = 0; j <= i; ++j)
          {
            head.scores(i, j) += isAlibi ? std::ldexp(static_cast<double>(j - i), -1 - h) : 0;
            head.attention(i, j) = std::exp(head.scores(i, j));
          }
          head.attention.row(i) /= head.attention.row(i).sum();
        }
        const Rows output = this->Output(layer, h);
        head.written = head.attention * head.value * output;
        head.withoutBias = head.attention * (normed * this->OfHead(block + "attn.W_V", h)) * output;
        x += head.written;
        run.heads.push_back(std::move(head));
      }
    }
    return run;
  }

  /// A matrix of a head of all windows, one below another.
  Rows OfAll(const std::vector<CorpusWindow>& windows, std::size_t head, Rows Head::* matrix) const
  {
    Rows all(0, 16);
    for (const CorpusWindow& window : windows)
    {
      const Rows more = this->Evaluate(window.tokens).heads.at(head).*matrix;
      all.conservativeResize(all.rows() + more.rows(), Eigen::NoChange);
      all.bottomRows(more.rows()) = more;
    }
    return all;
  }

private:
  SafetensorsFile Weights;
  Rows Embedding;
  Rows Unembed;

  bool Has(const std::string& name) const { return this->Weights.GetTensors().count(name) > 0; }

  /// A row per index of all axes but the last; one row of a vector.
  Rows Get(const std::string& name) const
  {
    const TensorView& view = this->Weights.GetTensors().at(name);
    const std::vector<double> values = view.ToDouble();
    const auto columns = static_cast<Eigen::Index>(view.shape.back());
    return Eigen::Map<const Rows>(
      values.data(), static_cast<Eigen::Index>(values.size()) / columns, columns);
  }

  Rows OfHead(const std::string& name, std::int64_t head) const
  {
    const Rows all = this->Get(name);
    return all.middleRows(head * all.rows() / 8, all.rows() / 8);
  }
};

}
