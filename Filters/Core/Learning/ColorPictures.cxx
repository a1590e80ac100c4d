#include "ColorPictures.h"

#include "ColorPictureDrawing.h"
#include "Index.h"

namespace atlas
{

std::vector<ColorPicture> HeldOutColorPictures(std::uint64_t seed)
{
  LearningRandom random(seed, RandomPurpose::HeldOut);
  std::vector<ColorPicture> pictures;
  pictures.reserve(HeldOutPictures);
  for (std::int64_t i = 0; i < HeldOutPictures; ++i)
  {
    pictures.push_back(DrawColorPicture(random, i));
  }
  return pictures;
}

}
