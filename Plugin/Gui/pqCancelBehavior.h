#ifndef pqCancelBehavior_h
#define pqCancelBehavior_h

#include <QObject>

class pqPipelineSource;

/// Makes the button beside ParaView's progress bar cancel a source or filter of this plugin while
/// it works: ParaView before 6.1 never enables that button itself and hears no click before the
/// work is done. Whenever one of ours tells its progress, events are processed, but of the user's
/// only clicks at the button, and no timers, which could update the pipeline that is at work. With
/// a remote server, whose work cannot be interrupted so, nothing changes.
class pqCancelBehavior : public QObject
{
  Q_OBJECT

public:
  explicit pqCancelBehavior(QObject* parent = nullptr);
  ~pqCancelBehavior() override;

  /// Called as the plugin is loaded and as ParaView ends.
  void startup();
  void shutdown();

  bool eventFilter(QObject* object, QEvent* event) override;

private:
  Q_DISABLE_COPY(pqCancelBehavior)

  Q_SLOT void hear(const QString& name, int percent);
  Q_SLOT void cancel();
  Q_SLOT void rest();

  QString Working; ///< class name of what is at work, without vtk
  bool Hearing = false;
};

#endif
