#include "Matchers.h"
#include "Pictures.h"
#include "Preprocessing/PreprocessPicture.h"
#include "Transformers.h"
#include "Weights/ImageProcessor.h"

#include <vtkJPEGWriter.h>
#include <vtkPNGWriter.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr int Size = 32; ///< pixels of the oracle's images

int Noise(int x, int y, int channel)
{
  return (37 * x + 59 * y + 83 * channel + x * y) % 256;
}

int Smooth(int x, int y, int channel)
{
  return channel == 0 ? 7 * x : channel == 1 ? 7 * y : 20 + 3 * (x + y);
}

constexpr auto WritePng = &WritePicture<vtkPNGWriter>;
constexpr auto WriteJpeg = &WritePicture<vtkJPEGWriter>;

/// Writes pixel_values of one image.
void WriteValues(const std::filesystem::path& path, const std::vector<double>& values)
{
  WriteSafetensors(
    path, { { "pixel_values", Tensor::FromDouble(DType::F32, { 1, 3, Size, Size }, values) } }, {});
}

/// 2 v / 255 - 1 of each pixel.
std::vector<double> Normalized(const Pixels& pixels)
{
  std::vector<double> values;
  for (int channel = 0; channel < 3; ++channel)
  {
    for (int y = 0; y < Size; ++y)
    {
      for (int x = 0; x < Size; ++x)
      {
        const auto part = static_cast<float>(pixels(x, y, channel) / 255.0);
        values.push_back((part - 0.5F) / 0.5F);
      }
    }
  }
  return values;
}

/// A recording of pixel values as one of pictures that were read as Pillow reads them.
Recording ByPillow(Recording recording)
{
  EXPECT_EQ(recording.pixels, "");
  recording.pixels = "pillow";
  return recording;
}

/// The vision transformer of the oracle in a separate folder, for images.
class RecorderImages : public testing::Test
{
protected:
  void SetUp() override
  {
    for (const char* name : { "config.json", "model.safetensors" })
    {
      std::filesystem::create_symlink(TransformerOracle::Folder("vit") / name, this->Folder / name);
    }
    this->Vit.emplace(this->Folder.Path());
  }

  std::string File(const std::string& name) const { return this->Folder / name; }

  Recording Record(const std::vector<std::string>& names)
  {
    this->SetImages(names);
    return this->Vit->Record();
  }

  /// The single error for files with these names.
  std::string ErrorOf(const std::vector<std::string>& names)
  {
    this->SetImages(names);
    return this->Vit->Recorder.Error();
  }

  std::vector<std::string> TakeWarnings() { return this->Vit->Recorder.TakeWarnings(); }

  void SetImages(const std::vector<std::string>& names)
  {
    this->Vit->Recorder->ClearImages();
    for (const std::string& name : names)
    {
      this->Vit->Recorder->AddImage(this->File(name).c_str());
    }
  }

  TemporaryDirectory Folder;
  std::optional<Pipeline> Vit;
};

/// The queries of a head of the last layer: they see all pixels.
std::vector<double> Queries(const Recording& recording)
{
  const SharedMatrix& query = recording.layers.at(1).heads.at(2).query;
  const std::vector<float> rows = Rows(query, 0, query.rows);
  return { rows.begin(), rows.end() };
}

TEST_F(RecorderImages, APictureIsItsNormalizedPixels)
{
  WritePng(this->File("noise.png"), Size, Size, 3, Noise);
  WriteValues(this->File("noise.safetensors"), Normalized(Noise));
  const Recording found = this->Record({ "noise.png" });
  ExpectEqual(found, ByPillow(this->Record({ "noise.safetensors" })));
  EXPECT_EQ(found.tokens.Count(), 17);
  EXPECT_THAT(this->TakeWarnings(), IsEmpty());
}

/// Mean colors of patches as an independent program has them, and of a picture by hand.
TEST_F(RecorderImages, KeepsTheColorsOfPatches)
{
  const TransformerOracle oracle("vit");
  const std::filesystem::path folder = std::filesystem::path(ATLAS_ORACLE_DIR) / "embedding";
  const SafetensorsFile file(folder / "vit.views.safetensors");
  const std::vector<double> expected = file.GetTensors().at("patch.rgb").ToDouble();
  const Tensors pixels = CopyTensors({ { "pixel_values", oracle.Get("pixel_values") } });
  WriteSafetensors(this->File("oracle.safetensors"), pixels, {});
  const Recording recording = this->Record({ "oracle.safetensors" });
  const SharedMatrix& colors = recording.tokens.color;
  ASSERT_EQ(colors.columns, 3);
  for (const std::int64_t image : { 0, 1 })
  {
    EXPECT_THAT(Rows(colors, 17 * image, 1), ElementsAre(-1, -1, -1)); // its class token
    const auto begin = expected.begin() + 48 * image;
    ExpectClose(
      "colors", Rows(colors, 17 * image + 1, 16), std::vector<double>(begin, begin + 48), 1e-6);
  }
  WritePng(this->File("smooth.png"), Size, Size, 3, Smooth);
  const Recording smooth = this->Record({ "smooth.png" }); // patches of 8 x 8, linear in x and y
  ExpectClose("row 1, column 2", Rows(smooth.tokens.color, 1 + 4 + 2, 1),
    { 7 * 19.5 / 255, 7 * 11.5 / 255, (20 + 3 * 31.) / 255 }, 1e-6);
}

/// The pixels of a picture, and of pixel_values those that are nearest.
TEST_F(RecorderImages, KeepsThePictures)
{
  WritePng(this->File("noise.png"), Size, Size, 3, Noise);
  WriteValues(this->File("noise.safetensors"), Normalized(Noise));
  for (const char* name : { "noise.png", "noise.safetensors" })
  {
    const RecordedPictures pictures = this->Record({ name }).pictures;
    ASSERT_EQ(pictures.count, 1);
    ASSERT_EQ(pictures.BytesPerPicture(), 3U * Size * Size);
    for (int i = 0; i < 3 * Size * Size; ++i)
    {
      ASSERT_EQ(pictures.pixels.get()[i], Noise(i / 3 % Size, i / 3 / Size, i % 3)) << i;
    }
  }
  // Without pixels the file and a hash are kept, if it is a picture.
  this->Vit->Recorder->RecordPicturesOff();
  const RecordedPictures named = this->Record({ "noise.png" }).pictures;
  EXPECT_EQ(named.pixels, nullptr);
  ASSERT_EQ(named.sources.size(), 1U);
  EXPECT_EQ(named.sources[0].file, this->File("noise.png"));
  EXPECT_TRUE(this->Record({ "noise.safetensors" }).pictures.IsEmpty());
}

TEST_F(RecorderImages, PicturesAreABatch)
{
  WritePng(this->File("noise.png"), Size, Size, 3, Noise);
  WritePng(this->File("smooth.png"), Size, Size, 3, Smooth);
  const std::vector<double> noise = Queries(this->Record({ "noise.png" }));
  const std::vector<double> smooth = Queries(this->Record({ "smooth.png" }));
  const Recording batch = this->Record({ "smooth.png", "noise.png" });
  EXPECT_THAT(batch.sequenceOffsets, ElementsAre(0, 17, 34));
  std::vector<double> both = smooth;
  both.insert(both.end(), noise.begin(), noise.end());
  EXPECT_EQ(Queries(batch), both);
  EXPECT_NE(noise, smooth);
}

TEST_F(RecorderImages, LeavesTransparencyOutAndSaysSo)
{
  WritePng(this->File("rgba.png"), Size, Size, 4, Noise);
  WriteValues(this->File("rgb.safetensors"), Normalized(Noise));
  const Recording found = this->Record({ "rgba.png" });
  EXPECT_THAT(this->TakeWarnings(),
    ElementsAre(HasSubstr(this->File("rgba.png") + ": its transparency is ignored.")));
  ExpectEqual(found, ByPillow(this->Record({ "rgb.safetensors" })));

  const Pixels grayAlpha = [](int x, int y, int channel) { return Noise(x, y, 5 * channel); };
  WritePng(this->File("ga.png"), Size, Size, 2, grayAlpha);
  WriteValues(
    this->File("gray.safetensors"), Normalized([](int x, int y, int) { return Noise(x, y, 0); }));
  const Recording gray = this->Record({ "ga.png" });
  EXPECT_EQ(this->TakeWarnings().size(), 1U);
  ExpectEqual(gray, ByPillow(this->Record({ "gray.safetensors" })));
}

TEST_F(RecorderImages, ResizesAsTheFileBesideTheModelSays)
{
  WritePng(this->File("wide.png"), 50, 40, 3, Noise);
  Picture picture{ 40, 50, 255, {} };
  for (int i = 0; i < 3 * 40 * 50; ++i)
  {
    picture.pixels.push_back(static_cast<std::uint16_t>(Noise(i / 3 % 50, i / 150, i % 3)));
  }
  const auto expectPreprocessed = [&]()
  {
    const TransformerConfig config = ReadTransformerConfig(this->Folder / "config.json");
    const std::vector<float> values =
      Preprocess(picture, ReadImageProcessor(this->Folder.Path(), config));
    WriteValues(this->File("wide.safetensors"), { values.begin(), values.end() });
    ExpectEqual(this->Record({ "wide.png" }), ByPillow(this->Record({ "wide.safetensors" })));
  };
  expectPreprocessed();
  EXPECT_THAT(this->TakeWarnings(),
    ElementsAre(HasSubstr(
      this->File("wide.png") + ": its 50 x 40 pixels (width x height) are resized to 32 x 32.")));
  WriteBytes(this->File("preprocessor_config.json"),
    R"({"size": {"shortest_edge": 36}, "crop_size": 32, "do_center_crop": true, "resample": 3,
      "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})");
  expectPreprocessed();
  EXPECT_THAT(this->TakeWarnings(), ElementsAre(HasSubstr("are resized and cropped to 32 x 32.")));

  // Positions are interpolated for images of another size.
  WriteBytes(this->File("preprocessor_config.json"), R"({"size": 24})");
  this->Record({ "wide.png" });
  EXPECT_THAT(this->TakeWarnings(), ElementsAre(HasSubstr("are resized to 24 x 24.")));
  WriteBytes(this->File("preprocessor_config.json"), R"({"resample": 7})");
  EXPECT_THAT(this->ErrorOf({ "wide.png" }),
    HasSubstr(this->File("preprocessor_config.json") + ": unknown resample 7"));
}

TEST_F(RecorderImages, RefusesOtherFiles)
{
  WriteBytes(this->File("text.png"), "This is a text of some length, and not a picture.");
  EXPECT_THAT(this->ErrorOf({ "text.png" }),
    AllOf(HasSubstr("text.png: "), HasSubstr("It is not a PNG or JPEG image either")));
  WriteBytes(this->File("empty.png"), "");
  EXPECT_THAT(this->ErrorOf({ "empty.png" }), HasSubstr("empty.png: "));
  EXPECT_THAT(this->ErrorOf({ "none.png" }), HasSubstr("none.png: cannot open file"));

  WritePng(this->File("noise.png"), Size, Size, 3, Noise);
  WriteValues(this->File("values.safetensors"), Normalized(Noise));
  for (const std::vector<std::string>& names :
    { std::vector<std::string>{ "noise.png", "values.safetensors" },
      { "values.safetensors", "noise.png" }, { "values.safetensors", "values.safetensors" } })
  {
    EXPECT_THAT(this->ErrorOf(names),
      AllOf(HasSubstr("Images: expected PNG or JPEG images, or one file with pixel_values"),
        HasSubstr("found 2 files, of which " + this->File("values.safetensors"))));
  }
  Pipeline bert(TransformerOracle::Folder("bert"));
  bert.Recorder->AddImage(this->File("noise.png").c_str());
  EXPECT_THAT(
    bert.Recorder.Error(), HasSubstr("expected a model of images, found one of architecture bert"));
}

TEST_F(RecorderImages, RefusesPicturesOfManyScans)
{
  WriteJpeg(this->File("scans.jpg"), Size, Size, 3, Noise); // progressive
  const std::string bytes = ReadBytes(this->File("scans.jpg"));
  const std::size_t first = bytes.find("\xff\xda");
  const std::size_t second = bytes.find("\xff\xc4", first); // the next scan's table
  ASSERT_NE(second, std::string::npos);
  std::string many = bytes.substr(0, second);
  for (int i = 0; i < 200; ++i)
  {
    many += bytes.substr(first, second - first);
  }
  WriteBytes(this->File("many.jpg"), many + bytes.substr(second));
  EXPECT_THAT(this->ErrorOf({ "many.jpg" }),
    HasSubstr("many.jpg: cannot be read as JPEG: it has more than 200 scans."));
}

}
