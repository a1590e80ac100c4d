#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/TextEnds.h"
#include "Files/Dequantize.h"
#include "Files/JsonText.h"
#include "Files/PackedNumbers.h"
#include "Quantization.h"
#include "Weights/TransformerWeights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The numbers that 4 bits of MXFP4 and NVFP4 stand for (OCP Microscaling Formats 1.0).
std::vector<float> SmallFloats()
{
  return { 0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.F, -0.5F, -1, -1.5F, -2, -3, -4, -6 };
}

/// The numbers that bytes stand for: signed integers, or floats.
std::vector<float> ByteValues(DType dtype)
{
  std::vector<float> values(256);
  for (unsigned byte = 0; byte < values.size(); ++byte)
  {
    const auto bits = static_cast<std::uint8_t>(byte);
    values[byte] = IsFloatOfByte(dtype) ? WidenByte(dtype, bits)
                                        : static_cast<float>(static_cast<std::int8_t>(bits));
  }
  return values;
}

std::int64_t Quotient(std::int64_t count, std::int64_t block)
{
  return (count + block - 1) / block;
}

/// Replaces the tensors of quantized weights.
class Unpacker
{
public:
  Unpacker(const Quantization& quantization, WeightFiles& files)
    : How(quantization)
    , Files(files)
  {
  }

  void Unpack()
  {
    using Method = Quantization::Method;
    switch (this->How.method)
    {
      case Method::None:
        return;
      case Method::Mxfp4:
        this->ForEach("_blocks", [this](const std::string& name) { this->UnpackMxfp4(name); });
        break;
      case Method::Gptq:
        this->ForEach(".qweight", [this](const std::string& name) { this->UnpackGptq(name); });
        break;
      case Method::Awq:
        this->ForEach(".qweight", [this](const std::string& name) { this->UnpackAwq(name); });
        break;
      case Method::CompressedTensors:
        this->ForEach(
          ".weight_packed", [this](const std::string& name) { this->UnpackWords(name); });
        this->ForEach(
          ".weight_scale", [this](const std::string& name) { this->UnpackBytes(name); });
        break;
      case Method::Fp8:
        for (const char* end : { ".weight_scale_inv", ".weight_scale" })
        {
          this->ForEach(end, [this](const std::string& name) { this->UnpackBytes(name); });
        }
        this->ForEach("_scale_inv", [this](const std::string& name) { this->UnpackExperts(name); });
        break;
      case Method::Bitsandbytes:
        for (const std::string type : { "nf4", "fp4" })
        {
          this->ForEach(".quant_state.bitsandbytes__" + type,
            [&](const std::string& name) { this->UnpackBlocks(name, type); });
        }
        this->ForEach(".SCB", [this](const std::string& name) { this->UnpackVectors(name); });
        break;
      case Method::Mlx:
        this->ForEach(".scales", [this](const std::string& name) { this->UnpackMlx(name); });
        this->ForEach(".weight", [this](const std::string& name) { this->SplitExperts(name); });
        break;
    }
    this->RequireScales();
    for (const char* end : { ".activation_scale", ".input_global_scale", ".input_scale",
           ".input_zero_point", ".k_scale", ".output_scale", ".q_scale", ".v_scale" })
    {
      this->ForEach(end, [this, end](const std::string& name) { this->Files.Remove(name + end); });
    }
  }

private:
  const Quantization& How;
  WeightFiles& Files;

  template<class... Parts>
  [[noreturn]] void Fail(const std::string& tensor, const Parts&... message) const
  {
    throw ModelError(this->Files.FileOf(tensor), ": tensor '", tensor, "': ", message...);
  }

  /// Floats of 8 bits have no meaning without their scales.
  void RequireScales() const
  {
    for (const auto& [name, view] : this->Files.GetTensors())
    {
      if (IsFloatOfByte(view.dtype))
      {
        this->Fail(
          name, "expected its scale as '", name, "_scale_inv' or '", name, "_scale', found none.");
      }
    }
  }

  /// Calls `call` with what is before `end` in the name of each tensor that ends so.
  template<class Call>
  void ForEach(const std::string& end, const Call& call)
  {
    std::vector<std::string> names;
    for (const auto& [name, view] : this->Files.GetTensors())
    {
      if (EndsWith(name, end))
      {
        names.push_back(name.substr(0, name.size() - end.size()));
      }
    }
    for (const std::string& name : names)
    {
      call(name);
    }
  }

  const TensorView* Find(const std::string& name) const
  {
    const auto found = this->Files.GetTensors().find(name);
    return found == this->Files.GetTensors().end() ? nullptr : &found->second;
  }

  const TensorView& Get(const std::string& name, const std::string& beside) const
  {
    const TensorView* found = this->Find(name);
    if (found == nullptr)
    {
      this->Fail(name, "expected it beside '", beside, "', found none.");
    }
    return *found;
  }

  /// A tensor of one of these types and of this shape.
  const TensorView& Get(const std::string& name, const std::string& beside,
    const std::vector<DType>& types, const Shape& shape) const
  {
    const TensorView& view = this->Get(name, beside);
    const bool isOfType = std::find(types.begin(), types.end(), view.dtype) != types.end();
    if (!isOfType || view.shape != shape)
    {
      this->FailShape(name, types, shape);
    }
    return view;
  }

  [[noreturn]] void FailShape(
    const std::string& name, const std::vector<DType>& types, const Shape& shape) const
  {
    const TensorView& view = *this->Find(name);
    this->Fail(name, "expected ",
      Joined(
        types, [](DType type) { return Name(type); }, " or "),
      " of shape ", ToString(shape), ", found ", Name(view.dtype), " of shape ",
      ToString(view.shape), ".");
  }

  /// A matrix of words, whose sizes tell those of the weight.
  const TensorView& GetWords(const std::string& name, DType type, std::size_t axes = 2) const
  {
    const TensorView& view = *this->Find(name);
    if (view.dtype != type || view.shape.size() != axes || view.Count() == 0)
    {
      this->Fail(name, "expected ", Name(type), " of ", axes, " axes, found ", Name(view.dtype),
        " of shape ", ToString(view.shape), ".");
    }
    return view;
  }

  /// Floats of this shape.
  const TensorView& GetFloats(
    const std::string& name, const std::string& beside, const Shape& shape) const
  {
    return this->Get(name, beside, FloatTypes(), shape);
  }

  static std::vector<DType> FloatTypes()
  {
    return { DType::F32, DType::F16, DType::BF16, DType::F64 };
  }

  /// What stands in the place of these tensors.
  void Put(const std::string& weight, PackedNumbers numbers, Shape shape,
    const std::vector<std::string>& instead)
  {
    const std::string origin = this->Files.FileOf(instead.front());
    for (const std::string& name : instead)
    {
      this->Files.Remove(name);
    }
    this->Files.Set(weight, ViewOf(std::move(numbers), std::move(shape)), origin);
  }

  /// Zeros of each row and block, in words that have them along the rows of the matrix.
  static TensorView ZerosOf(const PackedNumbers& numbers, const PackedCodes& codes,
    std::vector<float> values, float base = 0)
  {
    PackedNumbers zeros;
    zeros.rows = codes.stride == 0 ? 1 : numbers.rows; // one for all rows
    zeros.columns = numbers.blocks;
    zeros.blockColumns = numbers.blocks;
    zeros.codes = codes;
    zeros.values = std::move(values);
    zeros.base = base;
    const Shape shape = { zeros.rows, numbers.blocks };
    return ViewOf(std::move(zeros), shape);
  }

  void UnpackMxfp4(const std::string& name)
  {
    const std::string blocks = name + "_blocks";
    const TensorView& words = this->GetWords(blocks, DType::U8, 4);
    const Shape& shape = words.shape; // experts, outputs, blocks, bytes
    constexpr std::int64_t bytes = 16;
    if (shape[3] != bytes)
    {
      this->Fail(
        blocks, "expected blocks of ", bytes, " bytes, found the shape ", ToString(shape), ".");
    }
    PackedNumbers numbers;
    numbers.name = "MXFP4";
    numbers.rows = shape[0] * shape[1];
    numbers.columns = shape[2] * 2 * bytes;
    numbers.codes = { words.data, 4, 1, true, 1, shape[2] * bytes };
    numbers.values = SmallFloats();
    numbers.blockColumns = 2 * bytes;
    numbers.blocks = shape[2];
    const Shape scales = { shape[0], shape[1], shape[2] };
    numbers.scales = this->Get(name + "_scales", blocks, { DType::U8, DType::F8_E8M0 }, scales);
    numbers.scales.dtype = DType::F8_E8M0;
    const Shape whole = { shape[0], shape[1], numbers.columns };
    this->Put(name, std::move(numbers), whole, { blocks, name + "_scales" });
  }

  /// The columns of each block, and those of which each is a part if they do not follow each other.
  void SetGroups(PackedNumbers& numbers, const std::string& index, std::int64_t group) const
  {
    numbers.blockColumns = group > 0 ? group : numbers.columns;
    const TensorView* view = this->Find(index);
    if (view == nullptr)
    {
      return;
    }
    if (view->dtype != DType::I32 || view->shape != Shape{ numbers.columns })
    {
      this->FailShape(index, { DType::I32 }, { numbers.columns });
    }
    numbers.group.resize(static_cast<std::size_t>(numbers.columns));
    bool isInOrder = true;
    for (std::int64_t i = 0; i < numbers.columns; ++i)
    {
      const auto block = LoadElement<std::int32_t>(view->data, static_cast<std::uint64_t>(i));
      if (block < 0 || block >= numbers.blocks)
      {
        this->Fail(index, "expected groups from 0 to ", numbers.blocks - 1, ", found ", block, ".");
      }
      numbers.group[static_cast<std::size_t>(i)] = block;
      isInOrder = isInOrder && block == i / numbers.blockColumns;
    }
    if (isInOrder)
    {
      numbers.group.clear();
    }
  }

  void UnpackGptq(const std::string& module)
  {
    const std::string name = module + ".qweight";
    const TensorView& words = this->GetWords(name, DType::I32); // [inputs * bits / 32, outputs]
    const std::int64_t bits = this->How.sizes.bits;
    const std::int64_t group = this->How.sizes.group;
    const std::int64_t outputs = words.shape[1];
    if (words.shape[0] * 32 % bits != 0)
    {
      this->Fail(name, "expected rows of whole numbers of ", bits, " bits, found the shape ",
        ToString(words.shape), ".");
    }
    PackedNumbers numbers;
    numbers.name = "GPTQ, " + std::to_string(bits) + " bits";
    numbers.rows = outputs;
    numbers.columns = words.shape[0] * 32 / bits;
    numbers.blocks = group > 0 ? Quotient(numbers.columns, group) : 1;
    numbers.codes = { words.data, bits, 4, true, outputs, 1 };
    numbers.scales = this->GetFloats(module + ".scales", name, { numbers.blocks, outputs });
    numbers.scalesAreByColumn = true;
    if (this->How.reordersColumns && group > 0 && this->Find(module + ".g_idx") == nullptr)
    {
      this->Fail(name, "expected '", module, ".g_idx', since desc_act is true, found none.");
    }
    this->SetGroups(numbers, module + ".g_idx", group);
    const std::int64_t zeroWords = Quotient(outputs * bits, 32);
    const TensorView& zeros =
      this->Get(module + ".qzeros", name, { DType::I32 }, { numbers.blocks, zeroWords });
    // Those that are stored are one less, as many bits as they have.
    std::vector<float> values(std::size_t{ 1 } << static_cast<unsigned>(bits));
    for (std::size_t code = 0; code < values.size(); ++code)
    {
      const std::size_t zero = this->How.zerosAreOneLess ? (code + 1) % values.size() : code;
      values[code] = static_cast<float>(zero);
    }
    numbers.zeros = ZerosOf(numbers, { zeros.data, bits, 4, false, 1, zeroWords }, values);
    const Shape shape = { outputs, numbers.columns };
    this->Put(module + ".weight", std::move(numbers), shape,
      { name, module + ".qzeros", module + ".scales", module + ".g_idx" });
  }

  void UnpackAwq(const std::string& module)
  {
    const std::string name = module + ".qweight";
    const TensorView& words = this->GetWords(name, DType::I32); // [inputs, outputs / 8]
    constexpr std::int64_t wordCodes = 8;
    const std::int64_t group = this->How.sizes.group;
    PackedNumbers numbers;
    numbers.name = "AWQ, 4 bits";
    numbers.rows = words.shape[1] * wordCodes;
    numbers.columns = words.shape[0];
    numbers.blocks = group > 0 ? Quotient(numbers.columns, group) : 1;
    numbers.blockColumns = group > 0 ? group : numbers.columns;
    numbers.codes = { words.data, 4, 4, false, 1, words.shape[1], PackedCodes::Order::Awq };
    numbers.scales = this->GetFloats(module + ".scales", name, { numbers.blocks, numbers.rows });
    numbers.scalesAreByColumn = true;
    PackedCodes zeros = numbers.codes;
    zeros.data =
      this->Get(module + ".qzeros", name, { DType::I32 }, { numbers.blocks, words.shape[1] }).data;
    numbers.zeros = ZerosOf(numbers, zeros, {});
    const Shape shape = { numbers.rows, numbers.columns };
    this->Put(module + ".weight", std::move(numbers), shape,
      { name, module + ".qzeros", module + ".scales" });
  }

  /// Scales of compressed-tensors and FP8: one, one per row, or one per block of rows and columns.
  void SetScales(PackedNumbers& numbers, const std::string& name, const std::string& beside) const
  {
    const TensorView& view = this->Get(name, beside);
    const bool isOne = view.Count() == 1;
    const bool isPerRow =
      view.shape == Shape{ numbers.rows } || view.shape == Shape{ numbers.rows, 1 };
    const bool isMixed = this->How.kinds.size() > 1; // other modules may have the blocks
    if (!this->How.block.empty() && !(isMixed && (isOne || isPerRow)))
    {
      numbers.blockRows = this->How.block[0];
      numbers.blockColumns = this->How.block[1];
      numbers.blocks = Quotient(numbers.columns, numbers.blockColumns);
      const Shape shape = { Quotient(numbers.rows, numbers.blockRows), numbers.blocks };
      numbers.scales = this->Get(
        name, beside, { DType::F32, DType::BF16, DType::F16, DType::F64, DType::F8_E8M0 }, shape);
      return;
    }
    if (!isOne && !isPerRow)
    {
      this->FailShape(name, FloatTypes(), { numbers.rows, 1 });
    }
    numbers.blockRows = isOne ? numbers.rows : 1;
    numbers.blockColumns = numbers.columns;
    numbers.scales = this->GetFloats(name, beside, view.shape);
  }

  /// Weights that are bytes: floats of 8 bits, or integers.
  void UnpackBytes(const std::string& module)
  {
    const std::string name = module + ".weight";
    const std::string scale =
      this->Find(name + "_scale_inv") != nullptr ? name + "_scale_inv" : name + "_scale";
    const TensorView& codes = this->Get(name, scale);
    const bool isInteger = codes.dtype == DType::I8;
    const bool isFloat = codes.dtype == DType::F8_E4M3 || codes.dtype == DType::F8_E5M2;
    if (codes.shape.size() != 2 || codes.Count() == 0 ||
        !(isFloat || (isInteger && this->How.method != Quantization::Method::Fp8)))
    {
      this->Fail(name, "expected a matrix of F8_E4M3 or I8 beside '", scale, "', found ",
        Name(codes.dtype), " of shape ", ToString(codes.shape), ".");
    }
    PackedNumbers numbers;
    numbers.name =
      isInteger ? "8 bits with scales" : std::string(Name(codes.dtype)) + " with scales";
    numbers.rows = codes.shape[0];
    numbers.columns = codes.shape[1];
    numbers.codes = { codes.data, 8, 1, true, 1, numbers.columns };
    numbers.values = ByteValues(codes.dtype);
    this->SetFactors(numbers, scale, name);
    const std::string zero = name + "_zero_point";
    if (this->Find(zero) != nullptr)
    {
      this->SetZeroBytes(numbers, zero, scale);
    }
    const Shape shape = codes.shape;
    this->Put(name, std::move(numbers), shape, { name, scale, zero, name + "_g_idx" });
  }

  /// Floats of 8 bits of all experts of a layer in one tensor, each in blocks of its own.
  void UnpackExperts(const std::string& name)
  {
    const std::string scale = name + "_scale_inv";
    const TensorView& codes = this->Get(name, scale);
    const std::vector<std::int64_t>& block = this->How.block;
    const Shape shape = codes.shape;
    if (codes.dtype != DType::F8_E4M3 || shape.size() != 3 || codes.Count() == 0 || block.empty() ||
        shape[1] % block[0] != 0)
    {
      this->Fail(name, "expected matrices of F8_E4M3 of all experts beside '", scale,
        "', of rows that 'weight_block_size' divides, found ", Name(codes.dtype), " of shape ",
        ToString(shape), ".");
    }
    PackedNumbers numbers;
    numbers.name = std::string(Name(codes.dtype)) + " with scales";
    numbers.rows = shape[0] * shape[1];
    numbers.columns = shape[2];
    numbers.codes = { codes.data, 8, 1, true, 1, numbers.columns };
    numbers.values = ByteValues(codes.dtype);
    numbers.blockRows = block[0];
    numbers.blockColumns = block[1];
    numbers.blocks = Quotient(numbers.columns, block[1]);
    numbers.scales =
      this->Get(scale, name, { DType::F32, DType::BF16, DType::F16, DType::F64, DType::F8_E8M0 },
        { shape[0], shape[1] / block[0], numbers.blocks });
    numbers.scales.shape = { shape[0] * shape[1] / block[0], numbers.blocks };
    this->Put(name, std::move(numbers), shape, { name, scale });
  }

  /// The columns of a group of a weight with scales [rows, groups]; 0: it has no groups.
  std::int64_t GroupOf(const PackedNumbers& numbers, const std::string& scale) const
  {
    const TensorView* view = this->Find(scale);
    if (view == nullptr || view->shape.size() != 2 || view->shape[0] != numbers.rows ||
        view->shape[1] < 2 || numbers.columns % view->shape[1] != 0)
    {
      return 0;
    }
    const std::int64_t group = numbers.columns / view->shape[1];
    const auto isOfGroup = [group](const Quantization::Sizes& kind) { return kind.group == group; };
    return std::any_of(this->How.kinds.begin(), this->How.kinds.end(), isOfGroup) ? group : 0;
  }

  /// Scales [rows, groups] of compressed-tensors, or those of SetScales.
  void SetFactors(PackedNumbers& numbers, const std::string& scale, const std::string& beside) const
  {
    const std::int64_t group = this->GroupOf(numbers, scale);
    if (group == 0)
    {
      this->SetScales(numbers, scale, beside);
      return;
    }
    numbers.blocks = numbers.columns / group;
    const Shape shape = { numbers.rows, numbers.blocks };
    numbers.scales = this->Get(scale, beside,
      { DType::F32, DType::BF16, DType::F16, DType::F64, DType::F8_E4M3, DType::F8_E8M0 }, shape);
    this->SetGroups(numbers, beside.substr(0, beside.rfind("_packed")) + "_g_idx", group);
  }

  /// Zeros that are bytes, one for each scale.
  void SetZeroBytes(PackedNumbers& numbers, const std::string& name, const std::string& scale) const
  {
    const Shape shape = this->Find(scale)->shape;
    const TensorView& zeros = this->Get(name, scale, { DType::I8 }, shape);
    const bool isOne = zeros.Count() == 1;
    if (numbers.blockRows != 1 && !isOne)
    {
      this->Fail(name, "expected no zeros of blocks of rows, found some.");
    }
    const PackedCodes codes = { zeros.data, 8, 1, true, 1, isOne ? 0 : numbers.blocks };
    numbers.zeros = ZerosOf(numbers, codes, ByteValues(DType::I8));
  }

  /// The bits of the numbers of compressed-tensors: those of a kind with which they fill the words.
  std::int64_t BitsOf(const std::string& name, const TensorView& words, std::int64_t columns) const
  {
    std::vector<std::int64_t> fitting;
    for (const Quantization::Sizes& kind : this->How.kinds)
    {
      const bool fits = !kind.isFloat && Quotient(columns * kind.bits, 32) == words.shape[1];
      const bool isNew = std::find(fitting.begin(), fitting.end(), kind.bits) == fitting.end();
      if (fits && isNew)
      {
        fitting.push_back(kind.bits);
      }
    }
    if (fitting.size() != 1)
    {
      this->Fail(name, "expected words of 32 bits that ", columns, " numbers of ",
        Joined(
          this->How.kinds, [](const auto& kind) { return std::to_string(kind.bits); }, " or "),
        " bits fill in each row, found the shape ", ToString(words.shape), ".");
    }
    return fitting.front();
  }

  /// Weights of fewer than 8 bits of compressed-tensors.
  void UnpackWords(const std::string& module)
  {
    const std::string weight = module + ".weight";
    const std::string name = weight + "_packed";
    if (this->Find(name)->dtype == DType::U8)
    {
      this->UnpackFloats(module);
      return;
    }
    const TensorView& words = this->GetWords(name, DType::I32);
    const TensorView& sizes = this->Get(weight + "_shape", name);
    const std::vector<std::int64_t> shape =
      sizes.Count() == 2 && !IsFloating(sizes.dtype) ? sizes.ToInteger() : Shape();
    if (shape.size() != 2 || shape[0] != words.shape[0] || shape[1] < 1 ||
        shape[1] > 32 * words.shape[1])
    {
      this->Fail(weight + "_shape", "expected [", words.shape[0], ", columns], found ",
        ToString(shape), ".");
    }
    PackedNumbers numbers;
    numbers.rows = shape[0];
    numbers.columns = shape[1];
    const std::int64_t bits = this->BitsOf(name, words, numbers.columns);
    const auto middle = static_cast<float>(1U << static_cast<unsigned>(bits - 1));
    numbers.name = "compressed-tensors, " + std::to_string(bits) + " bits";
    numbers.codes = { words.data, bits, 4, true, 1, words.shape[1] };
    numbers.base = -middle;
    const std::string scale = weight + "_scale";
    this->SetFactors(numbers, scale, name);
    const std::string zero = weight + "_zero_point";
    const TensorView* zeros = this->Find(zero);
    if (zeros != nullptr && zeros->dtype == DType::I32)
    {
      const std::int64_t rows = Quotient(numbers.rows * bits, 32);
      this->Get(zero, name, { DType::I32 }, { rows, numbers.blocks });
      numbers.zeros =
        ZerosOf(numbers, { zeros->data, bits, 4, false, numbers.blocks, 1 }, {}, -middle);
    }
    else if (zeros != nullptr)
    {
      this->SetZeroBytes(numbers, zero, scale);
    }
    this->Put(weight, std::move(numbers), shape,
      { name, scale, zero, weight + "_shape", weight + "_g_idx" });
  }

  /// MXFP4 and NVFP4 of compressed-tensors.
  void UnpackFloats(const std::string& module)
  {
    const std::string weight = module + ".weight";
    const std::string name = weight + "_packed";
    const TensorView& words = this->GetWords(name, DType::U8);
    PackedNumbers numbers;
    numbers.rows = words.shape[0];
    numbers.columns = words.shape[1] * 2;
    numbers.codes = { words.data, 4, 1, true, 1, words.shape[1] };
    numbers.values = SmallFloats();
    const std::string scale = weight + "_scale";
    const TensorView& scales = this->Get(scale, name);
    const bool isNv = scales.dtype == DType::F8_E4M3;
    const std::int64_t group = isNv ? 16 : 32;
    numbers.name = isNv ? "NVFP4" : "MXFP4";
    numbers.blockColumns = group;
    numbers.blocks = Quotient(numbers.columns, group);
    numbers.scales = this->Get(
      scale, name, { DType::F8_E4M3, DType::U8, DType::F8_E8M0 }, { numbers.rows, numbers.blocks });
    const std::string global = weight + "_global_scale";
    if (isNv)
    {
      this->GetFloats(global, name, { 1 }).ToFloat(0, 1, &numbers.divisor);
      if (!std::isfinite(numbers.divisor) || numbers.divisor == 0)
      {
        this->Fail(global, "expected a number other than 0, found ", numbers.divisor, ".");
      }
    }
    else
    {
      numbers.scales.dtype = DType::F8_E8M0;
    }
    const Shape shape = { numbers.rows, numbers.columns };
    this->Put(weight, std::move(numbers), shape, { name, scale, global });
  }

  /// Weights of 4 bits of bitsandbytes, in blocks that may begin within rows.
  void UnpackBlocks(const std::string& name, const std::string& type)
  {
    const std::string state = name + ".quant_state.bitsandbytes__" + type;
    const TensorView& text = *this->Find(state);
    const json settings =
      ParseJsonObject({ reinterpret_cast<const char*>(text.data), text.Bytes() },
        this->Files.FileOf(state) + ": tensor '" + state + "'", "the state");
    const TensorView& codes = this->Get(name, state);
    constexpr std::int64_t most = std::int64_t{ 1 } << 40U;
    const auto size = [&](const json& value)
    {
      if (!value.is_number_integer() || value < 1 || value > most)
      {
        this->Fail(
          state, "expected positive sizes as shape and blocks, found ", Describe(value), ".");
      }
      return value.get<std::int64_t>();
    };
    const json sizes = settings.value("shape", json());
    if (!sizes.is_array() || sizes.size() != 2)
    {
      this->Fail(state, "expected a shape of two sizes, found ", Describe(sizes), ".");
    }
    const Shape shape = { size(sizes[0]), size(sizes[1]) };
    if (shape[0] > most / shape[1] ||
        codes.Bytes() != static_cast<std::uint64_t>(Quotient(shape[0] * shape[1], 2)))
    {
      this->Fail(name, "expected half a byte for each number of a matrix ", ToString(shape),
        ", found ", codes.Bytes(), " bytes.");
    }
    PackedNumbers numbers;
    numbers.name = "bitsandbytes, " + type;
    numbers.rows = 1;
    numbers.columns = shape[0] * shape[1];
    numbers.codes = { codes.data, 4, 1, true, 1, 0, PackedCodes::Order::HighFirst };
    numbers.values.resize(16);
    this->GetFloats(name + ".quant_map", name, { 16 }).ToFloat(0, 16, numbers.values.data());
    numbers.blockColumns = size(settings.value("blocksize", json()));
    numbers.blocks = Quotient(numbers.columns, numbers.blockColumns);
    const std::string scales = name + ".absmax";
    const std::string nested = name + ".nested_absmax";
    const std::string map = name + ".nested_quant_map";
    if (this->Find(nested) == nullptr)
    {
      numbers.scales = this->GetFloats(scales, name, { numbers.blocks });
    }
    else
    {
      const TensorView& bytes = this->Get(scales, name, { DType::U8 }, { numbers.blocks });
      PackedNumbers inner;
      inner.name = "bitsandbytes, 8 bits";
      inner.rows = 1;
      inner.columns = numbers.blocks;
      inner.codes = { bytes.data, 8, 1, true, 1, 0 };
      inner.values.resize(256);
      this->GetFloats(map, name, { 256 }).ToFloat(0, 256, inner.values.data());
      inner.blockColumns = size(settings.value("nested_blocksize", json()));
      inner.blocks = Quotient(inner.columns, inner.blockColumns);
      inner.scales = this->GetFloats(nested, name, { inner.blocks });
      const json offset = settings.value("nested_offset", json());
      if (!offset.is_number())
      {
        this->Fail(state, "expected a number as nested_offset, found ", Describe(offset), ".");
      }
      inner.bias = offset.get<float>();
      numbers.scales = ViewOf(std::move(inner), { numbers.blocks });
    }
    this->Put(
      name, std::move(numbers), shape, { name, state, name + ".quant_map", scales, nested, map });
  }

  /// Weights of 8 bits of bitsandbytes: a row is multiplied by its SCB / 127.
  void UnpackVectors(const std::string& module)
  {
    const std::string name = module + ".weight";
    const std::string scale = module + ".SCB";
    const std::string format = module + ".weight_format";
    const TensorView& codes = this->Get(name, scale);
    const TensorView* order = this->Find(format);
    if (codes.dtype != DType::I8 || codes.shape.size() != 2 || codes.Count() == 0)
    {
      this->Fail(name, "expected a matrix of I8 beside '", scale, "', found ", Name(codes.dtype),
        " of shape ", ToString(codes.shape), ".");
    }
    if (order != nullptr && (order->Count() != 1 || order->At(0) != 0))
    {
      this->Fail(format, "expected 0, which is by rows, found another order.");
    }
    PackedNumbers numbers;
    numbers.name = "bitsandbytes, 8 bits";
    numbers.rows = codes.shape[0];
    numbers.columns = codes.shape[1];
    numbers.codes = { codes.data, 8, 1, true, 1, numbers.columns };
    numbers.values = ByteValues(DType::I8);
    numbers.blockColumns = numbers.columns;
    numbers.divisor = 127;
    const Shape shape = codes.shape;
    numbers.scales = this->GetFloats(scale, name, { shape[0] });
    this->Put(name, std::move(numbers), shape, { name, scale, format });
  }

  /// MLX has the matrices of all experts in one tensor.
  void SplitExperts(const std::string& module)
  {
    const std::string stack = ".switch_mlp.";
    const std::size_t at = module.find(stack);
    const TensorView all = *this->Find(module + ".weight");
    if (at == std::string::npos || all.shape.size() != 3 || all.Count() == 0)
    {
      return;
    }
    const std::string before = module.substr(0, at) + ".experts.";
    std::string matrix = "." + module.substr(at + stack.size());
    if (EndsWith(module.substr(0, at), "block_sparse_moe")) // Mixtral
    {
      matrix = matrix == ".gate_proj" ? ".w1" : matrix == ".down_proj" ? ".w2" : ".w3";
    }
    const std::string origin = this->Files.FileOf(module + ".weight");
    this->Files.Remove(module + ".weight");
    for (std::int64_t expert = 0; expert < all.shape[0]; ++expert)
    {
      TensorView one = RowsOf(all, expert, 1);
      one.shape = { all.shape[1], all.shape[2] };
      std::string name = before;
      name += std::to_string(expert);
      name += matrix;
      name += ".weight";
      this->Files.Set(name, std::move(one), origin);
    }
  }

  void UnpackMlx(const std::string& module)
  {
    const std::string name = module + ".weight";
    const std::string scale = module + ".scales";
    const TensorView* words = this->Find(name);
    if (words == nullptr || words->dtype != DType::U32 || words->shape.size() < 2 ||
        words->Count() == 0)
    {
      return; // another tensor of this name
    }
    const auto found = this->How.modules.find(module);
    const Quantization::Sizes& sizes =
      found == this->How.modules.end() ? this->How.sizes : found->second;
    const std::int64_t width = words->shape.back();
    Shape shape = words->shape;
    shape.back() = width * 32 / sizes.bits;
    PackedNumbers numbers;
    numbers.name = sizes.isFloat ? "MXFP4" : "MLX, " + std::to_string(sizes.bits) + " bits";
    numbers.rows = static_cast<std::int64_t>(words->Count()) / width;
    numbers.columns = shape.back();
    numbers.codes = { words->data, sizes.bits, 4, true, 1, width };
    numbers.blockColumns = sizes.group;
    numbers.blocks = Quotient(numbers.columns, sizes.group);
    if (width * 32 % sizes.bits != 0 || numbers.columns % sizes.group != 0)
    {
      this->Fail(name, "expected rows of whole groups of ", sizes.group, " numbers of ", sizes.bits,
        " bits, found the shape ", ToString(words->shape), ".");
    }
    Shape factors = shape;
    factors.back() = numbers.blocks;
    const std::string biases = module + ".biases";
    if (sizes.isFloat)
    {
      numbers.values = SmallFloats();
      numbers.scales = this->Get(scale, name, { DType::U8, DType::F8_E8M0 }, factors);
      numbers.scales.dtype = DType::F8_E8M0;
    }
    else
    {
      numbers.scales = this->GetFloats(scale, name, factors);
      numbers.biases = this->GetFloats(biases, name, factors);
    }
    this->Put(name, std::move(numbers), shape, { name, scale, biases });
  }
};

}

void UnpackWeights(const Quantization& quantization, WeightFiles& files)
{
  ReadIntact(files,
    [&]
    {
      Unpacker(quantization, files).Unpack();
      return true;
    });
}

}
