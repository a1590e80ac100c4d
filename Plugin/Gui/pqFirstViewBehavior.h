#pragma once

#include <QObject>

class pqPipelineSource;
class pqServerManagerModelItem;

/// Opens the first view of a file that a user opens by File > Open: after its first Apply, if
/// nothing else is shown and no filter uses it yet. The file stays active, and one undo takes it
/// back. Edit > Settings > Attention Atlas has a setting that switches this off.
///
/// The hint <AtlasFirstView filter="HeadComposition" /> of a reader names the filter. Several of
/// these are shown together. With <Field name="Layers" min="2" max="24" /> in it, it holds for
/// files whose field data have this number. A filter that cannot take the output is left out.
class pqFirstViewBehavior : public QObject
{
  Q_OBJECT

public:
  void startup();
  void shutdown();

private:
  Q_SLOT void meet(pqPipelineSource* source);
  Q_SLOT void hear(pqServerManagerModelItem* source);
};
