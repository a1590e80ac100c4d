#pragma once

#include "AttentionAtlasViewsModule.h"

#include <vtkObject.h>

#include <memory>

class vtkPVRenderView;

/// Lets what has a size in pixels grow with the letters of a view, on screens of more pixels per
/// inch and in larger pictures: its points, its lines and the texts of labelled axes. Wherever the
/// view is rendered, on the client as on a server.
class ATTENTIONATLASVIEWS_EXPORT vtkViewGrowth : public vtkObject
{
public:
  static vtkViewGrowth* New();
  vtkTypeMacro(vtkViewGrowth, vtkObject);

  /// The view, once. Default: none.
  void SetView(vtkPVRenderView* view);

  ///@{
  /**
   * Whether it grows, from the next rendering on. Default: off.
   */
  void SetOn(bool on) { *this->IsOn = on; }
  bool GetOn() const { return *this->IsOn; }
  ///@}

protected:
  vtkViewGrowth();
  ~vtkViewGrowth() override;

private:
  vtkViewGrowth(const vtkViewGrowth&) = delete;
  void operator=(const vtkViewGrowth&) = delete;

  const std::shared_ptr<bool> IsOn; ///< which the view has, too
};
