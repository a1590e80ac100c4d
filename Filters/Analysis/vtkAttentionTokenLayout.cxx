#include "vtkAttentionTokenLayout.h"

#include "Analysis/AttentionTokens.h"
#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "Embedding/TSne.h"
#include "ListArrays.h"
#include "Shapes.h"
#include "Task.h"
#include "TokensOfHeads.h"
#include "TransformerConversion.h"
#include "Weights/ProcessedWeights.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// A head and one of its tokens.
struct Place
{
  int layer;
  int head;
  std::int32_t id;
};

std::vector<Place> PlacesOf(const TokensOfHeads& tokens)
{
  std::vector<Place> places;
  for (std::size_t h = 0; h < tokens.heads.size(); ++h)
  {
    for (const std::int32_t id : tokens.ids[h])
    {
      places.push_back({ tokens.heads[h].first, tokens.heads[h].second, id });
    }
  }
  return places;
}

/// The embeddings of the tokens of all places, one after another.
std::vector<float> EmbeddingsOf(const std::vector<Place>& places, const atlas::Transformer& model)
{
  const atlas::TransformerConfig& config = model.GetConfig();
  atlas::ThrowIf<atlas::ModelError>(config.input != atlas::InputKind::Tokens,
    "Model: expected a model of text, found ", config.architecture, ".");
  const std::size_t d = config.modelDimension;
  RequireMemory(static_cast<double>(places.size() * d) * sizeof(float),
    "the embeddings of " + std::to_string(places.size()) + " tokens of heads",
    "read fewer heads or vectors.");
  const atlas::ProcessedWeights weights(model, atlas::WeightSteps::TransformerLens, ThreadLimit());
  std::vector<float> embeddings(places.size() * d);
  for (std::size_t i = 0; i < places.size(); ++i)
  {
    const std::int32_t id = places[i].id;
    atlas::ThrowIf<atlas::OptionError>(id < 0 || id >= config.vocabulary,
      "Model: expected the model of the attention tokens, with ids from 0 to ",
      config.vocabulary - 1, ", found ", id, " among them.");
    const atlas::DoubleMatrix row = weights.TokenEmbedding(id, id + 1);
    std::transform(row.data(), row.data() + d, embeddings.data() + i * d,
      [](double value) { return static_cast<float>(value); });
  }
  return embeddings;
}

void Fill(const TokensOfHeads& tokens, const std::vector<Place>& places,
  const atlas::Layout& layout, vtkPolyData* output)
{
  Shapes vertices;
  for (std::size_t i = 0; i < places.size(); ++i)
  {
    vertices.AddVertex(layout.points[2 * i], layout.points[2 * i + 1]);
  }
  vertices.MoveToVerts(output);
  vtkPointData* data = output->GetPointData();
  ListArrays(places, data)
    .Int(Names::Layer, &Place::layer)
    .Int(Names::Head, &Place::head)
    .Int(Names::TokenId, &Place::id)
    .Text(Names::Token, [&](const Place& place) { return tokens.texts.at(place.id); });
  CacheRanges(data);
  AddField(output->GetFieldData(), Names::Divergence, layout.divergence);
  SetFormat(output, Formats::AttentionTokenLayout);
}

}

vtkStandardNewMacro(vtkAttentionTokenLayout);

vtkAttentionTokenLayout::vtkAttentionTokenLayout()
  : vtkTaskAlgorithm({ "vtkTable", "vtkMultiBlockDataSet?" }, { "vtkPolyData" })
{
}

void vtkAttentionTokenLayout::Execute(Task& task)
{
  auto* input = task.Input<vtkTable>();
  const bool isEmpty = input == nullptr || input->GetNumberOfRows() == 0;
  if (isEmpty || !task.IsFirst())
  {
    return;
  }
  const TokensOfHeads tokens(
    input, std::string(atlas::NameOf(static_cast<atlas::HeadVector>(this->Vector))));
  const std::vector<Place> places = PlacesOf(tokens);
  const auto transformer = ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
  const std::vector<float> embeddings = EmbeddingsOf(places, transformer->GetModel());
  const std::int64_t count = places.size();
  atlas::TSneOptions options;
  options.metric = atlas::PointMetric::Euclidean;
  options.perplexity = std::min(this->Perplexity, atlas::LargestPerplexity(count));
  options.iterations = this->Iterations;
  options.seed = static_cast<std::uint64_t>(this->Seed);
  options.threads = ThreadLimit();
  options.progress = [&](const atlas::LayoutStep& step)
  {
    task.Progress()(step.done);
    return true;
  };
  const atlas::Layout layout = atlas::TSne(
    { embeddings.data(), count, transformer->GetModel().GetConfig().modelDimension }, options);
  Fill(tokens, places, layout, task.Output<vtkPolyData>());
}
