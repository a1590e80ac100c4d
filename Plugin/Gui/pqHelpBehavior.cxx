#include "pqHelpBehavior.h"

#include <pqApplicationCore.h>

#include <QDir>
#include <QHelpEngine>
#include <QString>

#include <vtkPVVersion.h>

namespace
{

/// The resources that ParaView registers, see the plugin's CMakeLists.txt.
const QString Folder = ":/ParaView/Documentation/";
const QString OurPages = "plugin-AttentionAtlas.qch";

/// Makes a collection of pages that was opened read-only writable. Returns whether it was one.
bool MakeWritable([[maybe_unused]] QHelpEngine* engine)
{
#if QT_VERSION >= QT_VERSION_CHECK(6, 0, 0)
  if (engine->isReadOnly())
  {
    engine->setReadOnly(false);
    return engine->setupData();
  }
#endif
  return false;
}

}

void pqHelpBehavior::startup()
{
  pqApplicationCore* core = pqApplicationCore::instance();
#if PARAVIEW_VERSION_NUMBER < PARAVIEW_VERSION_CHECK(6, 0, 0) &&                                   \
  QT_VERSION >= QT_VERSION_CHECK(6, 0, 0)
  QHelpEngine* engine = core->helpEngine();
#else
  auto* engine = core->findChild<QHelpEngine*>();
#endif
  if (engine == nullptr)
  {
    return;
  }
  const QStringList files =
    MakeWritable(engine) ? QDir(Folder).entryList({ "*.qch" }, QDir::Files) : QStringList(OurPages);
  for (const QString& file : files)
  {
    core->registerDocumentation(Folder + file);
  }
}
