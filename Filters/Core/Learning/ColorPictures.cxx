#include "ColorPictures.h"

#include "ColorPictureDrawing.h"

namespace atlas
{

std::vector<ColorPicture> HeldOutColorPictures(std::uint64_t seed)
{
  LearningRandom random(seed, RandomPurpose::HeldOut);
  std::vector<ColorPicture> pictures;
  for (std::int64_t i = 0; i < HeldOutPictures; ++i)
  {
    pictures.push_back(DrawColorPicture(random, i));
  }
  return pictures;
}

}
