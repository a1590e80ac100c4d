"""Whatever a filter of ours is given in a script, it does its work or tells one error; nothing crashes."""

import atlastest
from atlastest import AtlasTest
from attentionatlas import Error, update
from paraview import servermanager, simple

#: Those that would work for long on a whole model.
SLOW = {"CorpusStatistics", "TransformerTraining", "AttentionOnlyTraining"}


def filters():
    """The names of all filters with an input."""
    prototypes = servermanager.ProxyManager().SMProxyManager
    names = [name for group, name in atlastest.read_proxies() if group == "filters" and hasattr(simple, name)]
    return [name for name in names if prototypes.GetPrototypeProxy("filters", name).GetProperty("Input")]


class WrongInputs(AtlasTest):
    def sources(self):
        """One of each kind of data: ours, and ParaView's."""
        data = atlastest.DATA
        small = atlastest.read_model()
        model = atlastest.data_model("language-2")
        recording = atlastest.read_recording()
        found = {
            "small model": small,
            "model": model,
            "recording": recording,
            "corpus": simple.CorpusReader(FileName=str(data / "corpus" / "language-2.safetensors")),
            "torus": atlastest.torus(small, Resolution=[9, 7]),
            "pairs": simple.TokenPairs(Input=small),
            "map": simple.AttentionMap(Input=recording),
            "surface": simple.Sphere(),
            "image": simple.Wavelet(WholeExtent=[0, 4, 0, 4, 0, 4]),
            "table": simple.ProgrammableSource(OutputDataSetType="vtkTable"),
        }
        for source in found.values():
            source.UpdatePipeline()
        self.assertEqual(self.take_errors(), [])
        return found

    def test_each_filter_with_each_kind_of_data(self):
        names = set(filters())
        self.assertGreater(len(names), 40)
        works = set()
        sources = self.sources()
        for name in sorted(names - SLOW):
            for kind, source in sources.items():
                with self.subTest(filter=name, input=kind):
                    filter_ = getattr(simple, name)(Input=source)
                    try:
                        update(filter_)
                        works.add(name)
                    except Error as error:
                        self.assertRegex(str(error), "expected|give|choose|needs|record")
                        self.assertNotIn("\n", str(error))
                    self.assertEqual(self.take_errors(), [])
                    simple.Delete(filter_)
        self.assertGreater(len(works), 20)
