#pragma once

#include <optional>

class pqRenderView;
class vtkPVDataInformation;
class vtkSMSourceProxy;

/// What the choice of a text of a corpus does. The filter that shows texts, Top Contexts, has the
/// hint AtlasShowsContexts in its XML: `recorded` is the property with the rank of the text that
/// its last output has, and `opens` the filter that shows a recording of it.
namespace AttentionAtlas
{

/// A text that a filter shows.
struct Context
{
  vtkSMSourceProxy* source = nullptr;
  int rank = 0; ///< from 1
};

bool ShowsContexts(vtkSMSourceProxy* source);

/// The text that some selected words, marks or rows of a filter are of; none if they are of several
/// or the filter shows no texts.
std::optional<Context> ContextOf(vtkSMSourceProxy* source, vtkPVDataInformation* selected);

/// The text that is shown at a pixel of a view.
std::optional<Context> ContextAt(pqRenderView* view, int x, int y);

/// Lets the recorders of texts of this filter record this one alone, and views of them show what
/// its query attends to.
void RecordContext(const Context& context);

/// The same. If there is no such recorder yet, opens one with the model of the statistics, or else
/// the only model that is open, and what shows the recording in a view beside. The status bar asks
/// for a model if there is none.
void OpenContext(const Context& context, pqRenderView* view);

}
