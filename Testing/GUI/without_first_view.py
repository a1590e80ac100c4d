"""What a session opens is shown by what the session adds, not by itself."""

from paraview import servermanager, simple

settings = simple.GetSettingsProxy("AttentionAtlasSettings")
settings.OpenFirstView = 0
servermanager.vtkSMSettings.GetInstance().SetProxySettings(settings.SMProxy)  # also for new sessions
