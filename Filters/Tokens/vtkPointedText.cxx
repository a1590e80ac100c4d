#include "vtkPointedText.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "Task.h"
#include "Text/TokenLabel.h"

#include <vtkCellData.h>
#include <vtkDataArray.h>
#include <vtkDataSet.h>
#include <vtkDataSetAttributes.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <cmath>
#include <iomanip>
#include <optional>
#include <sstream>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

vtkStandardNewMacro(vtkPointedText);

namespace
{

/// A text of an array; empty if the array or the value is missing.
std::string TextOf(vtkFieldData* arrays, const char* name, vtkIdType row)
{
  auto* texts = vtkStringArray::SafeDownCast(arrays->GetAbstractArray(name));
  return texts != nullptr && row >= 0 && row < texts->GetNumberOfValues()
           ? std::string(texts->GetValue(row))
           : std::string();
}

/// A number of an array of one component; none if it is missing.
std::optional<double> NumberOf(vtkFieldData* arrays, const char* name, vtkIdType row)
{
  vtkDataArray* numbers = arrays->GetArray(name);
  return numbers != nullptr && numbers->GetNumberOfComponents() == 1 && row >= 0 &&
             row < numbers->GetNumberOfTuples()
           ? std::optional(numbers->GetTuple1(row))
           : std::nullopt;
}

/// The first row with a number; -1 if there is none.
vtkIdType FindRow(vtkFieldData* arrays, const char* name, double number)
{
  vtkDataArray* numbers = arrays->GetArray(name);
  for (vtkIdType i = 0; numbers != nullptr && i < numbers->GetNumberOfTuples(); ++i)
  {
    if (numbers->GetComponent(i, 0) == number)
    {
      return i;
    }
  }
  return -1;
}

std::string Quoted(const std::string& token)
{
  return "\"" + atlas::WithLeadingSpaces(atlas::TokenLabel(token)) + "\"";
}

/// A row or column of an image, along one axis.
struct Strip
{
  const char* tokens;
  const char* title;
  const char* position;
  const char* plural;
};
constexpr Strip Rows = { Names::QueryToken, Names::QueryTitle, "Query", "Queries" };
constexpr Strip Columns = { Names::KeyToken, Names::KeyTitle, "Key", "Keys" };

class Description
{
public:
  Description(vtkDataSet* data, vtkDataSetAttributes* arrays, vtkIdType row)
    : Fields(data->GetFieldData())
    , Arrays(arrays)
    , Row(row)
  {
  }

  void AddHead()
  {
    auto layer = NumberOf(this->Arrays, Names::Layer, this->Row);
    auto head = NumberOf(this->Arrays, Names::Head, this->Row);
    layer = layer ? layer : NumberOf(this->Fields, Names::Layer, 0);
    head = head ? head : NumberOf(this->Fields, Names::Head, 0);
    if (layer && *layer >= 0)
    {
      this->Begin() << "Layer " << *layer;
      if (head && *head >= 0)
      {
        this->Text << ", head " << *head;
      }
    }
  }

  /// A row or column of an image, whose tokens have these positions unless the points have theirs.
  void AddStrip(const Strip& strip, vtkIdType index, double middle, double cell)
  {
    const std::string token = TextOf(this->Fields, strip.tokens, index);
    const std::string title = TextOf(this->Fields, strip.title, 0);
    const bool hasPositions = this->Arrays->GetArray(strip.position) != nullptr;
    const auto position = NumberOf(this->Arrays, strip.position, this->Row);
    if (!title.empty() && !token.empty())
    {
      this->Begin() << title;
      if (position)
      {
        this->Text << ' ' << std::llround(*position);
      }
      this->Text << ": " << token;
    }
    else if (position || (hasPositions && !token.empty()))
    {
      this->AddToken(strip.position, position, token);
    }
    else if (!hasPositions && !token.empty() && cell > 1)
    {
      this->Begin() << strip.plural << ' ' << std::llround(middle - (cell - 1) / 2) << " to "
                    << std::llround(middle + (cell - 1) / 2) << ", from " << Quoted(token);
    }
    else if (!hasPositions && !token.empty())
    {
      this->AddToken(strip.position, middle, token);
    }
  }

  /// The tokens of a line, and that of a word. `words`: the tokens by Token Index; may be null.
  void AddNames(vtkDataSet* words)
  {
    for (const Strip& strip : { Rows, Columns })
    {
      if (const auto index = NumberOf(this->Arrays, strip.position, this->Row))
      {
        vtkFieldData* known = words != nullptr ? words->GetPointData() : this->Arrays;
        const vtkIdType word = words != nullptr ? FindRow(known, Names::TokenIndex, *index) : -1;
        const auto position = NumberOf(known, Names::Position, word);
        this->AddToken(
          strip.position, position ? position : index, TextOf(known, Names::Token, word));
      }
    }
    vtkFieldData* known = this->Arrays;
    vtkIdType word = this->Row;
    const auto index = NumberOf(this->Arrays, Names::TokenIndex, this->Row);
    if (words != nullptr && index)
    {
      known = words->GetPointData();
      word = FindRow(known, Names::TokenIndex, *index);
    }
    const std::string token = TextOf(known, Names::Token, word);
    if (!token.empty())
    {
      this->AddToken("Token", NumberOf(known, Names::Position, word), token);
    }
  }

  void AddNumbers(const std::string& names)
  {
    std::istringstream lines(names.empty() ? Names::Weight : names);
    for (std::string name; std::getline(lines, name);)
    {
      const auto number = NumberOf(this->Arrays, name.c_str(), this->Row);
      if (number && !std::isnan(*number)) // which is no number, as in the gray cells of a map
      {
        constexpr int digits = 4;
        this->Begin() << name << ": " << std::setprecision(digits) << *number;
      }
    }
  }

  std::string Get() const { return this->Text.str(); }

private:
  vtkFieldData* Fields;
  vtkDataSetAttributes* Arrays;
  vtkIdType Row;
  std::ostringstream Text;

  void AddToken(const char* name, const std::optional<double>& position, const std::string& token)
  {
    this->Begin() << name;
    if (position)
    {
      this->Text << ' ' << std::llround(*position);
    }
    this->Text << (token.empty() ? "" : ": " + Quoted(token));
  }

  std::ostream& Begin()
  {
    return this->Text << (this->Text.tellp() > 0 ? "\n" : "") << std::setprecision(10);
  }
};

/// What is at a place of an image, or the row or column of a label to the left or below. `whole`:
/// the extent of the image, of which this rank may have a part.
std::string DescribePlace(vtkImageData* image, const std::array<int, 6>& whole,
  const std::array<double, 2>& place, const std::string& quantities)
{
  const double* origin = image->GetOrigin();
  const double* spacing = image->GetSpacing();
  const double x = std::floor((place[0] - origin[0]) / spacing[0] + 0.5);
  const double y = std::floor((place[1] - origin[1]) / spacing[1] + 0.5);
  const bool isColumn = x >= whole[0] && x <= whole[1];
  const bool isRow = y >= whole[2] && y <= whole[3];
  if ((!isColumn && !(isRow && x < whole[0])) || (!isRow && !(isColumn && y < whole[2])))
  {
    return {};
  }
  vtkIdType point = -1; // beside
  if (isColumn && isRow)
  {
    const int* part = image->GetExtent();
    if (x < part[0] || x > part[1] || y < part[2] || y > part[3])
    {
      return {}; // of another rank
    }
    std::array<int, 3> index = { static_cast<int>(x), static_cast<int>(y), part[4] };
    point = image->ComputePointId(index.data());
    for (const char* name : { Names::Layer, Names::Head })
    {
      if (NumberOf(image->GetPointData(), name, point).value_or(0) < 0)
      {
        return {}; // between panels
      }
    }
  }
  Description text(image, image->GetPointData(), point);
  if (point >= 0)
  {
    text.AddHead();
  }
  if (isRow)
  {
    const auto fromAbove = whole[3] - static_cast<vtkIdType>(y);
    text.AddStrip(Rows, fromAbove, -(origin[1] + y * spacing[1]), spacing[1]);
  }
  if (isColumn)
  {
    text.AddStrip(Columns, static_cast<vtkIdType>(x), origin[0] + x * spacing[0], spacing[0]);
  }
  text.AddNumbers(quantities);
  return text.Get();
}

/// What the first cell is, else the first point.
std::string DescribeFirst(vtkDataSet* data, vtkDataSet* words, const std::string& quantities)
{
  vtkDataSetAttributes* arrays = data->GetPointData();
  if (data->GetNumberOfCells() > 0 && data->GetCellData()->GetNumberOfArrays() > 0)
  {
    arrays = data->GetCellData();
  }
  else if (data->GetNumberOfPoints() == 0)
  {
    return {};
  }
  Description text(data, arrays, 0);
  text.AddHead();
  text.AddNames(words);
  text.AddNumbers(quantities);
  return text.Get();
}

}

vtkPointedText::vtkPointedText()
  : vtkTaskAlgorithm({ "vtkDataSet", "vtkDataSet?" }, { "vtkTable" }, TOGETHER | WHOLE_INPUT)
{
}

void vtkPointedText::Execute(Task& task)
{
  auto* data = task.Input<vtkDataSet>();
  auto* image = vtkImageData::SafeDownCast(data);
  std::string text;
  if (image != nullptr && image->GetNumberOfPoints() > 0)
  {
    std::array<int, 6> whole;
    image->GetExtent(whole.data());
    vtkInformation* info = task.InputInformation();
    if (info->Has(vtkStreamingDemandDrivenPipeline::WHOLE_EXTENT()) != 0)
    {
      info->Get(vtkStreamingDemandDrivenPipeline::WHOLE_EXTENT(), whole.data());
    }
    text = DescribePlace(image, whole, { this->Place[0], this->Place[1] }, this->Quantities);
  }
  else if (image == nullptr && data != nullptr)
  {
    text = DescribeFirst(data, task.Input<vtkDataSet>(1), this->Quantities);
  }
  for (const std::vector<char>& found : task.Ranks().Share({ text.begin(), text.end() }))
  {
    if (!found.empty())
    {
      AddField(
        task.Output<vtkTable>()->GetFieldData(), "Text", std::string(found.begin(), found.end()));
      return;
    }
  }
}
