#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkBoundingBox.h>
#include <vtkPVRenderView.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace AttentionAtlas
{
class TitleLines;
class ViewTexts;
}

/// A render view of flat data, with a title at its upper left and an explanation of the picture
/// below it, black on a light background and white on a dark one. What is shown, how it is framed
/// and what the title says are decided by vtkSMAtlasDiagramViewProxy on the client.
class ATTENTIONATLASVIEWS_EXPORT vtkDiagramView : public vtkPVRenderView
{
public:
  static vtkDiagramView* New();
  vtkTypeMacro(vtkDiagramView, vtkPVRenderView);

  ///@{
  /**
   * The title in UTF-8, cut with an ellipsis where the view is too narrow. Empty: none. Default:
   * empty.
   */
  void SetTitle(const char* title);
  const char* GetTitle() const { return this->Title.c_str(); }
  ///@}

  ///@{
  /**
   * What the picture shows, in a sentence or two in UTF-8. Empty: nothing. Default: empty.
   */
  void SetExplanation(const char* explanation);
  const char* GetExplanation() const { return this->Explanation.c_str(); }
  ///@}

  /// What color bars take of the width at the right of title and explanation, in points. Default:
  /// 0.
  void SetRoomBesideTitle(double room) { this->RoomBesideTitle = room; }

  /// The height of the title and its explanation with the room around them, in points.
  double GetTitleHeight() const;

  /// The bounds of all that is visible, with the room of its texts, as of the last update: lower
  /// and upper x, y and z.
  std::array<double, 6> GetShownBounds() const;

  /// Likewise of the data that representations have told, without what else is in the scene, such
  /// as texts that have a size on the screen.
  std::array<double, 6> GetDataBounds() const;

  /// The room in points that texts need beside these bounds, as of the last update, on all
  /// processes.
  struct Room
  {
    double left = 0;
    double right = 0;
    double bottom = 0;
    double top = 0;
  };
  Room GetTextRoom() const;
  /// Texts of a representation need this room, at least. Called on REQUEST_UPDATE by each process
  /// that has its data.
  void AddTextRoom(const Room& room);

  /// The least and the most points that a unit of the scene may have when the view frames the data;
  /// 0: any. Words of a text are as far from each other as their letters need, which have a
  /// smallest and a largest size.
  std::array<double, 2> GetScales() const;
  /// Called as AddTextRoom is.
  void LimitScale(double leastPointsPerUnit, double mostPointsPerUnit);

  ///@{
  /**
   * The room in points at the borders of the view that data do not lie in, while it frames them. As
   * far as that is known: on the client. Default: none, whatever the view shows may be anywhere.
   */
  void SetMargins(const std::optional<Room>& margins) { this->Margins = margins; }
  const std::optional<Room>& GetMargins() const { return this->Margins; }
  ///@}

  void Update() override;

  /// Whether edges are smoothed, as far as there are no squares, whose corners that would round.
  void SetUseFXAA(bool isSmooth) override;

protected:
  vtkDiagramView();
  ~vtkDiagramView() override;

private:
  AttentionAtlas::TitleLines Lines() const;
  bool HasSquares();

  vtkBoundingBox DataBounds;
  vtkBoundingBox TextRoom;      ///< from -left, -bottom to right, top
  vtkBoundingBox UnitsPerPoint; ///< along x: of the most points, along y: of the least
  std::optional<Room> Margins;
  std::string Title;
  std::string Explanation;
  double RoomBesideTitle = 0;
  bool IsSmooth = false;
  std::unique_ptr<AttentionAtlas::ViewTexts> OwnTexts;
};
