#include "AttentionOnly/AttentionOnlyModel.h"
#include "Base/Error.h"
#include "Circuits/Circuit.h"
#include "Corpus/CorpusFile.h"
#include "Files/Safetensors.h"
#include "NumpyBytes.h"
#include "PictureBytes.h"
#include "PicturedRecording.h"
#include "Recording/RecordingFile.h"
#include "SeedWriter.h"
#include "TorchBytes.h"
#include "TranslatedRecording.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

// Writes the seeds of the fuzz targets: small files of every supported kind.

using namespace atlas;
using namespace atlas::test;

namespace
{

void WriteTensors(const SeedWriter& seeds)
{
  seeds.WriteSafetensorsSeed("empty", SafetensorsWith("{}", ""));
  Tensors tensors = { { "a", Numbers({ 2, 3 }) }, { "b", Numbers({}, DType::F64) },
    { "c", Numbers({ 0, 5 }) }, { "d", Integers({ 3 }, 3) } };
  for (const DType dtype :
    { DType::F16, DType::BF16, DType::I32, DType::I16, DType::I8, DType::U8, DType::BOOL })
  {
    tensors[std::string(Name(dtype))] = { dtype, { 2 },
      std::vector<std::byte>(2 * ByteSize(dtype), std::byte{ 1 }) };
  }
  seeds.WriteSafetensorsSeed("types", Safetensors(tensors, { { "format", "pt" }, { "", "\"" } }));
  seeds.WriteSafetensorsSeed(
    "unaligned", SafetensorsWith(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("b":{"dtype":"F32","shape":[1,2],"data_offsets":[1,9]}})",
                   "\x01" + FloatBytes({ 1, 2 })));
}

void WriteModels(const SeedWriter& seeds)
{
  Tensors native = { { "word_embedding", Numbers({ 3, 3 }) },
    { "position_embedding", Numbers({ 2, 3 }) }, { "unembedding", Numbers({ 3, 3 }) },
    { "next_token", Integers({ 3, 3 }, 3) } };
  for (const std::string head : { "heads.0.", "heads.1." })
  {
    for (const char* name : { "query", "key", "value" })
    {
      native[head + name] = Numbers({ 2, 3 });
    }
    native[head + "output"] = Numbers({ 3, 2 });
  }
  const Metadata version = { { "format", AttentionOnlyFormat }, { "version", "1" } };
  seeds.WriteSafetensorsSeed("native", Safetensors(native, version));
  Tensors published = { { "word_emb.weight", Numbers({ 2, 3 }, DType::F64) },
    { "pos_emb.weight", Numbers({ 2, 3 }) }, { "unemb.weight", Numbers({ 2, 3 }) },
    { "pi.2", Numbers({ 2, 2, 2 }) } };
  for (const char* name : { "q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight" })
  {
    published[std::string("attn_seq.0.0.") + name] = Numbers({ 3, 3 });
  }
  seeds.WriteSafetensorsSeed("published", Safetensors(published));
  seeds.WriteSafetensorsSeed("split", Safetensors(published, { { "nb_head", "3" } }));
  std::ifstream stream(ATLAS_DATA_DIR "/trained-n5-h3.safetensors", std::ios::binary);
  seeds.WriteSafetensorsSeed(
    "trained", { std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>() });
}

void WriteArrays(const SeedWriter& seeds)
{
  const std::string floats = FloatBytes({ 1, 2, 3, 4, 5, 6 });
  const std::string plain = NpyFile(NpyHeader("<f4", "(2, 3)"), floats);
  seeds.Write("ArrayFile",
    { { "plain.npy", plain },
      { "fortran.npy", NpyFile(NpyHeader("<f4", "(2, 3)", "True"), floats) },
      { "big.npy", NpyFile(NpyHeader(">u2", "(12,)"), floats) },
      { "unsigned.npy", NpyFile(NpyHeader("<u8", "(3, 1, 1)", "True"), floats) },
      { "bytes.npy", NpyFile(NpyHeader("|b1", "(24,)"), std::string(24, '\1')) },
      { "scalar.npy", NpyFile(NpyHeader("<f8", "()"), std::string(8, '\0')) },
      { "none.npy", NpyFile(NpyHeader("<i4", "(0, 4)"), "") },
      { "objects.npy", NpyFile(NpyHeader("|O", "(1,)"), "\x80\x04K\x01.") },
      { "pickle", "\x80\x04K\x01." },
      { "stored.npz", ZipFile({ { "a.npy", plain }, { "b.npy", plain } }) },
      { "deflated.npz", ZipFile({ { "a.npy", plain } }, true) }, { "none.npz", ZipFile({}) } });
}

/// Files without checksums, which mutations would make useless.
void WriteTorch(const SeedWriter& seeds)
{
  const std::string floats = FloatBytes({ 1, 2, 3, 4, 5, 6 });
  const auto tensors = [](bool legacy)
  {
    const auto tensor = [&](std::int64_t offset, const std::vector<std::int64_t>& shape,
                          const std::vector<std::int64_t>& stride)
    { return PickledTensor({ "0", 6, "FloatStorage", legacy }, offset, shape, stride); };
    const std::string parameter =
      PickledGlobal("torch._utils", "_rebuild_parameter") +
      PickledTuple({ tensor(1, { 2, 2 }, { 1, 2 }), "\x88", PickledOrderedDictionary() }) + "R";
    return PickledDictionary(
      { { "model", PickledOrderedDictionary() + "q" + '\0' + "(X" + LittleEndian(1, 4) + "a" +
                     tensor(0, { 2, 3 }, { 3, 1 }) + "X" + LittleEndian(1, 4) + "b" + parameter +
                     "u}b" },
        { "blocks", PickledList({ tensor(0, { 3, 2 }, { 0, 1 }), tensor(5, {}, {}) }) },
        { "step", PickledNumber(7) }, { "again", std::string("h") + '\0' },
        { "rate", "G" + std::string(8, '\1') }, { "none", "N" } });
  };
  for (const char* target : { "TorchFile", "ArrayFile" })
  {
    seeds.Write(target,
      { { "zip.pt", TorchZip(tensors(false), { { "0", floats } }, false) },
        { "legacy.pt", TorchLegacy(tensors(true), { { "0", floats } }) },
        { "array.pt", TorchZip(PickledTensor({ "1", 2, "BoolStorage", false }, 0, { 2 }, { 1 }),
                        { { "1", "\1\1" } }, false) },
        { "checked.pt", TorchZip("}", {}) } });
  }
}

/// Two sequences of two tokens and one, in a layer of two heads that share their keys.
Recording SmallRecording()
{
  const auto matrix = [](std::int64_t rows, std::int64_t columns)
  {
    SharedMatrix values = SharedMatrix::Zero(rows, columns);
    for (std::size_t i = 0; i < values.Count(); ++i)
    {
      values.values.get()[i] = static_cast<float>(i) / 4;
    }
    return values;
  };
  Recording recording;
  recording.architecture = "gpt2";
  recording.alibiSlopes = { 0.5, 0.25 };
  recording.layerCount = 1;
  recording.tokens.sequence = { 0, 0, 1 };
  recording.tokens.position = { 0, 1, 0 };
  recording.tokens.id = { 5, 6, 7 };
  recording.tokens.text = { "a", " b", "\n" };
  recording.sequenceOffsets = { 0, 2, 3 };
  RecordedHead head;
  head.query = matrix(3, 2);
  head.key = matrix(3, 2);
  head.value = matrix(3, 2);
  head.output = matrix(3, 4);
  head.valueNorm = matrix(3, 1);
  RecordedHead second = head;
  second.query = matrix(3, 2);
  recording.layers = { { 0, 0.5, { head, second } } };
  recording.residual = { matrix(3, 4), matrix(3, 4) };
  recording.logits = matrix(3, 8);
  return recording;
}

void WriteRecordings(const SeedWriter& seeds)
{
  const auto write = [&](const char* name, const Recording& recording)
  {
    std::ostringstream stream;
    WriteRecording(stream, recording);
    seeds.Write("Recording", name, stream.str());
  };
  write("native", SmallRecording());
  Recording variants = SmallRecording();
  variants.layers[0].scoreCap = 5;
  variants.layers[0].window = 1;
  variants.layers[0].sinks = { 0.5F, -1 };
  write("variants", variants);
  Recording routed = SmallRecording();
  routed.layers[0].routing = { 3, SharedMatrix::Zero(3, 2), SharedMatrix::Zero(3, 2) };
  write("routed", routed);
  write("translated", test::TranslatedRecording());
  write("pictured", test::PicturedRecording());
  Recording stored = SmallRecording();
  for (RecordedHead& head : stored.layers[0].heads)
  {
    head.query = head.key = {};
    head.weights = { SharedMatrix::Zero(2, 2), SharedMatrix::Zero(1, 1) };
    head.scores = head.weights;
  }
  write("stored", stored);
  Recording images = stored;
  images.tokens.id.clear();
  images.tokens.row = images.tokens.column = { -1, 0, 0 };
  images.pictures.count = images.pictures.height = images.pictures.width = 2;
  const std::shared_ptr<std::uint8_t[]> pixels(new std::uint8_t[24]());
  images.pictures.pixels = { pixels, pixels.get() };
  write("pictures", images);
  images.pictures.pixels = nullptr;
  images.pictures.sources = { { "a.png", "0" }, { "b.png", "1" } };
  images.pictures.processing = "{}";
  write("named", images);

  const auto tensors = [&](const char* name, const Tensors& values, const Metadata& metadata = {})
  { seeds.Write("Recording", name, Safetensors(values, metadata)); };
  tensors("old",
    { { "blocks.0.attn.hook_q", Numbers({ 1, 3, 2, 2 }) },
      { "blocks.0.attn.hook_k", Numbers({ 1, 3, 1, 2 }) },
      { "blocks.0.attn.hook_v", Numbers({ 1, 3, 1, 2 }) },
      { "blocks.0.attn.hook_rot_q", Numbers({ 1, 3, 2, 2 }) },
      { "blocks.0.attn.hook_rot_k", Numbers({ 1, 3, 1, 2 }) },
      { "blocks.0.attn.hook_pattern", Numbers({ 1, 2, 3, 3 }) },
      { "blocks.0.hook_resid_pre", Numbers({ 1, 3, 4 }) },
      { "blocks.0.hook_resid_post", Numbers({ 1, 3, 4 }) }, { "tokens", Integers({ 1, 3 }, 3) } });
  tensors("new",
    { { "blocks.0.attn.q.hook_out", Numbers({ 2, 2, 4 }) },
      { "blocks.0.attn.k.hook_out", Numbers({ 2, 2, 4 }) },
      { "blocks.0.attn.v.hook_out", Numbers({ 2, 2, 4 }) },
      { "blocks.0.hook_in", Numbers({ 2, 2, 4 }) }, { "blocks.0.hook_out", Numbers({ 2, 2, 4 }) },
      { "unembed.hook_out", Numbers({ 2, 2, 3 }) }, { "attention_mask", Integers({ 2, 2 }, 2) } },
    { { "n_heads", "2" }, { "mask", "bidirectional" } });
  tensors("heads-first",
    { { "layer.0.query", Numbers({ 1, 2, 3, 2 }) }, { "layer.0.key", Numbers({ 1, 2, 3, 2 }) },
      { "layer.0.value", Numbers({ 1, 2, 3, 2 }) },
      { "layer.0.head_output", Numbers({ 1, 2, 3, 4 }) },
      { "layer.0.scores", Numbers({ 1, 2, 3, 3 }) }, { "hidden.0", Numbers({ 1, 3, 4 }) },
      { "input_ids", Integers({ 1, 3 }, 9) }, { "token_type_ids", Integers({ 1, 3 }, 2) } },
    { { "score_scale", "0.5" }, { "tokens", R"([["a","b","c"]])" } });
  Tensor attention = Numbers({ 2, 1, 2, 3, 3 });
  for (std::size_t i = 0; i < 36; ++i)
  {
    const float weight = 1.0F / static_cast<float>(i % 3 + 1);
    std::memcpy(attention.bytes.data() + i * sizeof(float), &weight, sizeof(float));
  }
  tensors("attention", { { "attention", attention }, { "token_ids", Integers({ 1, 3 }, 3) } },
    { { "model", "gpt2" }, { "processing", "processed" } });
  seeds.Write("Recording", "array.npy",
    NpyFile(NpyHeader("<f4", "(1, 1, 2, 2)"), FloatBytes({ 1, 0, 0.5, 0.5 })));
  seeds.Write("Recording", "archive.npz",
    ZipFile({ { "scores.npy",
      NpyFile(NpyHeader("<f4", "(1, 1, 2, 2)"), FloatBytes({ 1, 0, 2, -3 })) } }));
}

void WritePictures(const SeedWriter& seeds)
{
  using namespace std::string_literals;
  seeds.Write("Picture",
    { { "png-rgb", PngFile(2, 2, 8, PngColor::Rgb, "\0\1\2\3\4\5\6\4\7\6\5\4\3\2"s) },
      { "png-gray",
        PngFile(9, 2, 1, PngColor::Gray, "\0\xA5\x80\2\1\1"s, PngChunk("tRNS", "\0\0"s)) },
      { "png-deep", PngFile(1, 2, 16, PngColor::Rgba, "\0"s + "12345678" + "\3" + "87654321",
                      PngChunk("gAMA", "\0\0\xB1\x8F"s) + PngChunk("tEXt", "Title\0x"s)) },
      { "png-palette", PngFile(3, 1, 4, PngColor::Palette, "\0\1\x10"s,
                         PngChunk("PLTE", "123456") + PngChunk("tRNS", "\0\1"s)) },
      { "jpeg-gray", JpegFile() }, { "jpeg-color", JpegFile(3) } });
}

void WriteProteins(const SeedWriter& seeds)
{
  const std::string position = "_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n";
  seeds.Write("Structure", "loop",
    "data_1ABC\n_struct.title 'of \"two\"' # atoms\n_struct.text\n;in\nlines\n;\nloop_\n" +
      position +
      "_atom_site.group_PDB\n_atom_site.label_atom_id\n_atom_site.auth_asym_id\n"
      "_atom_site.auth_seq_id\n_atom_site.label_seq_id\n"
      "1 2.5 -3e1 ATOM \"C1'\" A 27 1\n4 5 6(2) HETATM O B 101 .\nloop_\n_a.b\n1\n");
  seeds.Write("Structure", "single",
    "data_x\n_atom_site.Cartn_x 1\n_atom_site.Cartn_y 2\n_atom_site.Cartn_z 3\n");
  seeds.Write("Structure", "sequence",
    "data_x\nloop_\n_struct_asym.id\n_struct_asym.entity_id\nA 1\n"
    "loop_\n_entity_poly_seq.entity_id\n_entity_poly_seq.num\n1 1\n1 2\nloop_\n" +
      position +
      "_atom_site.label_asym_id\n_atom_site.label_seq_id\n_atom_site.pdbx_PDB_ins_code\n"
      "1 2 3 A 1 ?\n4 5 6 A 2 A\n7 8 9 W . ?\n");
  const std::string atoms =
    "ATOM      1  CA  GLY A  -1       1.000   2.000   3.000  1.00  0.00           C\n"
    "HETATM    2 SE   MSE A   0A      4.800   2.000   3.000  1.00  0.00          SE\n";
  seeds.Write("Structure", "pdb",
    "SEQRES   1 A    3  GLY MSE ALA\n" + atoms + "TER\n" +
      "HETATM    3  O   HOH A 301       7.000   2.000   3.000\nEND\n");
  seeds.Write("Structure", "models", "MODEL 1\n" + atoms + "ENDMDL\nMODEL 2\n" + atoms);
}

void WriteImageProcessors(const SeedWriter& seeds)
{
  seeds.Write("ImageProcessor",
    { { "empty", "{}" },
      { "vit",
        R"({"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5], )"
        R"("image_std": [0.5, 0.5, 0.5], "resample": 2, "size": {"height": 4, "width": 6}})" },
      { "older", R"({"do_rescale": false, "do_normalize": false, "resample": 0, "size": [4, 6]})" },
      { "cropped", R"({"do_center_crop": true, "crop_size": {"height": 4, "width": 6}, )"
                   R"("resample": 3, "rescale_factor": 0.00392156862745098, )"
                   R"("size": {"shortest_edge": 7}, "image_mean": 0.5, "image_std": 0.25})" },
      { "kept", R"({"do_resize": false, "do_center_crop": true, "crop_size": [4, 6], )"
                R"("do_pad": false, "offset": null})" } });
}

void WriteVisionProcessors(const SeedWriter& seeds)
{
  seeds.Write("VisionProcessor",
    { { "empty", "{}" },
      { "llava", R"({"image_processor_type": "CLIPImageProcessor", "do_center_crop": true, )"
                 R"("crop_size": 12, "size": {"shortest_edge": 14}, "resample": 3})" },
      { "padded", R"({"image_processor_type": "LlavaImageProcessor", "do_pad": true, )"
                  R"("do_center_crop": false, "size": 12, "image_mean": [0.5, 0.25, 1]})" },
      { "film", R"({"video_processor_type": "Qwen2VLVideoProcessor", "min_pixels": 64, )"
                R"("max_pixels": 512, "patch_size": 4})" },
      { "internvl", R"({"image_processor_type": "GotOcr2ImageProcessorFast", "min_patches": 2, )"
                    R"("max_patches": 6, "size": {"height": 16, "width": 16}})" },
      { "smolvlm", R"({"image_processor_type": "SmolVLMImageProcessor", "do_pad": true, )"
                   R"("do_image_splitting": true, "size": {"longest_edge": 48}, )"
                   R"("max_image_size": {"longest_edge": 16}, "image_std": 0.5})" },
      { "qwen", R"({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 64, )"
                R"("max_pixels": 512, "patch_size": 4, "merge_size": 2, )"
                R"("temporal_patch_size": 2})" },
      { "nested", R"({"image_processor": {"size": {"shortest_edge": 64, "longest_edge": 512}}})" },
      { "recorded", R"({"image_processor_type": "GotOcr2ImageProcessor", "model_size": [16, 16], )"
                    R"("size": [16, 16], "max_patches": 3})" } });
}

/// Statistics of a text of three kinds of tokens, of two heads.
CorpusStatistics SmallStatistics(bool hasValues)
{
  CorpusStatistics statistics;
  statistics.model = "model/config.json";
  statistics.fingerprint = { "0123456789abcdef", "fedcba9876543210" };
  statistics.textHashes = { 7 };
  statistics.sizes = { 40 };
  statistics.options.window = 4;
  statistics.options.overlap = 1;
  statistics.options.layers = { 1 };
  statistics.options.contexts = 2;
  statistics.options.samples = 2;
  statistics.options.sampleValues = hasValues;
  statistics.headDimension = 2;
  statistics.valueDimension = hasValues ? 2 : 0;
  statistics.hasLogits = hasValues;
  statistics.hasAlibi = !hasValues;
  statistics.places = { { 1, 0 }, { 1, 1 } };
  statistics.ids = { 0, 5, 9 };
  statistics.texts = { "a", " b", "\xE2\x82\xAC" };
  statistics.occurrences = { 2, 1, 1 };
  statistics.documents = 1;
  statistics.windows = 2;
  statistics.tokens = 4;
  statistics.next = { 0, 0, 0, 4, 4 };
  statistics.heads.resize(2);
  for (CorpusHead& head : statistics.heads)
  {
    head.scoreScale = 0.5;
    head.counts.fill(4);
    head.distances.resize(4);
    for (const auto moment : { &CorpusHead::queryMoment, &CorpusHead::keyMoment })
    {
      (head.*moment).resize(4);
      (head.*moment)[0].Add(2.5);
      (head.*moment)[3].Add(1.5);
    }
    head.keySum.resize(2);
    if (hasValues)
    {
      head.valueMoment.resize(4);
      head.valueSum.resize(2);
    }
    head.tokens.resize(3);
    head.tokens[1].to.Add(0.25);
    head.sums[0].Add(3.75);
    head.distances[1].Add(0.5);
    head.histograms[0][3] = 4;
    head.sketches[0].Add(0.125);
    head.contexts[0] = { { 1.5F, 0, 0, 2, 1, { 0, 5, 9 } } };
    head.contexts[1] = { { 0.75F, 0, 0, 1, 1, { 0, 5 } }, { 0.5F, 0, 3, 1, 0, { 9, 0 } } };
  }
  statistics.products.resize(4);
  statistics.products[0].Add(1);
  statistics.products[3].Add(2);
  for (const std::uint64_t order : { 3U, 8U })
  {
    CorpusSample sample = { order, 0, 1, 5, { 1, 2, 3, 4 }, { 4, 3, 2, 1 }, {} };
    sample.values.resize(hasValues ? 4 : 0);
    statistics.samples.push_back(sample);
  }
  return statistics;
}

void WriteCorpora(const SeedWriter& seeds)
{
  const auto write = [&](const char* name, const CorpusStatistics& statistics)
  {
    const std::vector<char> bytes = CorpusToBytes(statistics);
    seeds.Write("Corpus", name, { bytes.begin(), bytes.end() });
  };
  write("plain", SmallStatistics(false));
  write("values", SmallStatistics(true));
  CorpusStatistics featured = SmallStatistics(false);
  featured.dictionary = "blocks.1.attn.hook_z, 2 features, 0123456789abcdef";
  featured.features.resize(2);
  featured.featureTokens = 4;
  featured.features[1].active = 3;
  featured.features[1].contexts = featured.heads[0].contexts[1];
  write("featured", featured);
  CorpusStatistics older = SmallStatistics(false);
  older.fingerprint = {};
  older.texts.clear();
  older.products.clear();
  older.options.agreement = false;
  older.precision = ProductPrecision::Bfloat16;
  write("older", older);
}

void WriteCircuits(const SeedWriter& seeds)
{
  CircuitShape shape;
  shape.architecture = "gpt2";
  shape.layers = 2;
  shape.heads = 2;
  std::vector<CircuitEdge> edges = CircuitEdges(shape);
  edges.back().effect = -0.25;
  seeds.Write("Circuit", { { "edges", ToJson(MakeCircuit(shape, { 1 }, edges)) },
                           { "nodes", ToJson(MakeCircuit(shape, { 0, 3 }, {})) } });
  shape.mlps = CircuitMlps::None;
  seeds.Write("Circuit", "heads", ToJson(MakeCircuit(shape, {}, { { 1, 3, EdgeInput::Key, 1 } })));
}

/// Dictionaries of each kind, of SAELens 6 and of before, for vectors of 4 components.
void WriteDictionaries(const SeedWriter& seeds)
{
  const auto write = [&](const char* name, const std::string& settings, const Tensors& more)
  {
    Tensors tensors = { { "W_enc", Numbers({ 4, 6 }) }, { "W_dec", Numbers({ 6, 4 }) },
      { "b_dec", Numbers({ 4 }) } };
    tensors.insert(more.begin(), more.end());
    seeds.Write("Dictionary", name, settings + std::string(1, '\0') + Safetensors(tensors));
  };
  const auto vector = [](const char* name, DType dtype = DType::F32)
  { return Tensors{ { name, Numbers({ 6 }, dtype) } }; };
  write("standard",
    R"({"architecture": "standard", "d_in": 4, "d_sae": 6, "normalize_activations": "layer_norm", )"
    R"("metadata": {"hook_name": "blocks.0.hook_resid_post", )"
    R"("model_from_pretrained_kwargs": {"center_writing_weights": true}}})",
    vector("b_enc", DType::F64));
  write("older",
    R"({"hook_point": "blocks.1.hook_attn_out", "activation_fn_str": "topk", )"
    R"("activation_fn_kwargs": {"k": 2}, "normalize_activations": "constant_norm_rescale"})",
    vector("b_enc"));
  write("topk",
    R"({"architecture": "topk", "k": 3, "rescale_acts_by_decoder_norm": true, )"
    R"("apply_b_dec_to_input": false, "metadata": {"hook_name": "blocks.0.attn.hook_z"}})",
    vector("b_enc"));
  Tensors thresholds = vector("b_enc");
  thresholds.merge(vector("threshold", DType::F64));
  write("jumprelu", R"({"architecture": "jumprelu", "hook_name": "blocks.2.hook_resid_pre"})",
    thresholds);
  Tensors gates = vector("b_gate");
  gates.merge(vector("b_mag"));
  gates.merge(vector("r_mag", DType::F64));
  write("gated", R"({"architecture": "gated", "hook_name": "blocks.0.hook_resid_mid"})", gates);
}

void WriteShardIndices(const SeedWriter& seeds)
{
  seeds.Write("ShardIndex",
    { { "both", R"({"metadata": {"total_size": 24}, "weight_map": {"x": "a.safetensors", )"
                R"("y": "a.safetensors", "z": "b.safetensors"}})" },
      { "one", R"({"weight_map": {"x": "a.safetensors"}})" }, { "none", R"({"weight_map": {}})" },
      { "missing", R"({"weight_map": {"z": "a.safetensors", "c": "c"}})" } });
}

}

int main(int argc, char** argv)
{
  if (argc != 2)
  {
    std::fprintf(stderr, "Usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  try
  {
    const SeedWriter seeds(argv[1]);
    WriteTensors(seeds);
    WriteModels(seeds);
    WriteArrays(seeds);
    WriteTorch(seeds);
    WriteRecordings(seeds);
    WriteModelSeeds(seeds);
    WritePictures(seeds);
    WriteProteins(seeds);
    WriteImageProcessors(seeds);
    WriteVisionProcessors(seeds);
    WriteCorpora(seeds);
    WriteShardIndices(seeds);
    WriteCircuits(seeds);
    WriteDictionaries(seeds);
  }
  catch (const std::exception& e)
  {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
