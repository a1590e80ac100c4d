#include "PickleReader.h"

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Base/NamedValues.h"
#include "Base/NumberText.h"
#include "Base/Utf8Text.h"

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
enum PickleFunction : std::int64_t
{
  MakeDictionary,
  MakeSet,
  TakeTuple,
  TakeTensor,
  MakeDevice,
  MakeTensor ///< _rebuild_tensor until version 0.3, then _rebuild_tensor_v2
};

/// A class or function that pickles may name, and the object that stands for it.
struct KnownGlobal
{
  std::string_view module;
  std::string_view name;
  PickleKind kind;
  std::int64_t number = 0; ///< a PickleFunction, or a DType
  std::size_t fewest = 0;  ///< arguments of a function
  std::size_t most = 0;
};

constexpr KnownGlobal StorageOf(std::string_view name, DType dtype)
{
  return { "torch", name, PickleKind::StorageType, static_cast<std::int64_t>(dtype) };
}

constexpr std::array<KnownGlobal, 18> KnownGlobals = { {
  { "collections", "OrderedDict", PickleKind::Function, MakeDictionary, 0, 0 },
  { "builtins", "set", PickleKind::Function, MakeSet, 0, 1 },
  { "__builtin__", "set", PickleKind::Function, MakeSet, 0, 1 },
  { "torch", "Size", PickleKind::Function, TakeTuple, 1, 1 },
  { "torch", "device", PickleKind::Function, MakeDevice, 1, 2 },
  { "torch._utils", "_rebuild_tensor", PickleKind::Function, MakeTensor, 4, 4 },
  { "torch._utils", "_rebuild_tensor_v2", PickleKind::Function, MakeTensor, 6, 7 },
  { "torch._utils", "_rebuild_parameter", PickleKind::Function, TakeTensor, 3, 3 },
  StorageOf("DoubleStorage", DType::F64),
  StorageOf("FloatStorage", DType::F32),
  StorageOf("HalfStorage", DType::F16),
  StorageOf("BFloat16Storage", DType::BF16),
  StorageOf("LongStorage", DType::I64),
  StorageOf("IntStorage", DType::I32),
  StorageOf("ShortStorage", DType::I16),
  StorageOf("CharStorage", DType::I8),
  StorageOf("ByteStorage", DType::U8),
  StorageOf("BoolStorage", DType::BOOL),
} };

/// Types of elements in module torch, which configurations mention.
constexpr std::array<std::string_view, 10> ElementTypes = { "float64", "float32", "float16",
  "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool" };

/// The names of the instructions that are refused, for messages.
constexpr std::array<Named<unsigned>, 28> RefusedOpcodes = { { { "POP", '0' }, { "POP_MARK", '1' },
  { "DUP", '2' }, { "DICT", 'd' }, { "LIST", 'l' }, { "FLOAT", 'F' }, { "INT", 'I' },
  { "LONG", 'L' }, { "PERSID", 'P' }, { "STRING", 'S' }, { "UNICODE", 'V' }, { "GET", 'g' },
  { "INST", 'i' }, { "OBJ", 'o' }, { "PUT", 'p' }, { "NEWOBJ", 0x81 }, { "EXT1", 0x82 },
  { "EXT2", 0x83 }, { "EXT4", 0x84 }, { "LONG4", 0x8b }, { "FROZENSET", 0x91 },
  { "NEWOBJ_EX", 0x92 }, { "BYTEARRAY8", 0x96 }, { "NEXT_BUFFER", 0x97 },
  { "READONLY_BUFFER", 0x98 }, { "BINBYTES8", 0x8e }, { "BINSTRING", 'T' },
  { "SHORT_BINSTRING", 'U' } } };

std::string_view NameOf(PickleKind kind)
{
  constexpr std::array<std::string_view, 16> names = { "None", "a truth value", "a whole number",
    "a long number", "a number", "a text", "bytes", "a tuple", "a list", "a dictionary", "a set",
    "a function", "a type of storage", "a type or device", "a storage", "a tensor" };
  return names[static_cast<std::size_t>(kind)];
}

class Machine : public FailsIf<Machine>
{
public:
  Machine(const std::byte* data, std::size_t size, const std::string& source)
    : Bytes(reinterpret_cast<const char*>(data), size)
    , Source(source)
  {
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw FormatError(this->Source, ": the pickle, byte ", this->Begin, ": ", message...);
  }

  PickleObjects Run()
  {
    while (this->Step())
    {
    }
    this->Objects.root = this->Pop();
    this->FailIf(!this->Stack.empty() || !this->Marks.empty(),
      "expected one object at its end, found ", this->Stack.size() + 1, ".");
    this->Objects.bytes = this->At;
    return std::move(this->Objects);
  }

private:
  std::string_view Bytes;
  const std::string& Source;
  std::size_t At = 0;
  std::size_t Begin = 0;  ///< of the current instruction
  std::size_t Values = 0; ///< including the axes of tensors
  PickleObjects Objects;
  std::vector<Index> Stack;
  std::vector<std::size_t> Marks; ///< sizes of the stack
  std::vector<Index> Memo;        ///< NoValue where nothing was stored

  // Bytes

  std::string_view Take(std::uint64_t count)
  {
    const std::string_view left = this->Bytes.substr(this->At);
    this->FailIf(count > left.size(), "expected ", count, " more bytes, found ", left.size(), ".");
    this->At += count;
    return left.substr(0, count);
  }

  std::uint64_t TakeNumber(unsigned bytes) { return LittleEndian(this->Take(bytes)); }

  /// Bytes behind their number.
  std::string_view TakeCounted(unsigned bytes) { return this->Take(this->TakeNumber(bytes)); }

  std::string_view TakeLine()
  {
    const std::size_t end = this->Bytes.find('\n', this->At);
    this->FailIf(end == std::string_view::npos, "expected the end of a line.");
    const std::string_view line = this->Take(end - this->At);
    ++this->At;
    return line;
  }

  // Stack

  void Count(std::size_t values)
  {
    this->Values += values;
    this->FailIf(this->Values > MaximumValues, "expected at most ", MaximumValues, " values.");
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
    this->FailIf(this->Stack.size() - bottom < count, "the instruction takes ", count,
      " objects from the stack, which has ", this->Stack.size() - bottom, ".");
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
    this->FailIf(this->Marks.empty(), "expected a mark on the stack, found none.");
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
      this->Fail("expected ", NameOf(kind), ", found ", NameOf(value.kind), ".");
    }
    return value;
  }

  std::vector<Index>& ItemsOf(const PickleValue& value)
  {
    return this->Objects.items[value.number];
  }

  void Append(PickleKind kind, const std::vector<Index>& added)
  {
    this->FailIf(
      kind == PickleKind::Dictionary && added.size() % 2 != 0, "expected a value for each key.");
    std::vector<Index>& items = this->ItemsOf(this->Top(kind));
    items.insert(items.end(), added.begin(), added.end());
  }

  // Memo

  void Store(std::uint64_t index)
  {
    this->RequireStack(1);
    this->FailIf(index >= this->At, "stores an object as number ", index,
      ", but there cannot be as many so far.");
    if (index >= this->Memo.size())
    {
      this->Memo.resize(static_cast<std::size_t>(index) + 1, NoValue);
    }
    this->Memo[index] = this->Stack.back();
  }

  void Recall(std::uint64_t index)
  {
    this->FailIf(index >= this->Memo.size() || this->Memo[index] == NoValue, "refers to object ",
      index, ", which was not stored.");
    this->PushIndex(this->Memo[index]);
  }

  // Instructions

  /// Executes one instruction; returns false for STOP.
  bool Step()
  {
    this->Begin = this->At;
    this->FailIf(this->At == this->Bytes.size(), "the pickle ends without the instruction STOP.");
    const auto code = static_cast<unsigned char>(this->Take(1).front());
    if (code == '.')
    {
      return false;
    }
    const Instruction instruction = Instructions()[code];
    if (instruction == nullptr)
    {
      this->FailOpcode(code);
    }
    instruction(*this);
    return true;
  }

  [[noreturn]] void FailOpcode(unsigned code) const
  {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string name = std::string("0x") + digits[code >> 4U] + digits[code & 15U];
    for (const auto& [known, value] : RefusedOpcodes)
    {
      name = value == code ? std::string(known) : name;
    }
    this->Fail("instruction ", name,
      " is none of those that tensors need; it is not executed, and the file is refused.");
  }

  using Instruction = void (*)(Machine&);

  /// What each instruction does; nullptr for those that are refused.
  static const std::array<Instruction, 256>& Instructions()
  {
    static const std::array<Instruction, 256> all = []
    {
      std::array<Instruction, 256> table = {};
      // None, numbers, texts.
      table['N'] = [](Machine& m) { m.Push(PickleKind::None); };               // NONE
      table[0x88] = [](Machine& m) { m.Push(PickleKind::Boolean, 1); };        // NEWTRUE
      table[0x89] = [](Machine& m) { m.Push(PickleKind::Boolean, 0); };        // NEWFALSE
      table['J'] = [](Machine& m) { m.PushInteger<std::int32_t>(); };          // BININT
      table['K'] = [](Machine& m) { m.PushInteger<std::uint8_t>(); };          // BININT1
      table['M'] = [](Machine& m) { m.PushInteger<std::uint16_t>(); };         // BININT2
      table[0x8a] = [](Machine& m) { m.PushLong(m.TakeCounted(1)); };          // LONG1
      table['G'] = [](Machine& m) { m.Push(PickleKind::Real, 0, m.Take(8)); }; // BINFLOAT
      table[0x8c] = [](Machine& m) { m.PushText(m.TakeCounted(1)); };          // SHORT_BINUNICODE
      table['X'] = [](Machine& m) { m.PushText(m.TakeCounted(4)); };           // BINUNICODE
      table[0x8d] = [](Machine& m) { m.PushText(m.TakeCounted(8)); };          // BINUNICODE8
      table['C'] = [](Machine& m)
      { m.Push(PickleKind::Bytes, 0, m.TakeCounted(1)); }; // SHORT_BINBYTES
      table['B'] = [](Machine& m) { m.Push(PickleKind::Bytes, 0, m.TakeCounted(4)); }; // BINBYTES
      table[0x80] = [](Machine& m) { m.RequireProtocol(m.TakeNumber(1)); };            // PROTO
      table[0x95] = [](Machine& m) { m.TakeNumber(8); };                               // FRAME
      // Tuples, lists, dictionaries, sets.
      table['('] = [](Machine& m) { m.Mark(); };                                      // MARK
      table[')'] = [](Machine& m) { m.PushItems(PickleKind::Tuple, {}); };            // EMPTY_TUPLE
      table[0x85] = [](Machine& m) { m.PushItems(PickleKind::Tuple, m.Pop(1)); };     // TUPLE1
      table[0x86] = [](Machine& m) { m.PushItems(PickleKind::Tuple, m.Pop(2)); };     // TUPLE2
      table[0x87] = [](Machine& m) { m.PushItems(PickleKind::Tuple, m.Pop(3)); };     // TUPLE3
      table['t'] = [](Machine& m) { m.PushItems(PickleKind::Tuple, m.PopToMark()); }; // TUPLE
      table[']'] = [](Machine& m) { m.PushItems(PickleKind::List, {}); };             // EMPTY_LIST
      table['a'] = [](Machine& m) { m.Append(PickleKind::List, m.Pop(1)); };          // APPEND
      table['e'] = [](Machine& m) { m.Append(PickleKind::List, m.PopToMark()); };     // APPENDS
      table['}'] = [](Machine& m) { m.PushItems(PickleKind::Dictionary, {}); };       // EMPTY_DICT
      table['s'] = [](Machine& m) { m.Append(PickleKind::Dictionary, m.Pop(2)); };    // SETITEM
      table['u'] = [](Machine& m) { m.Append(PickleKind::Dictionary, m.PopToMark()); }; // SETITEMS
      table[0x8f] = [](Machine& m) { m.Push(PickleKind::Set); };                        // EMPTY_SET
      table[0x90] = [](Machine& m) { m.AddToSet(); };                                   // ADDITEMS
      // The memo, classes and functions, calls.
      table['q'] = [](Machine& m) { m.Store(m.TakeNumber(1)); };  // BINPUT
      table['r'] = [](Machine& m) { m.Store(m.TakeNumber(4)); };  // LONG_BINPUT
      table[0x94] = [](Machine& m) { m.Store(m.Memo.size()); };   // MEMOIZE
      table['h'] = [](Machine& m) { m.Recall(m.TakeNumber(1)); }; // BINGET
      table['j'] = [](Machine& m) { m.Recall(m.TakeNumber(4)); }; // LONG_BINGET
      table['c'] = [](Machine& m) { m.PushGlobalOfLines(); };     // GLOBAL
      table[0x93] = [](Machine& m) { m.PushGlobalOfStack(); };    // STACK_GLOBAL
      table['R'] = [](Machine& m) { m.Call(); };                  // REDUCE
      table['b'] = [](Machine& m) { m.SetState(); };              // BUILD
      table['Q'] = [](Machine& m) { m.PushStorage(); };           // BINPERSID
      return table;
    }();
    return all;
  }

  template<class Stored>
  void PushInteger()
  {
    this->Push(PickleKind::Integer, static_cast<Stored>(this->TakeNumber(sizeof(Stored))));
  }

  void RequireProtocol(std::uint64_t protocol) const
  {
    this->FailIf(
      protocol < 2 || protocol > 5, "expected protocol 2, 3, 4 or 5, found ", protocol, ".");
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
    const bool isNegative = !bytes.empty() && (byte(bytes.size() - 1) & 0x80U) != 0;
    std::string whole(sizeof(std::int64_t), isNegative ? '\xff' : '\0');
    std::copy(bytes.begin(), bytes.end(), whole.begin());
    this->Push(PickleKind::Integer, static_cast<std::int64_t>(LittleEndian(whole)));
  }

  void Mark()
  {
    this->Count(1);
    this->Marks.push_back(this->Stack.size());
  }

  /// What a set holds is not read.
  void AddToSet()
  {
    this->PopToMark();
    this->Top(PickleKind::Set);
  }

  void PushGlobalOfLines()
  {
    const std::string_view module = this->TakeLine();
    this->PushGlobal(module, this->TakeLine());
  }

  void PushGlobalOfStack()
  {
    const std::vector<Index> names = this->Pop(2);
    this->PushGlobal(this->Require(names[0], PickleKind::Text).text,
      this->Require(names[1], PickleKind::Text).text);
  }

  void PushGlobal(std::string_view module, std::string_view name)
  {
    const auto* known = std::find_if(KnownGlobals.begin(), KnownGlobals.end(),
      [&](const KnownGlobal& global) { return global.module == module && global.name == name; });
    if (known == KnownGlobals.end())
    {
      const bool isType = module == "torch" && std::find(ElementTypes.begin(), ElementTypes.end(),
                                                 name) != ElementTypes.end();
      this->FailIf(!isType, "names '", Shown(module), ".", Shown(name),
        "', but files may name only the classes and functions of dense tensors of F64, F32, F16, "
        "BF16, I64, I32, I16, I8, U8, BOOL; it is not run, and the file is refused.");
      this->Push(PickleKind::Other);
      return;
    }
    const bool isFunction = known->kind == PickleKind::Function;
    this->Push(known->kind, isFunction ? known - KnownGlobals.begin() : known->number);
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
    const KnownGlobal& function = KnownGlobals[this->Require(call[0], PickleKind::Function).number];
    const std::vector<Index> arguments = this->ItemsOf(this->Require(call[1], PickleKind::Tuple));
    if (arguments.size() < function.fewest || arguments.size() > function.most)
    {
      this->Fail(function.name, ": expected ", function.fewest,
        function.most == function.fewest ? "" : " to " + std::to_string(function.most),
        " arguments, found ", arguments.size(), ".");
    }
    switch (function.number)
    {
      case MakeDictionary:
        this->PushItems(PickleKind::Dictionary, {}, true);
        break;
      case MakeSet:
        this->Push(PickleKind::Set);
        break;
      case MakeDevice:
        this->Push(PickleKind::Other);
        break;
      case MakeTensor:
        this->PushTensor(arguments);
        break;
      default: // the first argument itself
        this->Require(
          arguments[0], function.number == TakeTuple ? PickleKind::Tuple : PickleKind::Tensor);
        this->PushIndex(arguments[0]);
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
      this->Fail("instruction BUILD sets attributes of ", NameOf(object.kind),
        ", expected an OrderedDict; it is not executed, and the file is refused.");
    }
  }

  /// ('storage', type, key, device, count) and in old files None: they are not views of another.
  void PushStorage()
  {
    const Index id = this->Pop();
    const std::vector<Index>& parts = this->ItemsOf(this->Require(id, PickleKind::Tuple));
    const bool isOld = parts.size() == 6;
    this->FailIf(
      (parts.size() != 5 && !isOld) || this->Require(parts[0], PickleKind::Text).text != "storage",
      "expected a storage as persistent id, found something else.");
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
  void PushTensor(const std::vector<Index>& arguments)
  {
    PickleTensor tensor;
    tensor.storage =
      static_cast<std::size_t>(this->Require(arguments[0], PickleKind::Storage).number);
    tensor.offset = static_cast<std::uint64_t>(this->Unsigned(arguments[1]));
    tensor.shape = this->Sizes(arguments[2]);
    tensor.stride = this->Sizes(arguments[3]);
    if (tensor.shape.size() != tensor.stride.size())
    {
      this->Fail("expected as many strides as axes, found ", ToString(tensor.stride), " for shape ",
        ToString(tensor.shape), ".");
    }
    for (std::size_t i = 5; i < arguments.size(); ++i)
    {
      const PickleValue& extra = this->Value(arguments[i]);
      this->FailIf(extra.kind != PickleKind::None &&
                     !this->ItemsOf(this->Require(arguments[i], PickleKind::Dictionary)).empty(),
        "expected a tensor without hooks, and not marked as conjugate or negative.");
    }
    this->Count(2 * tensor.shape.size());
    const std::int64_t number = this->Objects.tensors.size();
    this->Objects.tensors.push_back(std::move(tensor));
    this->Push(PickleKind::Tensor, number);
  }

  std::int64_t Unsigned(Index index)
  {
    const std::int64_t number = this->Require(index, PickleKind::Integer).number;
    this->FailIf(number < 0, "expected a number of at least 0, found ", number, ".");
    return number;
  }

  Shape Sizes(Index index)
  {
    Shape sizes;
    const std::vector<Index>& items = this->ItemsOf(this->Require(index, PickleKind::Tuple));
    this->FailIf(items.size() > MaximumTorchAxes, "expected a tensor of at most ", MaximumTorchAxes,
      " axes, found ", items.size(), ".");
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
