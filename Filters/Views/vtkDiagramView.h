#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkBoundingBox.h>
#include <vtkPVRenderView.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace AttentionAtlas
{
class ViewTexts;
}

/// A render view of flat data, with a title at its upper left and below it what the signs of the
/// picture mean, black on a light background and white on a dark one. What is shown, how it is
/// framed and what these texts say are decided by vtkSMAtlasDiagramViewProxy on the client.
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
   * What the signs of the picture mean, such as the width of a line, in UTF-8: lines below the
   * title, as many as it takes, up to MostLines. Empty: none. Default: empty.
   */
  void SetSigns(const char* signs);
  const char* GetSigns() const { return this->Signs.c_str(); }
  ///@}
  static constexpr int MostLines = 4;

  /// The height of the title and of the lines below it in a view of this width, with the room
  /// around them, all in points.
  double GetTitleHeight(double width);

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

  /// The most points that a unit of the scene may have when the view frames the data; 0: any. Words
  /// of a text are as far from each other as their letters need, which have a largest size.
  double GetLargestScale() const;
  /// Called as AddTextRoom is.
  void LimitScale(double pointsPerUnit);

  void Update() override;

protected:
  vtkDiagramView();
  ~vtkDiagramView() override;

private:
  /// Before each rendering.
  void PlaceTitle();
  std::vector<std::string> LinesOfSigns(double width);

  vtkBoundingBox DataBounds;
  vtkBoundingBox TextRoom;      ///< from -left, -bottom to right, top
  vtkBoundingBox UnitsPerPoint; ///< along x
  std::string Title;
  std::string Signs;
  std::unique_ptr<AttentionAtlas::ViewTexts> OwnTexts;
};
