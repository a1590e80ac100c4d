#include "ColorPatchesTask.h"

#include "ColorPictureDrawing.h"
#include "ImageProcessor.h"
#include "Index.h"

#include <array>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::int64_t PatchSide = 4;
constexpr std::int64_t Patches = (ColorPictureSide / PatchSide) * (ColorPictureSide / PatchSide);

/// Consecutive classes whose accuracy is measured together.
struct ClassGroup
{
  const char* name;
  std::int64_t first;
  std::int64_t end;
};
constexpr std::array<ClassGroup, 4> Groups = { { { "Hue", 0, 2 }, { "Brightness", 2, 4 },
  { "Stripes", 4, 7 }, { "Shapes", 7, 10 } } };

class ColorPatchesTask : public SequenceTask
{
public:
  explicit ColorPatchesTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutPictures)
  {
    RequireNoVocabulary(options, "ColorPatches");
    RequireFixed("Context", options.context, Patches + 1);
    TransformerConfig config;
    this->SetSizes(config);
    this->Processor = DefaultImageProcessor(config);
  }

  void Configure(TransformerConfig& config) const override { this->SetSizes(config); }

  std::vector<std::string> MeasureNames() const override
  {
    std::vector<std::string> names;
    names.reserve(Groups.size());
    for (const ClassGroup& group : Groups)
    {
      names.emplace_back(group.name);
    }
    return names;
  }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TrainingBatch batch = this->MakeHeldOut();
    const BatchEvaluation evaluation = EvaluateBatch(model, batch, threads);
    std::vector<double> shares;
    shares.reserve(Groups.size());
    for (const ClassGroup& group : Groups)
    {
      shares.push_back(ShareRight(evaluation, batch, [&](std::size_t row)
        { return batch.targets[row] >= group.first && batch.targets[row] < group.end; }));
    }
    return shares;
  }

  std::map<std::string, std::string> Files() const override
  {
    return { { ImageProcessorFile, ToJson(this->Processor) } };
  }

  std::vector<std::string> Labels() const override { return ColorPictureNames(); }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t index) const override
  {
    ColorPicture drawn = DrawColorPicture(random, index);
    const std::vector<float> pixels = Preprocess(std::move(drawn.picture), this->Processor);
    batch.input.pixels.insert(batch.input.pixels.end(), pixels.begin(), pixels.end());
    ++batch.input.images;
    batch.targets.push_back(drawn.label);
    batch.targets.insert(batch.targets.end(), ToIndex(Patches), -1);
  }

private:
  ImageProcessor Processor;

  static void SetSizes(TransformerConfig& config)
  {
    config.input = InputKind::Images;
    config.vocabulary = 0;
    config.outputVocabulary = static_cast<std::int64_t>(ColorPictureNames().size());
    config.positions = Patches + 1;
    config.imageHeight = config.imageWidth = ColorPictureSide;
    config.patchHeight = config.patchWidth = PatchSide;
    config.channels = 3;
    config.mask = AttentionMask::Bidirectional;
  }
};

}

std::unique_ptr<LearningTask> MakeColorPatchesTask(const TaskOptions& options)
{
  return std::make_unique<ColorPatchesTask>(options);
}

}
