#include "PackedLearning.h"

#include "Files/Safetensors.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace AttentionAtlas
{
namespace
{

// Tensors are named STEP/NAME; the others are these. Names of files follow FilePrefix.
constexpr const char* CurvesTensor = "curves";
constexpr const char* NamesEntry = "names";
constexpr const char* DivergenceEntry = "divergence";
constexpr const char* StoppedEntry = "stopped";
const std::string FilePrefix = "file ";

atlas::Tensor PackedRows(const atlas::LearningCurves& curves)
{
  std::vector<double> values;
  for (const std::vector<double>& row : curves.rows)
  {
    values.insert(values.end(), row.begin(), row.end());
  }
  return atlas::Tensor::FromDouble(atlas::DType::F64,
    { static_cast<std::int64_t>(curves.rows.size()),
      static_cast<std::int64_t>(curves.names.size()) },
    values);
}

atlas::LearningCurves UnpackedCurves(const atlas::TensorView& rows, const std::string& names)
{
  atlas::LearningCurves curves;
  std::istringstream lines(names);
  for (std::string name; std::getline(lines, name);)
  {
    curves.names.push_back(name);
  }
  const std::vector<double> values = rows.ToDouble();
  const std::int64_t columns = curves.names.size();
  for (auto row = values.begin(); row != values.end() && columns > 0; row += columns)
  {
    curves.rows.emplace_back(row, row + columns);
  }
  return curves;
}

atlas::LearningCheckpoint UnpackedCheckpoint(
  std::int64_t step, atlas::Tensors weights, const atlas::TransformerConfig& config)
{
  atlas::LearningCheckpoint checkpoint;
  checkpoint.step = step;
  checkpoint.weights = std::make_shared<const atlas::Tensors>(std::move(weights));
  checkpoint.model = std::make_shared<const atlas::Transformer>(config,
    atlas::WeightFiles(atlas::ViewsOf(*checkpoint.weights), "step " + std::to_string(step)));
  return checkpoint;
}

}

std::vector<char> Packed(const atlas::LearningResult& result)
{
  const atlas::Tensor rows = PackedRows(result.curves);
  atlas::TensorViews tensors = { { CurvesTensor, rows.View() } };
  for (const atlas::LearningCheckpoint& checkpoint : result.checkpoints)
  {
    for (const auto& [name, tensor] : *checkpoint.weights)
    {
      tensors.emplace(std::to_string(checkpoint.step) + "/" + name, tensor.View());
    }
  }
  atlas::Metadata metadata = { { DivergenceEntry, result.divergence },
    { StoppedEntry, result.stopped ? "1" : "" } };
  for (const std::string& name : result.curves.names)
  {
    metadata[NamesEntry] += name + "\n";
  }
  for (const auto& [name, text] : result.files)
  {
    metadata[FilePrefix + name] = text;
  }
  std::ostringstream stream;
  atlas::WriteSafetensorViews(stream, tensors, metadata);
  const std::string bytes = stream.str();
  return { bytes.begin(), bytes.end() };
}

atlas::LearningResult Unpacked(
  const std::vector<char>& bytes, const atlas::TransformerConfig& config)
{
  const atlas::SafetensorsContent content = atlas::ParseSafetensors(
    reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), "the training of rank 0");
  atlas::LearningResult result;
  std::map<std::int64_t, atlas::Tensors> steps;
  for (const auto& [name, view] : content.tensors)
  {
    const std::size_t slash = name.find('/');
    if (slash != std::string::npos)
    {
      const std::size_t size = view.Bytes();
      steps[std::stoll(name)].emplace(name.substr(slash + 1),
        atlas::Tensor{ view.dtype, view.shape, { view.data, view.data + size } });
    }
  }
  for (auto& [step, weights] : steps)
  {
    result.checkpoints.push_back(UnpackedCheckpoint(step, std::move(weights), config));
  }
  for (const auto& [name, text] : content.metadata)
  {
    if (name.compare(0, FilePrefix.size(), FilePrefix) == 0)
    {
      result.files.emplace(name.substr(FilePrefix.size()), text);
    }
  }
  result.curves = UnpackedCurves(content.tensors.at(CurvesTensor), content.metadata.at(NamesEntry));
  result.divergence = content.metadata.at(DivergenceEntry);
  result.stopped = !content.metadata.at(StoppedEntry).empty();
  return result;
}

}
