#include "ColorPictureDrawing.h"
#include "Preprocessing/PreprocessPicture.h"
#include "SequenceTask.h"
#include "Tasks.h"
#include "Weights/ImageProcessor.h"

#include <array>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::int64_t PatchSide = 4;
constexpr std::int64_t Patches = (ColorPictureSide / PatchSide) * (ColorPictureSide / PatchSide);

/// Pictures of 32 x 32 pixels, in patches of 4 x 4, whose class is what they show: gradients of hue
/// or brightness, stripes, or shapes (DrawColorPicture). A small ViT learns them; the target is at
/// the class token.
///
/// Measures, on 200 held-out pictures: Hue, Brightness, Stripes and Shapes, the accuracy on each
/// group of classes.
class ColorPatchesTask : public SequenceTask
{
public:
  explicit ColorPatchesTask(const TaskOptions& options)
    : SequenceTask(options, HeldOutPictures)
  {
    ThrowIf<OptionError>(options.vocabulary != 0,
      "Vocabulary: expected 0, as images have no token ids, found ", options.vocabulary, ".");
    RequireFixed("Context", options.context, Patches + 1);
    TransformerConfig config;
    ColorPatchesTask::Configure(config);
    this->Processor = DefaultImageProcessor(config);
  }

  void Configure(TransformerConfig& config) const override
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

  std::vector<std::string> MeasureNames() const override
  {
    return { "Hue", "Brightness", "Stripes", "Shapes" };
  }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TrainingBatch batch = this->MakeHeldOut();
    const BatchEvaluation evaluation = EvaluateBatch(model, batch, threads);
    constexpr std::array<std::int64_t, 5> groups = { 0, 2, 4, 7, 10 }; // their first classes, end
    std::vector<double> shares;
    for (std::size_t g = 0; g + 1 < groups.size(); ++g)
    {
      shares.push_back(ShareRight(batch, evaluation.predicted,
        [&](std::int64_t target) { return target >= groups[g] && target < groups[g + 1]; }));
    }
    return shares;
  }

  std::map<std::string, std::string> Files() const override
  {
    return { { ImageProcessorFile, ToJson(this->Processor) } };
  }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t /*step*/,
    std::int64_t index) const override
  {
    ColorPicture drawn = DrawColorPicture(random, index);
    const std::vector<float> pixels = Preprocess(std::move(drawn.picture), this->Processor);
    batch.input.pixels.insert(batch.input.pixels.end(), pixels.begin(), pixels.end());
    ++batch.input.images;
    batch.targets.push_back(drawn.label);
    batch.targets.resize(batch.targets.size() + Patches, -1);
  }

private:
  ImageProcessor Processor;
};

}

std::unique_ptr<LearningTask> MakeColorPatchesTask(const TaskOptions& options)
{
  return std::make_unique<ColorPatchesTask>(options);
}

}
