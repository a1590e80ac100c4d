#include "LearningHistory.h"

#include "Learning/RecipeFile.h"
#include "PackedLearning.h"

#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

namespace AttentionAtlas
{
namespace
{

std::uint64_t Hash(std::string_view text)
{
  return std::hash<std::string_view>()(text);
}

std::uint64_t Combined(std::uint64_t hash, std::string_view text)
{
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;
  return (hash ^ Hash(text)) * golden + (hash >> 32U);
}

/// A path that differs, almost certainly, from that of any other model: it tells the bytes of the
/// weights, and is the same on every rank and whenever the training is repeated.
std::string PathOf(const atlas::LearningRecipe& recipe,
  const std::map<std::string, std::string>& files, const atlas::LearningCheckpoint& checkpoint)
{
  std::uint64_t hash = Hash(atlas::ToJson(recipe));
  for (const auto& [name, text] : files)
  {
    hash = Combined(Combined(hash, name), text);
  }
  for (const auto& [name, tensor] : *checkpoint.weights)
  {
    hash = Combined(Combined(hash, name),
      { reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size() });
  }
  std::array<char, 20> digits;
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return "training:" + NameOf(recipe.task.kind) + "/step-" + std::to_string(checkpoint.step) + "/" +
         digits.data();
}

}

std::string LearningHistory::Update(
  const LearningRequest& request, const RankGroup& ranks, const LearningReport& report)
{
  const std::string key = request.Key();
  if (!ranks.Any(key != this->Trained))
  {
    return {};
  }
  *this = {};
  ranks.RequireSame(Hash(atlas::ToJson(request.recipe)));
  atlas::LearningResult result;
  if (ranks.Rank() == 0)
  {
    result = request.Train(report);
  }
  if (ranks.Count() > 1)
  {
    const std::vector<std::vector<char>> bytes =
      ranks.Share(ranks.Rank() == 0 ? Packed(result) : std::vector<char>());
    if (ranks.Rank() > 0)
    {
      result = Unpacked(bytes.front(), request.Config());
    }
  }
  this->Take(request, result);
  this->Trained = key;
  return result.divergence;
}

void LearningHistory::Take(const LearningRequest& request, const atlas::LearningResult& result)
{
  const auto files = std::make_shared<const std::map<std::string, std::string>>(result.files);
  for (const atlas::LearningCheckpoint& checkpoint : result.checkpoints)
  {
    const std::string path = PathOf(request.recipe, *files, checkpoint);
    atlas::ModelInMemory model = { checkpoint.model->GetConfig(), checkpoint.weights, files, {} };
    if (checkpoint.step == result.checkpoints.back().step)
    {
      model.state = result.state;
    }
    this->Kept.push_back({ checkpoint.step, path, atlas::OpenTransformer::Keep(path, model) });
  }
  this->Measured = result.curves;
}

const KeptModel& LearningHistory::At(double step) const
{
  std::size_t found = 0;
  while (found + 1 < this->Kept.size() && static_cast<double>(this->Kept[found + 1].step) <= step)
  {
    ++found;
  }
  return this->Kept[found];
}

}
