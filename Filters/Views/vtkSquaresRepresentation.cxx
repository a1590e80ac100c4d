#include "vtkSquaresRepresentation.h"

#include <vtkActor.h>
#include <vtkAlgorithmOutput.h>
#include <vtkCellArray.h>
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
#include <vtkRenderer.h>
#include <vtkStringArray.h>
#include <vtkTextProperty.h>
#include <vtkTextRenderer.h>
#include <vtkTexture.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace
{

/// The font size at which labels are rendered before they are scaled to the squares, in pixels.
constexpr int FontSize = 48;
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

/// The position of the end or the center of a text, in squares.
struct Place
{
  double x;
  double y;
  bool upwards; ///< rotated by 90 degrees
  bool centred; ///< otherwise the text ends there
};

/// White text with a height in squares, on a rectangle that is drawn only where there are letters.
/// Its length is stored in `width`. The actor is opaque, since with several ranks only opaque
/// actors are drawn in front of the background.
vtkSmartPointer<vtkActor> MakeText(
  const std::string& text, const Place& place, double height, double& width)
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

  const double scale = height / FontSize;
  width = size[0] * scale;
  const double begin = place.centred ? -width / 2 : -width;
  const double half = size[1] * scale / 2;
  vtkNew<vtkPoints> corners;
  vtkNew<vtkFloatArray> coordinates;
  coordinates->SetNumberOfComponents(2);
  for (const auto& [right, up] : { std::pair(0, 0), { 1, 0 }, { 1, 1 }, { 0, 1 } })
  {
    const double along = begin + right * width;
    const double across = (2 * up - 1) * half;
    corners->InsertNextPoint(
      place.x + (place.upwards ? -across : along), place.y + (place.upwards ? along : across), 0);
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

}

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
  this->ClearLabels();
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
  const double gap = layout.unit * Gap;
  const double labelHeight = layout.unit * LabelHeight;
  double widest = 0;
  const auto add = [&](const std::string& text, const Place& place, double height)
  {
    if (text.empty())
    {
      return;
    }
    double width = 0;
    if (const auto label = MakeText(text, place, height, width))
    {
      this->Renderer->AddActor(label);
      this->Labels.push_back(label);
    }
    widest = std::max(widest, width);
  };
  for (vtkIdType i = 0; layout.labelled && i < layout.rows; ++i)
  {
    add(Readable(Tokens(image, "Query Token")->GetValue(i)),
      { left - gap, top - layout.rowStep * (static_cast<double>(i) + 0.5), false, false },
      labelHeight);
  }
  for (vtkIdType i = 0; layout.labelled && i < layout.columns; ++i)
  {
    add(Readable(Tokens(image, "Key Token")->GetValue(i)),
      { layout.first + layout.step * static_cast<double>(i), bottom - gap, true, false },
      labelHeight);
  }
  const double distance = gap + widest + layout.title;
  add(AxisTitle(image, "Query"), { left - distance, (bottom + top) / 2, true, true }, layout.title);
  add(
    AxisTitle(image, "Key"), { (left + right) / 2, bottom - distance, false, true }, layout.title);

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
  for (const auto& label : this->Labels)
  {
    label->SetVisibility(shown);
  }
  if (!shown || this->Renderer == nullptr)
  {
    return;
  }
  // The background as shown by the view.
  std::array<double, 3> back;
  this->Renderer->GetBackground(back.data());
  const double luminance = 0.299 * back[0] + 0.587 * back[1] + 0.114 * back[2];
  const double ink = luminance > 0.5 ? 0 : 1;
  vtkMatrix4x4* matrix = this->Actor->GetMatrix();
  this->Frame->GetProperty()->SetColor(ink, ink, ink);
  this->Frame->SetUserMatrix(matrix);
  for (const auto& label : this->Labels)
  {
    label->SetUserMatrix(matrix);
    label->GetProperty()->SetColor(ink, ink, ink);
  }
}

void vtkSquaresRepresentation::ClearLabels()
{
  for (const auto& label : this->Labels)
  {
    if (this->Renderer != nullptr)
    {
      this->Renderer->RemoveActor(label);
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
  this->ShownTime = 0;
  return true;
}

bool vtkSquaresRepresentation::RemoveFromView(vtkView* view)
{
  this->ClearLabels();
  if (this->Renderer != nullptr)
  {
    this->Renderer->RemoveActor(this->Frame);
  }
  this->Renderer = nullptr;
  return this->Superclass::RemoveFromView(view);
}

void vtkSquaresRepresentation::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "TokenLabels: " << this->TokenLabels << "\n";
}
