#pragma once

// What several fuzz targets do.

#include "Files/PictureFile.h"
#include "Files/Tensor.h"
#include "FuzzTarget.h"
#include "Text/Tokenizer.h"

namespace atlas::fuzz
{

/// A picture that is no square.
inline Picture SmallPicture()
{
  Picture picture;
  picture.height = 5;
  picture.width = 3;
  for (std::uint16_t i = 0; i < 45; ++i)
  {
    picture.pixels.push_back(static_cast<std::uint16_t>(5 * i));
  }
  return picture;
}

/// Reads every number of tensors, as a whole and in part.
inline void UseTensors(const TensorViews& tensors)
{
  for (const auto& [name, view] : tensors)
  {
    Require(view.ToDouble().size() == view.Count(), "as many numbers as the shape says");
    Use([&tensor = view] { tensor.ToInteger(); });
    std::vector<float> floats(view.Count());
    for (const std::size_t begin : { std::size_t{ 0 }, floats.size() / 3 })
    {
      Use([&, &tensor = view] { tensor.ToFloat(begin, floats.size() - begin, floats.data()); });
    }
  }
}

/// Checks what a tokenizer made of a text, and decodes it.
inline void UseEncoding(const Tokenizer& tokenizer, const Encoding& encoding)
{
  Require(
    encoding.tokens.size() == encoding.ids.size() && encoding.types.size() == encoding.ids.size(),
    "lists of one length");
  for (const std::int64_t id : encoding.ids)
  {
    Require(id >= 0 && id < tokenizer.VocabularySize(), "an id of the vocabulary");
  }
  tokenizer.Decode(encoding.ids);
}

}
