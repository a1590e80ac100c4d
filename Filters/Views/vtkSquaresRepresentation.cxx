#include "vtkSquaresRepresentation.h"

#include "Ink.h"
#include "vtkDiagramView.h"

#include <vtkActor.h>
#include <vtkAlgorithmOutput.h>
#include <vtkCamera.h>
#include <vtkCellArray.h>
#include <vtkCommand.h>
#include <vtkFieldData.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkMatrix4x4.h>
#include <vtkMultiProcessController.h>
#include <vtkObjectFactory.h>
#include <vtkPVImageSliceMapper.h>
#include <vtkPVLODActor.h>
#include <vtkPVRenderView.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkPolyDataMapper.h>
#include <vtkProperty.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkSmartPointer.h>
#include <vtkStringArray.h>
#include <vtkTextProperty.h>
#include <vtkTextRenderer.h>
#include <vtkTexture.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace
{

/// The font size at which labels are rendered before they are scaled, in pixels.
constexpr int FontSize = 48;
/// In a diagram, the height of a line of text and the distance of texts, in the size of letters.
constexpr double Line = 1.2;
constexpr double TextGap = 0.5;
/// Heights and distances, in squares.
constexpr double LabelHeight = 0.72;
constexpr double Gap = 0.3;
/// The assumed width of a letter, in squares; most letters are narrower.
constexpr double LetterWidth = 0.4;

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

/// A token as a label: without surrounding spaces; a token of only white space is shown by escape
/// sequences, and an empty one has no label.
std::string Readable(const std::string& token)
{
  constexpr const char* Space = " \t\n\r";
  const std::size_t first = token.find_first_not_of(Space);
  if (first != std::string::npos)
  {
    return token.substr(first, token.find_last_not_of(Space) - first + 1);
  }
  if (token.empty())
  {
    return {};
  }
  std::string text = "'";
  for (const char c : token)
  {
    text += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : " ";
  }
  return text + "'";
}

/// The number of characters of the longest token, in UTF-8.
std::size_t LongestToken(vtkStringArray* tokens)
{
  std::size_t longest = 0;
  for (vtkIdType i = 0; i < tokens->GetNumberOfValues(); ++i)
  {
    const std::string text = Readable(tokens->GetValue(i));
    const auto letters = std::count_if(text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    longest = std::max(longest, static_cast<std::size_t>(letters));
  }
  return longest;
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
  bool labelled;    ///< whether each token has a label
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
    , labelled(this->Longer() <= vtkSquaresRepresentation::MaximumLabels)
    , labelRoom(labelled
                  ? unit * (Gap + LetterWidth * static_cast<double>(
                                                  std::max(LongestToken(Tokens(image, "Key Token")),
                                                    LongestToken(Tokens(image, "Query Token")))))
                  : 0)
    , title(unit * std::max(LabelHeight, static_cast<double>(this->Longer()) / 30))
  {
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

/// How a text lies at its place.
struct Lie
{
  bool upwards; ///< rotated by 90 degrees
  bool centred; ///< otherwise the text ends there
};

/// The width of a text in the size of its letters; 0 if it cannot be drawn.
double TextWidth(const std::string& text)
{
  vtkNew<vtkTextProperty> style;
  style->SetFontSize(FontSize);
  std::array<int, 4> box = { 0, -1, 0, -1 };
  vtkTextRenderer* renderer = vtkTextRenderer::GetInstance();
  return renderer != nullptr && renderer->GetBoundingBox(style, text, box.data(), 72)
           ? static_cast<double>(box[1] - box[0] + 1) / FontSize
           : 0;
}

/// White text with letters of the size 1, on a rectangle that is drawn only where there are
/// letters, at the origin. The actor is opaque, since with several ranks only opaque actors are
/// drawn in front of the background.
vtkSmartPointer<vtkActor> MakeText(const std::string& text, const Lie& lie)
{
  vtkNew<vtkTextProperty> style;
  style->SetFontSize(FontSize);
  style->SetColor(1, 1, 1);
  vtkNew<vtkImageData> image;
  std::array<int, 2> size = { 0, 0 };
  vtkTextRenderer* renderer = vtkTextRenderer::GetInstance();
  if (renderer == nullptr || !renderer->RenderString(style, text, image, size.data(), 72))
  {
    return nullptr;
  }
  std::array<int, 3> pixels;
  image->GetDimensions(pixels.data());

  const double width = static_cast<double>(size[0]) / FontSize;
  const double begin = lie.centred ? -width / 2 : -width;
  const double half = static_cast<double>(size[1]) / FontSize / 2;
  vtkNew<vtkPoints> corners;
  vtkNew<vtkFloatArray> coordinates;
  coordinates->SetNumberOfComponents(2);
  for (const auto& [right, up] : { std::pair(0, 0), { 1, 0 }, { 1, 1 }, { 0, 1 } })
  {
    const double along = begin + right * width;
    const double across = (2 * up - 1) * half;
    corners->InsertNextPoint(lie.upwards ? -across : along, lie.upwards ? along : across, 0);
    coordinates->InsertNextTuple2(right * static_cast<double>(size[0]) / pixels[0],
      up * static_cast<double>(size[1]) / pixels[1]);
  }
  vtkNew<vtkCellArray> rectangle;
  rectangle->InsertNextCell({ 0, 1, 2, 3 });
  vtkNew<vtkPolyData> shape;
  shape->SetPoints(corners);
  shape->SetPolys(rectangle);
  shape->GetPointData()->SetTCoords(coordinates);
  vtkNew<vtkPolyDataMapper> mapper;
  mapper->SetInputData(shape);
  vtkNew<vtkTexture> texture;
  texture->SetInputData(image);
  texture->InterpolateOn();
  texture->MipmapOn();
  auto actor = vtkSmartPointer<vtkActor>::New();
  actor->SetMapper(mapper);
  actor->SetTexture(texture);
  actor->GetProperty()->LightingOff();
  actor->ForceOpaqueOn();
  actor->PickableOff();
  return actor;
}

/// The tokens of an axis that have labels: all, or an even choice of MaximumLabels.
vtkIdType StrideOf(vtkIdType count)
{
  return (count + vtkSquaresRepresentation::MaximumLabels - 1) /
         vtkSquaresRepresentation::MaximumLabels;
}

/// The width of the widest label of an axis, in the size of its letters.
double WidestLabel(vtkStringArray* tokens)
{
  double widest = 0;
  const vtkIdType count = tokens->GetNumberOfValues();
  for (vtkIdType i = 0; i < count; i += StrideOf(count))
  {
    widest = std::max(widest, TextWidth(Readable(tokens->GetValue(i))));
  }
  return widest;
}

/// All that the labels of an image depend on.
std::string TextsOf(vtkImageData* image)
{
  std::string all;
  for (const double* numbers : { image->GetOrigin(), image->GetSpacing() })
  {
    all.append(reinterpret_cast<const char*>(numbers), 3 * sizeof(double));
  }
  for (const char* axis : { "Query", "Key" })
  {
    vtkStringArray* tokens = Tokens(image, (axis + std::string(" Token")).c_str());
    for (vtkIdType i = 0; i < tokens->GetNumberOfValues(); ++i)
    {
      all += tokens->GetValue(i) + '\0';
    }
    all += AxisTitle(image, axis) + '\0';
  }
  return all;
}

/// Whether an image has several panels, whose texts the panels' titles have left room for.
bool HasPanels(vtkDataObject* image)
{
  vtkStringArray* queries = Tokens(image, "Query Token");
  const vtkIdType count = queries->GetNumberOfValues();
  for (vtkIdType i = 0; i < count; ++i)
  {
    if (queries->GetValue(i).empty())
    {
      return true;
    }
  }
  return false;
}

}

/// A text beside the squares.
struct vtkSquaresRepresentation::Label
{
  vtkSmartPointer<vtkActor> actor;
  bool isRow = false; ///< at the left of the squares, otherwise below them
  bool isTitle = false;
  vtkIdType index = 0; ///< among the rows or columns that can have labels
  double along = 0;    ///< where it is on its axis
  double width = 0;    ///< in the size of letters
};

/// Where squares are, with the sizes of their texts in the scene.
struct vtkSquaresRepresentation::Grid
{
  double left;
  double bottom;
  double step;    ///< of columns that can have labels
  double rowStep; ///< of such rows
  double letters;
  double titleLetters;
  double gap;
  bool hasPanels;
};

vtkStandardNewMacro(vtkSquaresRepresentation);

vtkSquaresRepresentation::vtkSquaresRepresentation()
{
  this->Frame->GetProperty()->LightingOff();
  this->Frame->GetProperty()->SetLineWidth(1);
  this->Frame->PickableOff();
  this->Frame->VisibilityOff();
}

vtkSquaresRepresentation::~vtkSquaresRepresentation() = default;

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
  this->UpdateLabels();
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
  if (request == vtkPVView::REQUEST_UPDATE() && this->SliceData->GetNumberOfPoints() > 0)
  {
    this->UpdateBounds(input);
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
  if (this->TokenLabels && HasTokens(this->SliceData))
  {
    const Layout layout(this->SliceData);
    if (this->IsDiagram && !HasPanels(this->SliceData))
    {
      const double beside = TextSize * (2 * TextGap + Line);
      const double half = TextSize / 2;
      vtkDiagramView::SafeDownCast(this->GetView())
        ->AddTextRoom({ beside + TextSize * WidestLabel(Tokens(this->SliceData, "Query Token")),
          half, beside + TextSize * WidestLabel(Tokens(this->SliceData, "Key Token")), half });
      vtkPVRenderView::SetGeometryBounds(input, this, bounds.data(), this->Actor->GetMatrix());
      return;
    }
    // The axis titles are longer than the sides of a map of a few tokens.
    const auto half = [&](double side) { return std::max(side / 2, 1.6 * layout.title); };
    bounds = { layout.Left() - layout.Room(),
      (layout.Left() + layout.Right()) / 2 + half(layout.Width()), layout.Bottom() - layout.Room(),
      (layout.Bottom() + layout.Top()) / 2 + half(layout.Height()), 0, 0 };
  }
  vtkPVRenderView::SetGeometryBounds(input, this, bounds.data(), this->Actor->GetMatrix());
}

void vtkSquaresRepresentation::Render(vtkInformation* input)
{
  vtkAlgorithmOutput* port = vtkPVRenderView::GetPieceProducer(input, this);
  vtkAlgorithm* producer = port != nullptr ? port->GetProducer() : nullptr;
  auto* image = producer != nullptr
                  ? vtkImageData::SafeDownCast(producer->GetOutputDataObject(port->GetIndex()))
                  : nullptr;
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
  this->UpdateLabels();
}

void vtkSquaresRepresentation::BuildLabels(vtkImageData* image)
{
  // Another head of the same text has the same labels, which take longest to make.
  const std::string texts = HasTokens(image) ? TextsOf(image) : "";
  if (!this->Labels.empty() && texts == this->Texts)
  {
    return;
  }
  this->ClearLabels();
  this->Texts = texts;
  auto* controller = vtkMultiProcessController::GetGlobalController();
  const bool isFirst = controller == nullptr || controller->GetLocalProcessId() == 0;
  if (!isFirst || this->Renderer == nullptr || !HasTokens(image))
  {
    return; // only one rank draws them
  }
  const Layout layout(image);
  const double left = layout.Left();
  const double right = layout.Right();
  const double bottom = layout.Bottom();
  const double top = layout.Top();
  this->Shown = std::make_unique<Grid>(
    Grid{ left, bottom, layout.step * static_cast<double>(StrideOf(layout.columns)),
      layout.rowStep * static_cast<double>(StrideOf(layout.rows)), layout.unit * LabelHeight,
      layout.title, layout.unit * Gap, HasPanels(image) });
  const auto add = [&](const std::string& text, Label label)
  {
    const Lie lie = { label.isRow == label.isTitle, label.isTitle };
    label.actor = text.empty() ? nullptr : MakeText(text, lie);
    if (label.actor != nullptr)
    {
      label.width = TextWidth(text);
      this->Renderer->AddActor(label.actor);
      this->Labels.push_back(std::move(label));
    }
  };
  for (const bool isRow : { true, false })
  {
    const std::string axis = isRow ? "Query" : "Key";
    vtkStringArray* tokens = Tokens(image, (axis + " Token").c_str());
    const vtkIdType count = tokens->GetNumberOfValues();
    for (vtkIdType i = 0; (layout.labelled || this->IsDiagram) && i < count; i += StrideOf(count))
    {
      const auto place = static_cast<double>(i);
      add(Readable(tokens->GetValue(i)),
        { nullptr, isRow, false, i / StrideOf(count),
          isRow ? top - layout.rowStep * (place + 0.5) : layout.first + layout.step * place });
    }
    const double middle = isRow ? (bottom + top) / 2 : (left + right) / 2;
    add(AxisTitle(image, axis), { nullptr, isRow, true, 0, middle });
  }

  vtkNew<vtkPoints> corners;
  corners->InsertNextPoint(left, top, 0);
  corners->InsertNextPoint(right, top, 0);
  corners->InsertNextPoint(right, bottom, 0);
  corners->InsertNextPoint(left, bottom, 0);
  vtkNew<vtkCellArray> line;
  line->InsertNextCell({ 0, 1, 2, 3, 0 });
  vtkNew<vtkPolyData> frame;
  frame->SetPoints(corners);
  frame->SetLines(line);
  vtkNew<vtkPolyDataMapper> mapper;
  mapper->SetInputData(frame);
  this->Frame->SetMapper(mapper);
}

void vtkSquaresRepresentation::UpdateLabels()
{
  const bool shown = this->GetVisibility() && this->TokenLabels && !this->Labels.empty();
  this->Frame->SetVisibility(shown);
  for (const Label& label : this->Labels)
  {
    label.actor->SetVisibility(shown);
  }
  if (!shown || this->Renderer == nullptr)
  {
    return;
  }
  // The background as shown by the view.
  std::array<double, 3> back;
  this->Renderer->GetBackground(back.data());
  const double ink = AttentionAtlas::InkOn(back.data());
  vtkMatrix4x4* matrix = this->Actor->GetMatrix();
  this->Frame->GetProperty()->SetColor(ink, ink, ink);
  this->Frame->SetUserMatrix(matrix);
  for (const Label& label : this->Labels)
  {
    label.actor->SetUserMatrix(matrix);
    label.actor->GetProperty()->SetColor(ink, ink, ink);
  }
}

/// Before each rendering: sizes of letters and distances follow the camera of a diagram.
void vtkSquaresRepresentation::PlaceLabels()
{
  if (this->Labels.empty() || !this->Frame->GetVisibility())
  {
    return;
  }
  Grid grid = *this->Shown;
  std::array<vtkIdType, 2> every = { 1, 1 }; // columns and rows with labels
  vtkCamera* camera = this->Renderer->GetActiveCamera();
  bool isLegible = true;
  if (this->IsDiagram && camera->GetParallelProjection() != 0)
  {
    vtkRenderWindow* window = this->Renderer->GetRenderWindow();
    const double height =
      static_cast<double>(this->Renderer->GetSize()[1]) / window->GetTileScale()[1];
    const double point = 2 * camera->GetParallelScale() / height * window->GetDPI() / 72;
    const double text = TextSize * point;
    isLegible = !grid.hasPanels || grid.letters >= SmallestText * point;
    grid.letters = grid.hasPanels ? std::min(grid.letters, text) : text;
    grid.titleLetters = grid.hasPanels ? std::min(grid.titleLetters, text) : text;
    grid.gap = TextGap * grid.letters;
    for (const bool isRow : { false, true })
    {
      const double step = isRow ? grid.rowStep : grid.step;
      every.at(isRow ? 1 : 0) =
        std::max<vtkIdType>(1, std::llround(std::ceil(Line * grid.letters / step)));
    }
  }
  for (const bool isRow : { false, true })
  {
    double widest = 0;
    for (const bool isTitle : { false, true }) // behind the labels
    {
      for (const Label& label : this->Labels)
      {
        if (label.isRow != isRow || label.isTitle != isTitle)
        {
          continue;
        }
        const bool isShown = isTitle || (isLegible && label.index % every.at(isRow ? 1 : 0) == 0);
        const double letters = isTitle ? grid.titleLetters : grid.letters;
        const double away = grid.gap + (isTitle ? widest + letters : 0);
        widest = isShown ? std::max(widest, label.width * letters) : widest;
        label.actor->SetVisibility(isShown);
        label.actor->SetScale(letters);
        label.actor->SetPosition(
          isRow ? grid.left - away : label.along, isRow ? label.along : grid.bottom - away, 0);
      }
    }
  }
}

void vtkSquaresRepresentation::ClearLabels()
{
  for (const Label& label : this->Labels)
  {
    if (this->Renderer != nullptr)
    {
      this->Renderer->RemoveActor(label.actor);
    }
  }
  this->Labels.clear();
}

bool vtkSquaresRepresentation::AddToView(vtkView* view)
{
  if (!this->Superclass::AddToView(view))
  {
    return false;
  }
  this->Renderer = vtkPVRenderView::SafeDownCast(view)->GetRenderer();
  this->Renderer->AddActor(this->Frame);
  this->IsDiagram = vtkDiagramView::SafeDownCast(view) != nullptr;
  this->Observer = this->Renderer->AddObserver(
    vtkCommand::StartEvent, this, &vtkSquaresRepresentation::PlaceLabels);
  this->ShownTime = 0;
  return true;
}

bool vtkSquaresRepresentation::RemoveFromView(vtkView* view)
{
  this->ClearLabels();
  if (this->Renderer != nullptr)
  {
    this->Renderer->RemoveActor(this->Frame);
    this->Renderer->RemoveObserver(this->Observer);
  }
  this->Renderer = nullptr;
  return this->Superclass::RemoveFromView(view);
}

void vtkSquaresRepresentation::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "TokenLabels: " << this->TokenLabels << "\n";
}
