#include "vtkDiagramExporter.h"

#include "Coloring.h"
#include "Files/AtomicFile.h"
#include "ShownPiece.h"

#include <vtkActor.h>
#include <vtkBrush.h>
#include <vtkCamera.h>
#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkCellTypes.h>
#include <vtkContext2D.h>
#include <vtkContext2DScalarBarActor.h>
#include <vtkCoordinate.h>
#include <vtkIdList.h>
#include <vtkImageData.h>
#include <vtkMapper.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPen.h>
#include <vtkPointData.h>
#include <vtkPointGaussianMapper.h>
#include <vtkPolyData.h>
#include <vtkPolyDataMapper.h>
#include <vtkPropCollection.h>
#include <vtkProperty.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkRendererCollection.h>
#include <vtkSVGContextDevice2D.h>
#include <vtkSmartPointer.h>
#include <vtkTextActor.h>
#include <vtkTextProperty.h>
#include <vtkUnsignedCharArray.h>
#include <vtkXMLDataElement.h>

#include <librsvg/rsvg.h>

#include <cairo-pdf.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace
{

using Color = std::array<unsigned char, 4>;
using Place = std::array<float, 2>;

/// Areas that touch overlap by so many pixels, since viewers would show the ground between them.
constexpr float Overlap = 0.3F;

/// A part of the scene, in pixels.
struct Shape
{
  enum class Kind
  {
    Area,
    Line,
    Disc,
    Picture
  };
  Kind kind;
  std::int64_t depth; ///< how far away it is
  std::vector<Place> points;
  Color color;
  float size; ///< width of a line, radius of a disc
  vtkSmartPointer<vtkImageData> picture;
};

/// From an actor's coordinates to pixels and depth.
class Projection
{
public:
  Projection(vtkRenderer* renderer, vtkActor* actor)
    : Size({ renderer->GetSize()[0], renderer->GetSize()[1] })
  {
    this->Matrix->DeepCopy(renderer->GetActiveCamera()->GetCompositeProjectionTransformMatrix(
      renderer->GetTiledAspectRatio(), -1, 1));
    vtkMatrix4x4::Multiply4x4(this->Matrix, actor->GetMatrix(), this->Matrix);
  }

  std::pair<Place, std::int64_t> operator()(const std::array<double, 3>& point) const
  {
    std::array<double, 4> at = { point[0], point[1], point[2], 1 };
    this->Matrix->MultiplyPoint(at.data(), at.data());
    const auto pixel = [&](std::size_t axis)
    { return static_cast<float>((at.at(axis) / at[3] + 1) / 2 * this->Size.at(axis)); };
    constexpr double steps = 1e9;
    return { { pixel(0), pixel(1) }, std::llround(at[2] / at[3] * steps) };
  }

private:
  vtkNew<vtkMatrix4x4> Matrix;
  std::array<int, 2> Size;
};

Color ColorOf(const double* rgb, double opacity)
{
  const auto byte = [](double share)
  { return static_cast<unsigned char>(std::lround(255 * std::clamp(share, 0., 1.))); };
  return { byte(rgb[0]), byte(rgb[1]), byte(rgb[2]), byte(opacity) };
}

/// The colors of the cells or points of a dataset.
class Colors
{
public:
  Colors(vtkMapper* mapper, vtkDataSet* data, vtkProperty* property)
    : Plain(ColorOf(property->GetColor(), property->GetOpacity()))
  {
    this->Mapper->vtkMapper::ShallowCopy(mapper);
    this->Mapper->InterpolateScalarsBeforeMappingOff(); // colors instead of a texture
    int flag = 0;
    this->Array = this->Mapper->MapScalars(data, property->GetOpacity(), flag);
    this->AreOfCells = flag == 1;
  }

  /// Of a cell with its points: the mean of these.
  Color OfCell(vtkIdType cell, vtkIdList* points) const
  {
    if (this->Array == nullptr || this->AreOfCells)
    {
      return this->At(cell);
    }
    const auto count = static_cast<int>(points->GetNumberOfIds());
    if (count == 0)
    {
      return this->Plain;
    }
    Color mean;
    for (std::size_t c = 0; c < mean.size(); ++c)
    {
      int sum = count / 2; // to round
      for (vtkIdType i = 0; i < count; ++i)
      {
        sum += this->At(points->GetId(i)).at(c);
      }
      mean.at(c) = static_cast<unsigned char>(sum / count);
    }
    return mean;
  }

  Color OfPoint(vtkIdType point) const { return this->AreOfCells ? this->Plain : this->At(point); }

private:
  Color At(vtkIdType i) const
  {
    if (this->Array == nullptr || i >= this->Array->GetNumberOfTuples())
    {
      return this->Plain;
    }
    Color color = this->Plain;
    for (int c = 0; c < this->Array->GetNumberOfComponents() && c < 4; ++c)
    {
      color.at(static_cast<std::size_t>(c)) = this->Array->GetTypedComponent(i, c);
    }
    return color;
  }

  Color Plain;
  vtkNew<vtkPolyDataMapper> Mapper; ///< owns the colors
  vtkUnsignedCharArray* Array = nullptr;
  bool AreOfCells = false;
};

/// The shapes of a scene.
class Shapes
{
public:
  explicit Shapes(vtkRenderer* renderer)
    : Renderer(renderer)
  {
  }

  void Add(vtkActor* actor)
  {
    vtkMapper* mapper = actor->GetMapper();
    vtkDataObject* data = mapper != nullptr && mapper->GetNumberOfInputConnections(0) > 0
                            ? mapper->GetInputDataObject(0, 0)
                            : nullptr;
    for (vtkDataSet* leaf : AttentionAtlas::LeavesOf(data))
    {
      if (auto* image = vtkImageData::SafeDownCast(leaf))
      {
        this->AddImage(actor, image);
      }
      else if (auto* gaussian = vtkPointGaussianMapper::SafeDownCast(mapper))
      {
        this->AddDiscs(actor, leaf, gaussian);
      }
      else if (auto* cells = vtkPolyData::SafeDownCast(leaf))
      {
        this->AddCells(actor, cells);
      }
    }
  }

  /// Paints what is further away first; of what is equally far, areas before lines before discs,
  /// and equal ones in their order.
  void Paint(vtkContext2D* painter)
  {
    std::vector<std::tuple<std::int64_t, Shape::Kind, std::size_t>> order;
    order.reserve(this->All.size());
    for (std::size_t i = 0; i < this->All.size(); ++i)
    {
      order.emplace_back(-this->All[i].depth, this->All[i].kind, i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& key : order)
    {
      Paint(painter, this->All[std::get<2>(key)]);
    }
  }

private:
  static void Paint(vtkContext2D* painter, Shape& shape)
  {
    const auto& [red, green, blue, alpha] = shape.color;
    const auto count = static_cast<int>(shape.points.size());
    float* points = shape.points.front().data();
    const bool isLine = shape.kind == Shape::Kind::Line;
    painter->GetPen()->SetLineType(isLine ? vtkPen::SOLID_LINE : vtkPen::NO_PEN);
    painter->GetPen()->SetColor(red, green, blue, alpha);
    painter->GetPen()->SetWidth(isLine ? shape.size : 0);
    painter->GetBrush()->SetColor(red, green, blue, alpha);
    switch (shape.kind)
    {
      case Shape::Kind::Area:
        painter->DrawPolygon(points, count);
        break;
      case Shape::Kind::Line:
        painter->DrawPoly(points, count);
        break;
      case Shape::Kind::Disc:
        painter->DrawEllipse(points[0], points[1], shape.size, shape.size);
        break;
      case Shape::Kind::Picture:
        painter->DrawImage(
          { points[0], points[1], points[2] - points[0], points[3] - points[1] }, shape.picture);
        break;
    }
  }

  void Add(Shape::Kind kind, const Projection& project, vtkDataSet* data, vtkIdList* ids,
    const Color& color, float size)
  {
    Shape shape = { kind, 0, {}, color, size, nullptr };
    std::int64_t depth = 0;
    for (vtkIdType i = 0; i < ids->GetNumberOfIds(); ++i)
    {
      std::array<double, 3> point;
      data->GetPoint(ids->GetId(i), point.data());
      const auto [place, away] = project(point);
      if (!std::isfinite(place[0]) || !std::isfinite(place[1]))
      {
        return;
      }
      shape.points.push_back(place);
      depth += away;
    }
    if (!shape.points.empty() && this->IsSeen(shape))
    {
      shape.depth = depth / ids->GetNumberOfIds();
      this->All.push_back(std::move(shape));
    }
  }

  /// Whether the box around a shape is partly in the view.
  bool IsSeen(const Shape& shape) const
  {
    const int* size = this->Renderer->GetSize();
    for (const std::size_t axis : { 0, 1 })
    {
      const auto [least, most] = std::minmax_element(shape.points.begin(), shape.points.end(),
        [axis](const Place& a, const Place& b) { return a.at(axis) < b.at(axis); });
      if (most->at(axis) + shape.size < 0 ||
          least->at(axis) - shape.size > static_cast<float>(size[axis]))
      {
        return false;
      }
    }
    return true;
  }

  void AddCells(vtkActor* actor, vtkPolyData* data)
  {
    vtkProperty* property = actor->GetProperty();
    const Projection project(this->Renderer, actor);
    const Colors colors(actor->GetMapper(), data, property);
    const int dpi = this->Renderer->GetRenderWindow()->GetDPI();
    const float point = static_cast<float>(dpi) / 72; // in pixels, as shown
    const float radius = point * property->GetPointSize() / 2;
    const float width = point * property->GetLineWidth();
    const Color edge = ColorOf(property->GetEdgeColor(), property->GetOpacity());
    const int representation = property->GetRepresentation();
    const auto add = [&](Shape::Kind kind, vtkIdList* ids, const Color& color, float size)
    { this->Add(kind, project, data, ids, color, size); };
    vtkNew<vtkIdList> points;
    vtkNew<vtkIdList> one;
    one->SetNumberOfIds(1);
    for (vtkIdType cell = 0; cell < data->GetNumberOfCells(); ++cell)
    {
      data->GetCellPoints(cell, points);
      const int type = data->GetCellType(cell);
      if (type == VTK_VERTEX || type == VTK_POLY_VERTEX || representation == VTK_POINTS)
      {
        for (vtkIdType i = 0; i < points->GetNumberOfIds(); ++i)
        {
          one->SetId(0, points->GetId(i));
          add(Shape::Kind::Disc, one, colors.OfCell(cell, one), radius);
        }
        continue;
      }
      const Color color = colors.OfCell(cell, points);
      if (type == VTK_LINE || type == VTK_POLY_LINE)
      {
        add(Shape::Kind::Line, points, color, width);
        continue;
      }
      if (representation == VTK_SURFACE)
      {
        add(Shape::Kind::Area, points, color, 0);
      }
      if (representation == VTK_WIREFRAME || property->GetEdgeVisibility() != 0)
      {
        points->InsertNextId(points->GetId(0));
        add(Shape::Kind::Line, points, representation == VTK_WIREFRAME ? color : edge, width);
      }
    }
  }

  void AddDiscs(vtkActor* actor, vtkDataSet* data, vtkPointGaussianMapper* mapper)
  {
    const Projection project(this->Renderer, actor);
    const Colors colors(mapper, data, actor->GetProperty());
    const char* name = mapper->GetScaleArray();
    vtkDataArray* scale = name != nullptr ? data->GetPointData()->GetArray(name) : nullptr;
    vtkNew<vtkIdList> one;
    one->SetNumberOfIds(1);
    for (vtkIdType i = 0; i < data->GetNumberOfPoints(); ++i)
    {
      const double radius =
        mapper->GetScaleFactor() * (scale != nullptr ? scale->GetComponent(i, 0) : 1);
      std::array<double, 3> point;
      data->GetPoint(i, point.data());
      const Place center = project(point).first;
      point[0] += radius;
      const Place end = project(point).first;
      one->SetId(0, i);
      this->Add(Shape::Kind::Disc, project, data, one, colors.OfPoint(i),
        std::hypot(end[0] - center[0], end[1] - center[1]));
    }
  }

  /// A slice: one area per point, or a picture.
  void AddImage(vtkActor* actor, vtkImageData* image)
  {
    std::array<int, 6> extent;
    image->GetExtent(extent.data());
    if (extent[4] != extent[5])
    {
      return;
    }
    const int columns = extent[1] - extent[0] + 1;
    const int rows = extent[3] - extent[2] + 1;
    std::array<double, 6> bounds;
    image->GetBounds(bounds.data());
    const Projection project(this->Renderer, actor);
    const auto [first, depth] = project({ bounds[0], bounds[2], bounds[4] });
    const Place last = project({ bounds[1], bounds[3], bounds[4] }).first;
    const float width = (last[0] - first[0]) / static_cast<float>(columns);
    const float height = (last[1] - first[1]) / static_cast<float>(rows);
    const Colors colors(actor->GetMapper(), image, actor->GetProperty());
    if (image->GetNumberOfPoints() > vtkDiagramExporter::MaximumSquares)
    {
      auto picture = vtkSmartPointer<vtkImageData>::New();
      picture->SetDimensions(columns, rows, 1);
      picture->AllocateScalars(VTK_UNSIGNED_CHAR, 4);
      auto* pixels = static_cast<Color*>(picture->GetScalarPointer());
      for (vtkIdType i = 0; i < image->GetNumberOfPoints(); ++i)
      {
        pixels[i] = colors.OfPoint(i);
      }
      this->All.push_back({ Shape::Kind::Picture, depth, { first, last }, {}, 0, picture });
      return;
    }
    for (int row = 0; row < rows; ++row)
    {
      const vtkIdType start = vtkIdType{ row } * columns;
      const float bottom = first[1] + height * static_cast<float>(row);
      const float top = bottom + height + (row + 1 < rows ? Overlap : 0);
      for (int column = 0, end = 0; column < columns; column = end)
      {
        // Equal neighbors are one area.
        const Color color = colors.OfPoint(start + column);
        while (end < columns && colors.OfPoint(start + end) == color)
        {
          ++end;
        }
        const float left = first[0] + width * static_cast<float>(column);
        const float right =
          first[0] + width * static_cast<float>(end) + (end < columns ? Overlap : 0);
        this->All.push_back({ Shape::Kind::Area, depth,
          { { left, bottom }, { right, bottom }, { right, top }, { left, top } }, color, 0,
          nullptr });
      }
    }
  }

  vtkRenderer* Renderer;
  std::vector<Shape> All;
};

void PaintText(vtkContext2D* painter, vtkRenderer* renderer, vtkTextActor* text)
{
  const double* at = text->GetPositionCoordinate()->GetComputedDoubleDisplayValue(renderer);
  vtkTextProperty* style = text->GetTextProperty();
  if (style->GetBackgroundOpacity() > 0)
  {
    std::array<double, 4> box; // from its place, left, right, bottom and top
    text->GetBoundingBox(renderer, box.data());
    const Color back = ColorOf(style->GetBackgroundColor(), style->GetBackgroundOpacity());
    painter->GetPen()->SetLineType(vtkPen::NO_PEN);
    painter->GetBrush()->SetColor(back[0], back[1], back[2], back[3]);
    painter->DrawRect(static_cast<float>(at[0] + box[0]), static_cast<float>(at[1] + box[2]),
      static_cast<float>(box[1] - box[0]), static_cast<float>(box[3] - box[2]));
  }
  painter->ApplyTextProp(style);
  painter->DrawString(static_cast<float>(at[0]), static_cast<float>(at[1]), text->GetInput());
}

std::vector<vtkProp*> Visible(vtkPropCollection* props)
{
  std::vector<vtkProp*> found;
  props->InitTraversal();
  while (vtkProp* prop = props->GetNextProp())
  {
    if (prop->GetVisibility() != 0)
    {
      found.push_back(prop);
    }
  }
  return found;
}

using Classes = std::set<std::string>;

/// Paints what a renderer shows, and adds the classes of what is left out.
void Paint(vtkContext2D* painter, vtkRenderer* renderer, Classes& leftOut)
{
  Shapes shapes(renderer);
  vtkNew<vtkPropCollection> flat;
  for (vtkProp* prop : Visible(renderer->GetViewProps()))
  {
    const int before = flat->GetNumberOfItems();
    prop->GetActors2D(flat);
    if (auto* actor = vtkActor::SafeDownCast(prop))
    {
      constexpr double Seen = 1. / 510; // half of a shade; less is there to be clicked
      if (actor->GetProperty()->GetOpacity() > Seen)
      {
        shapes.Add(actor);
      }
    }
    else if (flat->GetNumberOfItems() == before)
    {
      leftOut.insert(prop->GetClassName());
    }
  }
  shapes.Paint(painter);
  for (vtkProp* prop : Visible(flat))
  {
    if (auto* bar = vtkContext2DScalarBarActor::SafeDownCast(prop))
    {
      bar->Paint(painter);
    }
    else if (auto* text = vtkTextActor::SafeDownCast(prop))
    {
      PaintText(painter, renderer, text);
    }
    else
    {
      leftOut.insert(prop->GetClassName());
    }
  }
}

/// The same of all renderers of a window.
Classes Paint(vtkContext2D* painter, vtkRenderWindow* window)
{
  std::multimap<int, vtkRenderer*> renderers; // by layer, the lowest first
  vtkRendererCollection* all = window->GetRenderers();
  all->InitTraversal();
  while (vtkRenderer* renderer = all->GetNextItem())
  {
    if (renderer->GetDraw() != 0)
    {
      renderers.emplace(renderer->GetLayer(), renderer);
    }
  }
  Classes leftOut;
  for (const auto& [layer, renderer] : renderers)
  {
    Paint(painter, renderer, leftOut);
  }
  return leftOut;
}

/// Gives the texts of a document, which VTK's device writes with sizes in points, turned clockwise
/// and with an unknown anchor, what viewers understand.
void MendTexts(vtkXMLDataElement* element)
{
  for (int i = 0; i < element->GetNumberOfNestedElements(); ++i)
  {
    MendTexts(element->GetNestedElement(i));
  }
  if (std::string(element->GetName()) != "text")
  {
    return;
  }
  const auto attribute = [element](const char* name) -> std::string
  {
    const char* value = element->GetAttribute(name);
    return value != nullptr ? value : "";
  };
  const double size = std::atof(attribute("font-size").c_str());
  element->SetAttribute("font-size", (std::to_string(std::lround(size)) + "px").c_str());
  element->SetAttribute(
    "font-family", "Arial, Helvetica, 'Liberation Sans', 'DejaVu Sans', sans-serif");
  if (attribute("text-anchor") == "right")
  {
    element->SetAttribute("text-anchor", "end");
  }
  // Where the base line is below the place, in heights of the letters.
  const std::string across = attribute("alignment-baseline");
  const double down = across == "top" ? 0.8 : across == "bottom" ? -0.22 : 0.3;
  element->RemoveAttribute("alignment-baseline");
  element->SetDoubleAttribute("y", down * size);
  std::string place = attribute("transform");
  const std::size_t turn = place.find("rotate(");
  if (turn != std::string::npos)
  {
    place.insert(turn + 7, "-");
    element->SetAttribute("transform", place.c_str());
  }
}

cairo_status_t Append(void* text, const unsigned char* bytes, unsigned int size)
{
  static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), size);
  return CAIRO_STATUS_SUCCESS;
}

/// A document of one page.
std::string PdfOf(const std::string& svg, const std::array<double, 2>& size)
{
  GError* error = nullptr;
  const std::unique_ptr<RsvgHandle, decltype(&g_object_unref)> document(
    rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error),
    g_object_unref);
  std::string pdf;
  bool isDrawn = false;
  if (document != nullptr)
  {
    const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
      cairo_pdf_surface_create_for_stream(Append, &pdf, size[0], size[1]), cairo_surface_destroy);
    const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> page(
      cairo_create(surface.get()), cairo_destroy);
    const RsvgRectangle whole = { 0, 0, size[0], size[1] };
    isDrawn = rsvg_handle_render_document(document.get(), page.get(), &whole, &error) != 0;
    cairo_show_page(page.get());
    cairo_surface_finish(surface.get());
    isDrawn = isDrawn && cairo_surface_status(surface.get()) == CAIRO_STATUS_SUCCESS;
  }
  if (!isDrawn)
  {
    const std::string reason = error != nullptr ? error->message : "the page cannot be drawn";
    g_clear_error(&error);
    throw std::runtime_error(reason);
  }
  return pdf;
}

}

vtkStandardNewMacro(vtkDiagramExporter);

vtkDiagramExporter::vtkDiagramExporter()
{
  this->TextAsPath = false;
  this->SetTitle("Attention Diagram");
  this->SetDescription("Attention Atlas");
}

std::string vtkDiagramExporter::MakeDocument()
{
  this->PrepareDocument();
  if (this->DrawBackground)
  {
    this->RenderBackground(this->ActiveRenderer);
  }
  vtkNew<vtkContext2D> painter;
  painter->Begin(this->Device);
  this->Device->Begin(this->ActiveRenderer);
  const Classes leftOut = Paint(painter, this->RenderWindow);
  painter->End();
  this->Device->GenerateDefinitions();
  MendTexts(this->RootNode);
  std::ostringstream text;
  this->RootNode->PrintXML(text, vtkIndent());
  this->Device->Delete();
  this->Device = nullptr;
  this->RootNode->Delete();
  this->RootNode = nullptr;
  this->DefinitionNode = nullptr;
  this->PageNode = nullptr;
  for (const std::string& name : leftOut)
  {
    vtkWarningMacro(<< this->FileName << ": left out a " << name
                    << ", which cannot be written as lines and areas. Save Screenshot has it.");
  }
  return text.str();
}

void vtkDiagramExporter::WriteData()
{
  if (this->FileName == nullptr || this->RenderWindow == nullptr || this->ActiveRenderer == nullptr)
  {
    vtkErrorMacro("Expected a file name and a view.");
    return;
  }
  try
  {
    std::string document = this->MakeDocument();
    if (AttentionAtlas::EndsWith(this->FileName, ".pdf"))
    {
      const int* size = this->RenderWindow->GetSize();
      document = PdfOf(document, { 1. * size[0], 1. * size[1] });
    }
    atlas::AtomicFile file(this->FileName);
    file.Write(document.data(), document.size());
    file.Commit();
  }
  catch (const std::exception& error)
  {
    vtkErrorMacro(<< this->FileName << ": " << error.what());
  }
}
