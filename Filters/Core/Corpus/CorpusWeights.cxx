#include "CorpusWeights.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Weights/ProcessedWeights.h"

#include <Eigen/QR>

namespace atlas
{
namespace
{

std::unique_ptr<const ProcessedWeights> ProcessIfPossible(const Transformer& model, int threads)
{
  if (!model.HasLogits() || model.GetConfig().mask != AttentionMask::Causal)
  {
    return nullptr;
  }
  try
  {
    return std::make_unique<const ProcessedWeights>(model, WeightSteps::TransformerLens, threads);
  }
  catch (const ModelError&) // of an architecture whose normalizations cannot be folded
  {
    return nullptr;
  }
}

/// R^T of W^T = Q R, so that |z W| = |z R^T| for every z.
CorpusWeights::Matrix LengthFactor(const DoubleMatrix& output)
{
  const Eigen::Index d = output.rows();
  const Eigen::HouseholderQR<DoubleMatrix> qr(output.transpose());
  DoubleMatrix upper = DoubleMatrix::Zero(d, d);
  const Eigen::Index rows = std::min(d, output.cols());
  upper.topRows(rows) = qr.matrixQR().topRows(rows).triangularView<Eigen::Upper>();
  return upper.transpose().cast<float>();
}

}

CorpusWeights::CorpusWeights(
  const Transformer& model, const std::vector<std::int64_t>& layers, int threads)
  : Processed(ProcessIfPossible(model, threads))
{
  const ProcessedWeights stored(model, WeightSteps::Stored, threads);
  this->Layers.resize(layers.size());
  ParallelFor(layers.size(), threads,
    [&](std::int64_t l)
    {
      const ProcessedAttention own = stored.Attention(layers[l]);
      const ProcessedAttention processed =
        this->Processed ? this->Processed->Attention(layers[l]) : ProcessedAttention();
      std::vector<Head>& heads = this->Layers[l];
      heads.resize(own.heads.size());
      for (std::size_t h = 0; h < heads.size(); ++h)
      {
        heads[h].writing = LengthFactor(own.heads[h].output);
        if (this->Processed)
        {
          heads[h].output = processed.heads[h].output.cast<float>();
          heads[h].bias = processed.heads[h].foldedBias.cast<float>();
        }
      }
    });
}

CorpusWeights::~CorpusWeights() = default;

std::int64_t CorpusWeights::OutputVocabulary() const
{
  return this->Processed ? this->Processed->OutputVocabulary() : 0;
}

CorpusWeights::Matrix CorpusWeights::Unembedding(
  const std::vector<std::int64_t>& ids, int threads) const
{
  Matrix rows(ids.size(), this->Processed->GetModel().GetConfig().modelDimension);
  ParallelFor(ids.size(), threads, [&](std::int64_t i)
    { rows.row(i) = this->Processed->UnembeddingColumns(ids[i], ids[i] + 1).cast<float>(); });
  return rows;
}

std::uint64_t CorpusWeights::Memory(const TransformerConfig& config, std::size_t layers)
{
  const std::uint64_t d = config.headDimension;
  const std::uint64_t heads = layers * ToIndex(config.heads);
  return heads * d * (d + ToIndex(config.modelDimension)) * sizeof(float);
}

}
