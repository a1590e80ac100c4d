"""Color bars by hand only: views then make no room for them, which depends on the size of the view, and what a session
clicks is at the same place in all versions of ParaView. The other sessions have bars. No first view, either."""

from paraview import servermanager, simple

settings = simple.GetSettingsProxy("GeneralSettings")
(settings.ScalarBarMode,) = [mode for mode in settings.GetProperty("ScalarBarMode").Available if "Manual" in mode]
ours = simple.GetSettingsProxy("AttentionAtlasSettings")
ours.OpenFirstView = 0
servermanager.vtkSMSettings.GetInstance().SetProxySettings(ours.SMProxy)  # also for new sessions
