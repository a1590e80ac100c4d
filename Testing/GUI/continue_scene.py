"""Reports in the file CANCEL_LOG when the session Continue.xml makes its statistics, so that Cancel.py clicks while they are computed,
and not while their model opens."""

import os
import time

from paraview import servermanager, simple


def report(manager, _event):
    names = (source.GetXMLName() for source in servermanager.ProxyManager().GetProxiesInGroup("sources").values())
    if "CorpusStatistics" in names:
        manager.RemoveObserver(observer)
        with open(os.environ["CANCEL_LOG"], "a", encoding="utf-8") as log:
            log.write(f"apply statistics {time.time():.3f}\n")


observer = servermanager.ProxyManager().SMProxyManager.AddObserver("RegisterEvent", report)
simple.GetSettingsProxy("AttentionAtlasSettings").OpenFirstView = 0
