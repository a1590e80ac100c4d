#include "vtkSquaresRepresentation.h"

#include "Drawing/LabelPlacement.h"
#include "ShownPiece.h"
#include "Text/ScreenText.h"
#include "ViewTexts.h"
#include "vtkDiagramView.h"

#include <vtkActor.h>
#include <vtkCellArray.h>
#include <vtkDataArray.h>
#include <vtkFieldData.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkMPIMoveData.h>
#include <vtkMatrix4x4.h>
#include <vtkObjectFactory.h>
#include <vtkPVImageSliceMapper.h>
#include <vtkPVLODActor.h>
#include <vtkPVRenderView.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkPolyDataMapper.h>
#include <vtkProperty.h>
#include <vtkRenderer.h>
#include <vtkSmartPointer.h>
#include <vtkStringArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace
{

/// The height of a line of text and the distance of texts, in the size of letters.
constexpr double Line = 1.2;
constexpr double TextGap = 0.5;
/// Beside panels, which leave room for texts in the scene: the height of letters in squares, of
/// many squares in these on the longer side of the image, so that letters can be read; the distance
/// of texts and how much of atlas::LabelWidth a letter has, both in squares for letters of
/// LabelHeight.
constexpr double LabelHeight = 0.72;
constexpr double LettersPerSide = 90;
constexpr double Gap = 0.3;
constexpr double WidthScale = 0.9;

/// Turns each point of a 2D image into a square centered on it. The texture of a slice extends from
/// the first point to the last, so these are moved outward by half a square. A single row or
/// column, which a slice cannot show, is doubled.
void GrowToSquares(vtkImageData* image)
{
  std::array<int, 6> extent;
  image->GetExtent(extent.data());
  if (image->GetNumberOfPoints() == 0 || extent[4] != extent[5])
  {
    return;
  }
  std::array<double, 3> origin;
  std::array<double, 3> spacing;
  image->GetOrigin(origin.data());
  image->GetSpacing(spacing.data());
  const int width = extent[1] - extent[0] + 1;
  const int height = extent[3] - extent[2] + 1;
  std::array<int, 6> grown = extent;
  for (std::size_t axis = 0; axis < 2; ++axis)
  {
    const int count = extent[2 * axis + 1] - extent[2 * axis] + 1;
    grown[2 * axis + 1] = extent[2 * axis] + std::max(count, 2) - 1;
    const double step = count * spacing[axis] / (std::max(count, 2) - 1);
    origin[axis] += (extent[2 * axis] - 0.5) * spacing[axis] - extent[2 * axis] * step;
    spacing[axis] = step;
  }
  if (grown != extent)
  {
    vtkNew<vtkImageData> doubled;
    doubled->SetExtent(grown.data());
    vtkPointData* from = image->GetPointData();
    vtkPointData* to = doubled->GetPointData();
    to->CopyAllOn();
    to->CopyAllocate(from, doubled->GetNumberOfPoints());
    for (vtkIdType i = 0; i < doubled->GetNumberOfPoints(); ++i)
    {
      const vtkIdType shownWidth = grown[1] - grown[0] + 1;
      const vtkIdType x = std::min<vtkIdType>(i % shownWidth, width - 1);
      const vtkIdType y = std::min<vtkIdType>(i / shownWidth, height - 1);
      to->CopyData(from, y * width + x, i);
    }
    doubled->GetFieldData()->ShallowCopy(image->GetFieldData());
    image->ShallowCopy(doubled);
  }
  image->SetOrigin(origin.data());
  image->SetSpacing(spacing.data());
}

vtkStringArray* Tokens(vtkDataObject* image, const char* name)
{
  return vtkStringArray::SafeDownCast(image->GetFieldData()->GetAbstractArray(name));
}

/// The title of an axis: the first value of a field array, or the name that it has in an
/// AttentionMap.
std::string AxisTitle(vtkDataObject* image, const std::string& name)
{
  const std::string field = name + " Title";
  vtkStringArray* title = Tokens(image, field.c_str());
  return title != nullptr && title->GetNumberOfValues() > 0 ? std::string(title->GetValue(0))
                                                            : name;
}

bool HasTokens(vtkDataObject* image)
{
  vtkStringArray* keys = Tokens(image, "Key Token");
  vtkStringArray* queries = Tokens(image, "Query Token");
  return keys != nullptr && queries != nullptr && keys->GetNumberOfValues() > 0 &&
         queries->GetNumberOfValues() > 0;
}

/// The most rows or columns of an image without tokens between which lines are drawn.
constexpr int MostLines = 64;

/// A line through points of the plane.
void AddLine(const std::vector<std::array<double, 2>>& through, vtkPolyData* lines)
{
  lines->GetLines()->InsertNextCell(static_cast<int>(through.size()));
  for (const auto& [x, y] : through)
  {
    lines->GetLines()->InsertCellPoint(lines->GetPoints()->InsertNextPoint(x, y, 0));
  }
}

/// Whether the points of an image are pixels of a picture.
bool IsPicture(vtkImageData* image)
{
  for (int i = 0; i < image->GetPointData()->GetNumberOfArrays(); ++i)
  {
    vtkDataArray* array = image->GetPointData()->GetArray(i);
    if (array != nullptr && array->GetDataType() == VTK_UNSIGNED_CHAR &&
        array->GetNumberOfComponents() == 3)
    {
      return true;
    }
  }
  return false;
}

/// The frame of squares: of an image with tokens around all, and of a small one without around
/// each, so that white ones are seen. Empty of others, and of pictures.
vtkSmartPointer<vtkPolyData> MakeFrame(vtkImageData* image, bool aroundEach)
{
  const auto frame = vtkSmartPointer<vtkPolyData>::New();
  frame->SetPoints(vtkNew<vtkPoints>());
  frame->SetLines(vtkNew<vtkCellArray>());
  const int* extent = image->GetExtent();
  const int columns = extent[1] - extent[0] + 1;
  const int rows = extent[3] - extent[2] + 1;
  if (image->GetNumberOfPoints() == 0 ||
      (aroundEach && (std::max(columns, rows) > MostLines || IsPicture(image))))
  {
    return frame;
  }
  const double* origin = image->GetOrigin();
  const double* step = image->GetSpacing();
  const auto x = [&](int column) { return origin[0] + (extent[0] + column - 0.5) * step[0]; };
  const auto y = [&](int row) { return origin[1] + (extent[2] + row - 0.5) * step[1]; };
  AddLine({ { x(0), y(0) }, { x(columns), y(0) }, { x(columns), y(rows) }, { x(0), y(rows) },
            { x(0), y(0) } },
    frame);
  for (int column = 1; aroundEach && column < columns; ++column)
  {
    AddLine({ { x(column), y(0) }, { x(column), y(rows) } }, frame);
  }
  for (int row = 1; aroundEach && row < rows; ++row)
  {
    AddLine({ { x(0), y(row) }, { x(columns), y(row) } }, frame);
  }
  return frame;
}

/// The tokens of an axis that have labels: all, or an even choice of MaximumLabels.
vtkIdType StrideOf(vtkIdType count)
{
  return (count + vtkSquaresRepresentation::MaximumLabels - 1) /
         vtkSquaresRepresentation::MaximumLabels;
}

/// Calls `visit(label, index)` for the tokens of an axis that have labels. Empty ones, as in the
/// gaps between panels, have none.
template<class Visit>
void EachLabel(vtkStringArray* tokens, const Visit& visit)
{
  const vtkIdType count = tokens->GetNumberOfValues();
  for (vtkIdType i = 0; i < count; i += StrideOf(count))
  {
    const std::string& token = tokens->GetValue(i);
    if (const std::string label = token.empty() ? token : atlas::ScreenLabel(token); !label.empty())
    {
      visit(label, i);
    }
  }
}

/// The width of the longest label of an axis, in heights of a line.
double WidestLabel(vtkStringArray* tokens)
{
  double widest = 0;
  EachLabel(tokens, [&widest](const std::string& label, vtkIdType)
    { widest = std::max(widest, atlas::LabelWidth(label)); });
  return widest;
}

/// The rectangle of a map, and the space for its labels.
struct Layout
{
  vtkIdType columns;
  vtkIdType rows;
  double step;      ///< distance of columns
  double rowStep;   ///< distance of rows
  double unit;      ///< the side of a square, the smaller one of a rectangle
  double first;     ///< the middle of the first column
  double bottomRow; ///< the middle of the last row
  double letters;   ///< the height of the labels
  double labelRoom; ///< space for the labels
  double title;     ///< height of the axis titles

  explicit Layout(vtkImageData* image)
    : columns(Tokens(image, "Key Token")->GetNumberOfValues())
    , rows(Tokens(image, "Query Token")->GetNumberOfValues())
    , step(image->GetSpacing()[0])
    , rowStep(image->GetSpacing()[1])
    , unit(std::min(step, rowStep))
    , first(image->GetOrigin()[0])
    , bottomRow(image->GetOrigin()[1])
    , letters(unit * std::max(LabelHeight, static_cast<double>(this->Longer()) / LettersPerSide))
    , labelRoom(letters / LabelHeight *
                (Gap + WidthScale * std::max(WidestLabel(Tokens(image, "Key Token")),
                                      WidestLabel(Tokens(image, "Query Token")))))
    , title(unit * std::max(LabelHeight, static_cast<double>(this->Longer()) / 30))
  {
  }

  /// The distance of rows, or of columns, that can have labels.
  double LabelStep(bool ofRows) const
  {
    return ofRows ? this->rowStep * static_cast<double>(StrideOf(this->rows))
                  : this->step * static_cast<double>(StrideOf(this->columns));
  }
  vtkIdType Longer() const { return std::max(this->columns, this->rows); }
  double Left() const { return this->first - 0.5 * this->step; }
  double Right() const { return this->Left() + this->Width(); }
  double Bottom() const { return this->bottomRow - 0.5 * this->rowStep; }
  double Top() const { return this->Bottom() + this->Height(); }
  double Width() const { return this->step * static_cast<double>(this->columns); }
  double Height() const { return this->rowStep * static_cast<double>(this->rows); }
  double Room() const { return this->labelRoom + 2 * this->title; }
};

/// Whether an image has several panels, whose texts the panels' titles have left room for.
bool HasPanels(vtkDataObject* image)
{
  vtkStringArray* queries = Tokens(image, "Query Token");
  const auto* first = queries->GetPointer(0);
  return std::any_of(first, first + queries->GetNumberOfValues(),
    [](const std::string& text) { return text.empty(); });
}

}

/// A text beside the squares.
struct vtkSquaresRepresentation::Label
{
  std::string text;
  bool isRow; ///< at the left of the squares, otherwise below them
  bool isTitle;
  vtkIdType index;  ///< among the rows or columns of its panel that can have labels
  vtkIdType toNext; ///< from there to those of the next panel
  double along;     ///< where it is on its axis
};

/// The texts of a view.
struct vtkSquaresRepresentation::Labels
{
  vtkSquaresRepresentation* owner;
  AttentionAtlas::ViewTexts texts;
  std::vector<Label> all;
  std::optional<Layout> layout; ///< of the squares that these belong to
  bool hasPanels = false;

  void Place();
};

vtkStandardNewMacro(vtkSquaresRepresentation);

vtkSquaresRepresentation::vtkSquaresRepresentation()
  : Shown(new Labels{ this, {}, {}, {}, false })
{
  this->Frame->GetProperty()->LightingOff();
  this->Frame->GetProperty()->SetLineWidth(1);
  this->Frame->PickableOff();
  this->Frame->VisibilityOff();
}

vtkSquaresRepresentation::~vtkSquaresRepresentation()
{
  this->Shown->texts.Leave();
}

void vtkSquaresRepresentation::SetTokenLabels(bool shown)
{
  if (this->TokenLabels != shown)
  {
    this->TokenLabels = shown;
    this->MarkModified();
  }
}

void vtkSquaresRepresentation::SetVisibility(bool visible)
{
  this->Superclass::SetVisibility(visible);
  this->UpdateFrame();
}

int vtkSquaresRepresentation::ProcessViewRequest(
  vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output)
{
  if (request == vtkPVView::REQUEST_RENDER())
  {
    // The superclass would make the mapper show the points.
    // NOLINTNEXTLINE(bugprone-parent-virtual-call)
    if (vtkPVDataRepresentation::ProcessViewRequest(request, input, output) == 0)
    {
      return 0;
    }
    this->Render(input);
    return 1;
  }
  if (this->Superclass::ProcessViewRequest(request, input, output) == 0)
  {
    return 0;
  }
  if (request == vtkPVView::REQUEST_UPDATE())
  {
    // Also to a client, which draws the texts wherever the squares are drawn.
    vtkPVRenderView::SetForceDataDistributionMode(input, vtkMPIMoveData::COLLECT);
    if (this->SliceData->GetNumberOfPoints() > 0)
    {
      this->UpdateBounds(input);
    }
  }
  return 1;
}

void vtkSquaresRepresentation::UpdateBounds(vtkInformation* input)
{
  std::array<double, 6> bounds;
  this->SliceData->GetBounds(bounds.data());
  const double* spacing = this->SliceData->GetSpacing();
  for (std::size_t axis = 0; axis < 2; ++axis)
  {
    bounds[2 * axis] -= spacing[axis] / 2;
    bounds[2 * axis + 1] += spacing[axis] / 2;
  }
  const bool hasLabels = this->TokenLabels && HasTokens(this->SliceData);
  auto* diagram = vtkDiagramView::SafeDownCast(this->GetView());
  if (hasLabels && diagram != nullptr && !HasPanels(this->SliceData))
  {
    const double beside = TextSize * (2 * TextGap + Line);
    const double half = TextSize / 2.;
    diagram->AddTextRoom(
      { beside + this->WidestOf("Query Token"), half, beside + this->WidestOf("Key Token"), half });
  }
  else if (hasLabels)
  {
    // The axis titles are longer than the sides of a map of a few tokens.
    const Layout layout(this->SliceData);
    const auto half = [&](double side) { return std::max(side / 2, 1.6 * layout.title); };
    bounds = { layout.Left() - layout.Room(),
      (layout.Left() + layout.Right()) / 2 + half(layout.Width()), layout.Bottom() - layout.Room(),
      (layout.Bottom() + layout.Top()) / 2 + half(layout.Height()), 0, 0 };
  }
  vtkPVRenderView::SetGeometryBounds(input, this, bounds.data(), this->Actor->GetMatrix());
}

/// The width of the widest label of an axis with letters of TextSize, in points.
double vtkSquaresRepresentation::WidestOf(const char* axis)
{
  int widest = 0;
  EachLabel(Tokens(this->SliceData, axis), [&](const std::string& label, vtkIdType)
    { widest = std::max(widest, this->Shown->texts.Measure(label, TextSize)[0]); });
  return widest * this->Shown->texts.GetPoint();
}

void vtkSquaresRepresentation::Render(vtkInformation* input)
{
  auto* image = vtkImageData::SafeDownCast(AttentionAtlas::ShownPiece(input, this));
  if (image != nullptr && image->GetMTime() != this->ShownTime)
  {
    this->Squares->ShallowCopy(image);
    GrowToSquares(this->Squares); // not earlier, since a client first joins the parts of all ranks
    this->SliceMapper->SetInputData(this->Squares);
    this->BuildLabels(image);
    this->ShownTime = image->GetMTime();
  }
  // For an image without points the mapper would report a missing array.
  this->Actor->SetVisibility(
    this->GetVisibility() && image != nullptr && image->GetNumberOfPoints() > 0);
  this->UpdateFrame();
}

void vtkSquaresRepresentation::BuildLabels(vtkImageData* image)
{
  std::vector<Label>& labels = this->Shown->all;
  labels.clear();
  vtkNew<vtkPolyDataMapper> mapper;
  mapper->SetInputData(MakeFrame(image, !HasTokens(image)));
  this->Frame->SetMapper(mapper);
  if (!HasTokens(image))
  {
    return;
  }
  const Layout layout(image);
  const double left = layout.Left();
  const double right = layout.Right();
  const double bottom = layout.Bottom();
  const double top = layout.Top();
  this->Shown->layout = layout;
  this->Shown->hasPanels = HasPanels(image);
  for (const bool isRow : { true, false })
  {
    const std::string axis = isRow ? "Query" : "Key";
    vtkStringArray* tokens = Tokens(image, (axis + " Token").c_str());
    const vtkIdType stride = StrideOf(tokens->GetNumberOfValues());
    std::size_t panel = labels.size(); // its first label
    vtkIdType start = 0;               // the token of that
    vtkIdType last = 0;
    EachLabel(tokens,
      [&](const std::string& text, vtkIdType i)
      {
        if (i > last + stride) // behind a gap
        {
          for (; panel < labels.size(); ++panel)
          {
            labels[panel].toNext = (i - start) / stride - labels[panel].index;
          }
          start = i;
        }
        last = i;
        const auto place = static_cast<double>(i);
        labels.push_back({ text, isRow, false, (i - start) / stride, VTK_ID_MAX,
          isRow ? top - layout.rowStep * (place + 0.5) : layout.first + layout.step * place });
      });
    labels.push_back({ atlas::ScreenText(AxisTitle(image, axis)), isRow, true, 0, VTK_ID_MAX,
      isRow ? (bottom + top) / 2 : (left + right) / 2 });
  }
}

void vtkSquaresRepresentation::UpdateFrame()
{
  const bool isShown =
    this->GetVisibility() && this->TokenLabels && this->Frame->GetMapper() != nullptr;
  this->Frame->SetVisibility(isShown);
  if (!isShown || this->Renderer == nullptr)
  {
    return;
  }
  const double ink = AttentionAtlas::InkOn(this->Renderer->GetBackground()); // as shown
  constexpr double Gray = 0.7;
  const double shade = this->Shown->all.empty() ? Gray : ink;
  this->Frame->GetProperty()->SetColor(shade, shade, shade);
  this->Frame->SetUserMatrix(this->Actor->GetMatrix());
}

/// Before each rendering. Letters have TextSize; those of panels, for which there is room in the
/// scene, shrink with it. Where they would be too small, words are cut, or left out if nearly
/// nothing would remain of them.
void vtkSquaresRepresentation::Labels::Place()
{
  if (!this->owner->Frame->GetVisibility() || this->all.empty() || !this->layout)
  {
    return;
  }
  const Layout& squares = *this->layout;
  const double left = squares.Left();
  const double bottom = squares.Bottom();
  const double rowStep = squares.LabelStep(true);
  const auto toScreen = this->texts.ToScreen(this->owner->Actor->GetMatrix());
  const auto size = this->texts.GetSize();
  const auto tiles = this->texts.GetTiles();
  const auto place = [&](double x, double y) -> std::array<double, 2>
  {
    std::array<double, 4> at = { x, y, 0, 1 };
    toScreen->MultiplyPoint(at.data(), at.data());
    return { at[0] / at[3] * size[0], at[1] / at[3] * size[1] };
  };
  // A length of the scene in points, at the lower left of the squares.
  const auto corner = place(left, bottom);
  const auto above = place(left, bottom + rowStep);
  const double scale = std::hypot(above[0] - corner[0], above[1] - corner[1]) / tiles[1] *
                       this->texts.GetPoint() / rowStep;
  if (!(scale > 0) || !std::isfinite(scale))
  {
    return;
  }
  const auto lettersOf = [&](double room)
  { return this->hasPanels ? std::min(room * scale, TextSize * 1.0) : TextSize; };
  const double letters = std::max(lettersOf(squares.letters), SmallestText * 1.0);
  const double gap = TextGap * letters / scale;
  constexpr double LeastRoom = 2; // in letters' heights
  const double room = this->hasPanels ? (squares.labelRoom - gap) * scale : LeastRoom * letters;
  const bool hasRoom = room >= LeastRoom * letters;
  vtkIdType thinned = 1;
  for (const bool isRow : { false, true })
  {
    const double step = scale * squares.LabelStep(isRow);
    const auto every = std::max<vtkIdType>(1, std::llround(std::ceil(Line * letters / step)));
    thinned = std::max(thinned, every);
    double widest = 0; // of the labels, in the scene
    for (const bool isTitle : { false, true })
    {
      const double height =
        isTitle ? std::max(lettersOf(squares.title), SmallestText * 1.0) : letters;
      const double away = gap + (isTitle ? widest + height / scale / 2 : 0);
      using Texts = AttentionAtlas::ViewTexts;
      const Texts::Style style = { std::max(static_cast<int>(height), 1),
        isTitle ? Texts::Along::Middle : Texts::Along::Right,
        !isTitle ? Texts::Across::Middle
        : isRow  ? Texts::Across::Bottom
                 : Texts::Across::Top,
        isRow == isTitle };
      for (const Label& label : this->all)
      {
        if (label.isRow == isRow && label.isTitle == isTitle && (isTitle || hasRoom) &&
            label.index % every == 0 && label.toNext >= every)
        {
          const std::string text =
            this->hasPanels && !isTitle
              ? this->texts.Cut(label.text, style.fontSize, room / this->texts.GetPoint())
              : label.text;
          widest = std::max(
            widest, this->texts.Measure(text, style.fontSize)[0] * this->texts.GetPoint() / scale);
          this->texts.Show(text, style,
            isRow ? place(left - away, label.along) : place(label.along, bottom - away));
        }
      }
    }
  }
  auto* diagram = vtkDiagramView::SafeDownCast(this->owner->GetView());
  if (this->hasPanels && (!hasRoom || thinned > 1) && diagram != nullptr && diagram->GetMargins())
  {
    this->texts.ShowNote(
      hasRoom ? "Room for one word in " + std::to_string(thinned) : "No room for words");
  }
}

bool vtkSquaresRepresentation::AddToView(vtkView* view)
{
  if (!this->Superclass::AddToView(view))
  {
    return false;
  }
  this->Renderer = vtkPVRenderView::SafeDownCast(view)->GetRenderer();
  this->Renderer->AddActor(this->Frame);
  this->Shown->texts.Enter(vtkPVRenderView::SafeDownCast(view), [this] { this->Shown->Place(); });
  this->ShownTime = 0;
  return true;
}

bool vtkSquaresRepresentation::RemoveFromView(vtkView* view)
{
  this->Shown->texts.Leave();
  if (this->Renderer != nullptr)
  {
    this->Renderer->RemoveActor(this->Frame);
  }
  this->Renderer = nullptr;
  return this->Superclass::RemoveFromView(view);
}
