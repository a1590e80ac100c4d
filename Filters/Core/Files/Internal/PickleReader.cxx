#include "PickleReader.h"

#include "Error.h"
#include "Utf8Text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace atlas
{
namespace
{

using Index = PickleObjects::Index;

constexpr std::size_t MaximumValues = 4'000'000;
constexpr std::size_t MaximumTorchAxes = 64; ///< PyTorch's
constexpr std::size_t MaximumShownName = 200;
constexpr Index NoValue = std::numeric_limits<Index>::max();

/// What calls do here instead of calling.
enum class PickleFunction
{
  OrderedDictionary,
  Set,
  Size,
  Device,
  Tensor,   ///< torch._utils._rebuild_tensor, until version 0.3
  TensorV2, ///< torch._utils._rebuild_tensor_v2
  Parameter
};

struct KnownFunction
{
  std::string_view module;
  std::string_view name;
  PickleFunction function;
};

constexpr std::array<KnownFunction, 8> KnownFunctions = { {
  { "collections", "OrderedDict", PickleFunction::OrderedDictionary },
  { "builtins", "set", PickleFunction::Set },
  { "__builtin__", "set", PickleFunction::Set },
  { "torch", "Size", PickleFunction::Size },
  { "torch", "device", PickleFunction::Device },
  { "torch._utils", "_rebuild_tensor", PickleFunction::Tensor },
  { "torch._utils", "_rebuild_tensor_v2", PickleFunction::TensorV2 },
  { "torch._utils", "_rebuild_parameter", PickleFunction::Parameter },
} };

struct KnownStorage
{
  std::string_view name; ///< in module torch
  DType dtype;
};

constexpr std::array<KnownStorage, 10> KnownStorages = { {
  { "DoubleStorage", DType::F64 },
  { "FloatStorage", DType::F32 },
  { "HalfStorage", DType::F16 },
  { "BFloat16Storage", DType::BF16 },
  { "LongStorage", DType::I64 },
  { "IntStorage", DType::I32 },
  { "ShortStorage", DType::I16 },
  { "CharStorage", DType::I8 },
  { "ByteStorage", DType::U8 },
  { "BoolStorage", DType::BOOL },
} };

/// Types of elements in module torch, which configurations mention.
constexpr std::array<std::string_view, 10> ElementTypes = { "float64", "float32", "float16",
  "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool" };

struct KnownOpcode
{
  unsigned code;
  std::string_view name;
};

/// The names of the instructions that are refused, for messages.
constexpr std::array<KnownOpcode, 28> RefusedOpcodes = { {
  { '0', "POP" },
  { '1', "POP_MARK" },
  { '2', "DUP" },
  { 'd', "DICT" },
  { 'l', "LIST" },
  { 'F', "FLOAT" },
  { 'I', "INT" },
  { 'L', "LONG" },
  { 'P', "PERSID" },
  { 'S', "STRING" },
  { 'V', "UNICODE" },
  { 'g', "GET" },
  { 'i', "INST" },
  { 'o', "OBJ" },
  { 'p', "PUT" },
  { 0x81, "NEWOBJ" },
  { 0x82, "EXT1" },
  { 0x83, "EXT2" },
  { 0x84, "EXT4" },
  { 0x8b, "LONG4" },
  { 0x91, "FROZENSET" },
  { 0x92, "NEWOBJ_EX" },
  { 0x96, "BYTEARRAY8" },
  { 0x97, "NEXT_BUFFER" },
  { 0x98, "READONLY_BUFFER" },
  { 0x8e, "BINBYTES8" },
  { 'T', "BINSTRING" },
  { 'U', "SHORT_BINSTRING" },
} };

std::string_view NameOf(PickleKind kind)
{
  constexpr std::array<std::string_view, 16> names = { "None", "a truth value", "a whole number",
    "a long number", "a number", "a text", "bytes", "a tuple", "a list", "a dictionary", "a set",
    "a function", "a type of storage", "a type or device", "a storage", "a tensor" };
  return names[static_cast<std::size_t>(kind)];
}

class Machine
{
public:
  Machine(const std::byte* data, std::size_t size, const std::string& source)
    : Data(data)
    , Size(size)
    , Source(source)
  {
  }

  PickleObjects Run()
  {
    while (this->Step())
    {
    }
    this->Objects.root = this->Pop();
    if (!this->Stack.empty() || !this->Marks.empty())
    {
      this->Fail(
        "expected one object at its end, found " + std::to_string(this->Stack.size() + 1) + ".");
    }
    this->Objects.bytes = this->At;
    return std::move(this->Objects);
  }

private:
  const std::byte* Data;
  std::size_t Size;
  const std::string& Source;
  std::size_t At = 0;
  std::size_t Begin = 0;  ///< of the current instruction
  std::size_t Values = 0; ///< including the axes of tensors
  PickleObjects Objects;
  std::vector<Index> Stack;
  std::vector<std::size_t> Marks; ///< sizes of the stack
  std::vector<Index> Memo;        ///< NoValue where nothing was stored

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw FormatError(
      this->Source + ": the pickle, byte " + std::to_string(this->Begin) + ": " + message);
  }

  // Bytes

  std::string_view Take(std::uint64_t count)
  {
    if (count > this->Size - this->At)
    {
      this->Fail("expected " + std::to_string(count) + " more bytes, found " +
                 std::to_string(this->Size - this->At) + ".");
    }
    const char* begin = reinterpret_cast<const char*>(this->Data) + this->At;
    this->At += static_cast<std::size_t>(count);
    return { begin, static_cast<std::size_t>(count) };
  }

  /// A little-endian number.
  std::uint64_t TakeNumber(unsigned bytes)
  {
    const std::string_view text = this->Take(bytes);
    std::uint64_t number = 0;
    for (unsigned i = bytes; i-- > 0;)
    {
      number = number << 8U | static_cast<unsigned char>(text[i]);
    }
    return number;
  }

  std::string_view TakeLine()
  {
    const char* begin = reinterpret_cast<const char*>(this->Data) + this->At;
    const std::string_view rest(begin, this->Size - this->At);
    const std::size_t length = rest.find('\n');
    if (length == std::string_view::npos)
    {
      this->Fail("expected the end of a line.");
    }
    this->At += length + 1;
    return rest.substr(0, length);
  }

  // Stack

  void Count(std::size_t values)
  {
    this->Values += values;
    if (this->Values > MaximumValues)
    {
      this->Fail("expected at most " + std::to_string(MaximumValues) + " values.");
    }
  }

  void PushIndex(Index index) { this->Stack.push_back(index); }

  void Push(const PickleValue& value)
  {
    this->Count(1);
    this->PushIndex(static_cast<Index>(this->Objects.values.size()));
    this->Objects.values.push_back(value);
  }

  void Push(PickleKind kind, std::int64_t number = 0, std::string_view text = {})
  {
    this->Push({ kind, false, number, text });
  }

  void PushText(std::string_view text)
  {
    RequireUtf8(text, this->Source + ": a text of the pickle");
    this->Push(PickleKind::Text, 0, text);
  }

  void PushItems(PickleKind kind, std::vector<Index> items, bool ordered = false)
  {
    const std::int64_t number = this->Objects.items.size();
    this->Objects.items.push_back(std::move(items));
    this->Push({ kind, ordered, number, {} });
  }

  void RequireStack(std::size_t count) const
  {
    const std::size_t bottom = this->Marks.empty() ? 0 : this->Marks.back();
    if (this->Stack.size() - bottom < count)
    {
      this->Fail("the instruction takes " + std::to_string(count) +
                 " objects from the stack, which has " +
                 std::to_string(this->Stack.size() - bottom) + ".");
    }
  }

  Index Pop()
  {
    this->RequireStack(1);
    const Index top = this->Stack.back();
    this->Stack.pop_back();
    return top;
  }

  std::vector<Index> Pop(std::size_t count)
  {
    this->RequireStack(count);
    const auto begin = this->Stack.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<Index> items(begin, this->Stack.end());
    this->Stack.erase(begin, this->Stack.end());
    return items;
  }

  std::vector<Index> PopToMark()
  {
    if (this->Marks.empty())
    {
      this->Fail("expected a mark on the stack, found none.");
    }
    const std::size_t mark = this->Marks.back();
    std::vector<Index> items = this->Pop(this->Stack.size() - mark);
    this->Marks.pop_back();
    return items;
  }

  PickleValue& Value(Index index) { return this->Objects.values[index]; }

  PickleValue& Top(PickleKind kind)
  {
    this->RequireStack(1);
    return this->Require(this->Stack.back(), kind);
  }

  PickleValue& Require(Index index, PickleKind kind)
  {
    PickleValue& value = this->Value(index);
    if (value.kind != kind)
    {
      this->Fail("expected " + std::string(NameOf(kind)) + ", found " +
                 std::string(NameOf(value.kind)) + ".");
    }
    return value;
  }

  std::vector<Index>& ItemsOf(const PickleValue& value)
  {
    return this->Objects.items[value.number];
  }

  void Append(PickleKind kind, const std::vector<Index>& added)
  {
    if (kind == PickleKind::Dictionary && added.size() % 2 != 0)
    {
      this->Fail("expected a value for each key.");
    }
    std::vector<Index>& items = this->ItemsOf(this->Top(kind));
    items.insert(items.end(), added.begin(), added.end());
  }

  // Memo

  void Store(std::uint64_t index)
  {
    this->RequireStack(1);
    if (index >= this->At)
    {
      this->Fail("stores an object as number " + std::to_string(index) +
                 ", but there cannot be as many so far.");
    }
    if (index >= this->Memo.size())
    {
      this->Memo.resize(static_cast<std::size_t>(index) + 1, NoValue);
    }
    this->Memo[index] = this->Stack.back();
  }

  void Recall(std::uint64_t index)
  {
    if (index >= this->Memo.size() || this->Memo[index] == NoValue)
    {
      this->Fail("refers to object " + std::to_string(index) + ", which was not stored.");
    }
    this->PushIndex(this->Memo[index]);
  }

  // Instructions

  /// Executes one instruction; returns false for STOP.
  bool Step()
  {
    this->Begin = this->At;
    if (this->At == this->Size)
    {
      this->Fail("the pickle ends without the instruction STOP.");
    }
    const auto code = static_cast<unsigned char>(this->Take(1).front());
    if (code == '.')
    {
      return false;
    }
    if (!this->PushConstant(code) && !this->Build(code) && !this->Refer(code))
    {
      this->FailOpcode(code);
    }
    return true;
  }

  [[noreturn]] void FailOpcode(unsigned code) const
  {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string name = std::string("0x") + digits[code >> 4U] + digits[code & 15U];
    for (const KnownOpcode& known : RefusedOpcodes)
    {
      name = known.code == code ? std::string(known.name) : name;
    }
    this->Fail("instruction " + name +
               " is none of those that tensors need; it is not executed, and the file is refused.");
  }

  /// None, numbers, texts.
  bool PushConstant(unsigned code)
  {
    switch (code)
    {
      case 'N': // NONE
        this->Push(PickleKind::None);
        return true;
      case 0x88: // NEWTRUE
      case 0x89: // NEWFALSE
        this->Push(PickleKind::Boolean, code == 0x88 ? 1 : 0);
        return true;
      case 'J': // BININT
        this->Push(PickleKind::Integer,
          static_cast<std::int32_t>(static_cast<std::uint32_t>(this->TakeNumber(4))));
        return true;
      case 'K': // BININT1
        this->Push(PickleKind::Integer, static_cast<std::int64_t>(this->TakeNumber(1)));
        return true;
      case 'M': // BININT2
        this->Push(PickleKind::Integer, static_cast<std::int64_t>(this->TakeNumber(2)));
        return true;
      case 0x8a: // LONG1
        this->PushLong(this->Take(this->TakeNumber(1)));
        return true;
      case 'G': // BINFLOAT
        this->Push(PickleKind::Real, 0, this->Take(8));
        return true;
      case 0x8c: // SHORT_BINUNICODE
        this->PushText(this->Take(this->TakeNumber(1)));
        return true;
      case 'X': // BINUNICODE
        this->PushText(this->Take(this->TakeNumber(4)));
        return true;
      case 0x8d: // BINUNICODE8
        this->PushText(this->Take(this->TakeNumber(8)));
        return true;
      case 'C': // SHORT_BINBYTES
        this->Push(PickleKind::Bytes, 0, this->Take(this->TakeNumber(1)));
        return true;
      case 'B': // BINBYTES
        this->Push(PickleKind::Bytes, 0, this->Take(this->TakeNumber(4)));
        return true;
      case 0x80: // PROTO
        this->RequireProtocol(this->TakeNumber(1));
        return true;
      case 0x95: // FRAME
        this->TakeNumber(8);
        return true;
      default:
        return false;
    }
  }

  void RequireProtocol(std::uint64_t protocol) const
  {
    if (protocol < 2 || protocol > 5)
    {
      this->Fail("expected protocol 2, 3, 4 or 5, found " + std::to_string(protocol) + ".");
    }
  }

  /// A number in two's complement.
  void PushLong(std::string_view bytes)
  {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    while (bytes.size() > sizeof(std::int64_t) &&
           byte(bytes.size() - 1) == ((byte(bytes.size() - 2) & 0x80U) != 0 ? 0xffU : 0U))
    {
      bytes.remove_suffix(1);
    }
    if (bytes.size() > sizeof(std::int64_t))
    {
      this->Push(PickleKind::LongInteger, 0, bytes);
      return;
    }
    const bool negative = !bytes.empty() && (byte(bytes.size() - 1) & 0x80U) != 0;
    std::uint64_t number = negative ? ~std::uint64_t{ 0 } : 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
    {
      number = number << 8U | byte(i);
    }
    this->Push(PickleKind::Integer, static_cast<std::int64_t>(number));
  }

  /// Tuples, lists, dictionaries, sets.
  bool Build(unsigned code)
  {
    switch (code)
    {
      case '(': // MARK
        this->Count(1);
        this->Marks.push_back(this->Stack.size());
        return true;
      case ')': // EMPTY_TUPLE
        this->PushItems(PickleKind::Tuple, {});
        return true;
      case 0x85: // TUPLE1
      case 0x86: // TUPLE2
      case 0x87: // TUPLE3
        this->PushItems(PickleKind::Tuple, this->Pop(code - 0x84));
        return true;
      case 't': // TUPLE
        this->PushItems(PickleKind::Tuple, this->PopToMark());
        return true;
      case ']': // EMPTY_LIST
        this->PushItems(PickleKind::List, {});
        return true;
      case 'a': // APPEND
        this->Append(PickleKind::List, this->Pop(1));
        return true;
      case 'e': // APPENDS
        this->Append(PickleKind::List, this->PopToMark());
        return true;
      case '}': // EMPTY_DICT
        this->PushItems(PickleKind::Dictionary, {});
        return true;
      case 's': // SETITEM
        this->Append(PickleKind::Dictionary, this->Pop(2));
        return true;
      case 'u': // SETITEMS
        this->Append(PickleKind::Dictionary, this->PopToMark());
        return true;
      case 0x8f: // EMPTY_SET
        this->Push(PickleKind::Set);
        return true;
      case 0x90: // ADDITEMS
        this->PopToMark();
        this->Top(PickleKind::Set);
        return true;
      default:
        return false;
    }
  }

  /// The memo, classes and functions, calls.
  bool Refer(unsigned code)
  {
    switch (code)
    {
      case 'q': // BINPUT
        this->Store(this->TakeNumber(1));
        return true;
      case 'r': // LONG_BINPUT
        this->Store(this->TakeNumber(4));
        return true;
      case 0x94: // MEMOIZE
        this->Store(this->Memo.size());
        return true;
      case 'h': // BINGET
        this->Recall(this->TakeNumber(1));
        return true;
      case 'j': // LONG_BINGET
        this->Recall(this->TakeNumber(4));
        return true;
      case 'c': // GLOBAL
      {
        const std::string_view module = this->TakeLine();
        this->PushGlobal(module, this->TakeLine());
        return true;
      }
      case 0x93: // STACK_GLOBAL
      {
        const std::vector<Index> names = this->Pop(2);
        this->PushGlobal(this->Require(names[0], PickleKind::Text).text,
          this->Require(names[1], PickleKind::Text).text);
        return true;
      }
      case 'R': // REDUCE
        this->Call();
        return true;
      case 'b': // BUILD
        this->SetState();
        return true;
      case 'Q': // BINPERSID
        this->PushStorage();
        return true;
      default:
        return false;
    }
  }

  void PushGlobal(std::string_view module, std::string_view name)
  {
    for (const KnownFunction& known : KnownFunctions)
    {
      if (known.module == module && known.name == name)
      {
        this->Push(PickleKind::Function, static_cast<std::int64_t>(known.function), known.name);
        return;
      }
    }
    if (module == "torch")
    {
      for (const KnownStorage& known : KnownStorages)
      {
        if (known.name == name)
        {
          this->Push(PickleKind::StorageType, static_cast<std::int64_t>(known.dtype));
          return;
        }
      }
      if (std::find(ElementTypes.begin(), ElementTypes.end(), name) != ElementTypes.end())
      {
        this->Push(PickleKind::Other);
        return;
      }
    }
    this->Fail("names '" + Shown(module) + "." + Shown(name) +
               "', but files may name only the classes and functions of dense tensors of " +
               KnownDTypes() + "; it is not run, and the file is refused.");
  }

  /// A name for messages.
  static std::string Shown(std::string_view name)
  {
    std::string shown(name.substr(0, MaximumShownName));
    std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return shown + (name.size() > MaximumShownName ? "..." : "");
  }

  void Call()
  {
    const std::vector<Index> call = this->Pop(2);
    const PickleValue function = this->Require(call[0], PickleKind::Function);
    const std::vector<Index> arguments = this->ItemsOf(this->Require(call[1], PickleKind::Tuple));
    const auto require = [&](std::size_t fewest, std::size_t most)
    {
      if (arguments.size() < fewest || arguments.size() > most)
      {
        this->Fail(std::string(function.text) + ": expected " + std::to_string(fewest) +
                   (most == fewest ? "" : " to " + std::to_string(most)) + " arguments, found " +
                   std::to_string(arguments.size()) + ".");
      }
    };
    switch (static_cast<PickleFunction>(function.number))
    {
      case PickleFunction::OrderedDictionary:
        require(0, 0);
        this->PushItems(PickleKind::Dictionary, {}, true);
        break;
      case PickleFunction::Set:
        require(0, 1);
        this->Push(PickleKind::Set);
        break;
      case PickleFunction::Size:
        require(1, 1);
        this->Require(arguments[0], PickleKind::Tuple);
        this->PushIndex(arguments[0]);
        break;
      case PickleFunction::Device:
        require(1, 2);
        this->Push(PickleKind::Other);
        break;
      case PickleFunction::Tensor:
        require(4, 4);
        this->MakeTensor(arguments);
        break;
      case PickleFunction::TensorV2:
        require(6, 7);
        this->MakeTensor(arguments);
        break;
      case PickleFunction::Parameter:
        require(3, 3);
        this->Require(arguments[0], PickleKind::Tensor);
        this->PushIndex(arguments[0]);
        break;
    }
  }

  /// The attributes of a state dict, which are versions of its modules.
  void SetState()
  {
    const Index state = this->Pop();
    this->RequireStack(1);
    const PickleValue& object = this->Value(this->Stack.back());
    if (object.kind != PickleKind::Dictionary || !object.ordered ||
        this->Value(state).kind != PickleKind::Dictionary)
    {
      this->Fail("instruction BUILD sets attributes of " + std::string(NameOf(object.kind)) +
                 ", expected an OrderedDict; it is not executed, and the file is refused.");
    }
  }

  /// ('storage', type, key, device, count) and in old files None: they are not views of another.
  void PushStorage()
  {
    const Index id = this->Pop();
    const std::vector<Index>& parts = this->ItemsOf(this->Require(id, PickleKind::Tuple));
    const bool isOld = parts.size() == 6;
    if ((parts.size() != 5 && !isOld) ||
        this->Require(parts[0], PickleKind::Text).text != "storage")
    {
      this->Fail("expected a storage as persistent id, found something else.");
    }
    if (isOld)
    {
      this->Require(parts[5], PickleKind::None);
    }
    PickleStorage storage;
    storage.dtype = static_cast<DType>(this->Require(parts[1], PickleKind::StorageType).number);
    storage.key = this->Require(parts[2], PickleKind::Text).text;
    this->Require(parts[3], PickleKind::Text);
    storage.count = static_cast<std::uint64_t>(this->Unsigned(parts[4]));
    const std::int64_t number = this->Objects.storages.size();
    this->Objects.storages.push_back(storage);
    this->Push(PickleKind::Storage, number);
  }

  /// (storage, offset, size, stride) and, in the second version, requires_grad, hooks and metadata.
  void MakeTensor(const std::vector<Index>& arguments)
  {
    PickleTensor tensor;
    tensor.storage =
      static_cast<std::size_t>(this->Require(arguments[0], PickleKind::Storage).number);
    tensor.offset = static_cast<std::uint64_t>(this->Unsigned(arguments[1]));
    tensor.shape = this->Sizes(arguments[2]);
    tensor.stride = this->Sizes(arguments[3]);
    if (tensor.shape.size() != tensor.stride.size())
    {
      this->Fail("expected as many strides as axes, found " + ToString(tensor.stride) +
                 " for shape " + ToString(tensor.shape) + ".");
    }
    for (std::size_t i = 5; i < arguments.size(); ++i)
    {
      const PickleValue& extra = this->Value(arguments[i]);
      if (extra.kind != PickleKind::None &&
          !this->ItemsOf(this->Require(arguments[i], PickleKind::Dictionary)).empty())
      {
        this->Fail("expected a tensor without hooks, and not marked as conjugate or negative.");
      }
    }
    this->Count(2 * tensor.shape.size());
    const std::int64_t number = this->Objects.tensors.size();
    this->Objects.tensors.push_back(std::move(tensor));
    this->Push(PickleKind::Tensor, number);
  }

  std::int64_t Unsigned(Index index)
  {
    const std::int64_t number = this->Require(index, PickleKind::Integer).number;
    if (number < 0)
    {
      this->Fail("expected a number of at least 0, found " + std::to_string(number) + ".");
    }
    return number;
  }

  Shape Sizes(Index index)
  {
    Shape sizes;
    const std::vector<Index>& items = this->ItemsOf(this->Require(index, PickleKind::Tuple));
    if (items.size() > MaximumTorchAxes)
    {
      this->Fail("expected a tensor of at most " + std::to_string(MaximumTorchAxes) +
                 " axes, found " + std::to_string(items.size()) + ".");
    }
    for (const Index item : items)
    {
      sizes.push_back(this->Unsigned(item));
    }
    return sizes;
  }
};

}

PickleObjects ReadPickle(const std::byte* data, std::size_t size, const std::string& source)
{
  return Machine(data, size, source).Run();
}

}
