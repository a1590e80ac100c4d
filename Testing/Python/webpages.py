"""What tests of web pages share: a reader of the pages' HTML and data that shares no code with the writer."""

import base64
import html.parser
import json
import zlib

import atlastest
import numpy


class Document(html.parser.HTMLParser):
    """HTML as a browser's parser sees it: elements with their attributes, and the text of each script."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self._open = [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._open = (tag, attributes, [])

    def handle_data(self, text):
        if self._open:
            self._open[2].append(text)

    def handle_endtag(self, tag):
        if self._open and tag == self._open[0]:
            if tag == "script":
                self.scripts.append((self._open[1], "".join(self._open[2])))
            else:
                self.style = "".join(self._open[2])
            self._open = None

    def tags(self):
        return [tag for tag, _ in self.elements]

    def given(self, *names):
        """The values of attributes of these names."""
        return [attributes[name] for _, attributes in self.elements for name in names if name in attributes]


def pair_angles():
    """The angles of all token pairs, after layer normalization, from the tensors of the trained model."""
    model, _ = atlastest.read_safetensors(atlastest.TRAINED)
    embedding = model["word_embedding"].astype(float)
    centred = embedding - embedding.mean(axis=1, keepdims=True)
    u, v = numpy.array([1, 0, -1]) / 2**0.5, numpy.array([-1, 2, -1]) / 6**0.5
    angle = numpy.arctan2(centred @ v, centred @ u)
    return numpy.array([[a, b] for a in angle for b in angle])


class Page(Document):
    """A page with its scenes and their data."""

    def __init__(self, text):
        super().__init__(text)
        by_id = {dict(attributes).get("id"): content for attributes, content in self.scripts}
        self.code = by_id[None]
        self.scenes = json.loads(by_id["scenes"])
        self.bytes = zlib.decompress(base64.b64decode(by_id["data"]))

    def values(self, reference):
        """The array that a part of a scene names, [items, components]; a list of texts for an array of texts."""
        kind = numpy.dtype("<" + reference["type"])
        count = reference["count"] * reference["width"]
        values = numpy.frombuffer(self.bytes, kind, count, reference["at"])
        if reference.get("differences"):
            values = numpy.cumsum(values, dtype=kind)
        if "texts" in reference:
            return [reference["texts"][i] for i in values]
        return values.reshape(reference["count"], reference["width"])

    def parts(self, kind, scene=0):
        return [part for part in self.scenes[scene]["parts"] if part["kind"] == kind]
