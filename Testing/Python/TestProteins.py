"""Contacts and mutations of the protein that is installed, by NumPy beside the filters."""

import shutil
import unittest

import attentionatlas as atlas
import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import __main__ as commands, proteins, web
from attentionatlas._internal import data
from attentionatlas._internal.proteins import ribbon
from chromium import PROGRAM, Chromium
from paraview import servermanager, simple
from randomrecording import attention_of

FOLDER = atlastest.DATA / "models" / "protein"
CHAIN, MODEL = FOLDER / "chain.pdb", FOLDER / "config.json"
RECORDING = atlastest.DATA / "geometry" / "protein.safetensors"
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
#: On the lattice residues that touch are 3.8 apart.
LATTICE = {"contact_atom": "CAlpha", "contact_distance": 4, "minimum_separation": 3}


def evidence(weights):
    """Attention and its transpose less the average product."""
    both = weights + weights.T
    return both - both.sum(0) * both.sum(0)[:, None] / both.sum()


def places():
    """Where the atoms of the chain are."""
    lines = [line for line in CHAIN.read_text(encoding="ascii").splitlines() if line.startswith("ATOM")]
    return numpy.array([[float(line[begin : begin + 8]) for begin in (30, 38, 46)] for line in lines])


def water():
    """A file without a protein."""
    path = atlastest.OUTPUT / "water.pdb"
    path.write_text("HETATM    1  O   HOH A   1       1.000   2.000   3.000  1.00  0.00           O\n", encoding="ascii")
    return path


class Proteins(AtlasTest):
    def setUp(self):
        super().setUp()
        self.weights = [attention_of(RECORDING, 0, head, causal=False) for head in range(4)]
        self.scores = numpy.mean([evidence(one.astype(float)) for one in self.weights], axis=0)
        distances = numpy.linalg.norm(places()[:, None] - places(), axis=2)
        self.apart = abs(numpy.subtract.outer(range(36), range(36)))
        self.contacts = (distances < 4) & (self.apart >= 3)
        self.distances = distances

    def precision(self, scores, count, least=3, most=99):
        pairs = numpy.transpose(numpy.triu_indices(36, least))
        pairs = pairs[pairs[:, 1] - pairs[:, 0] <= most]
        order = numpy.argsort(-scores[tuple(pairs.T)], kind="stable")[:count]
        return self.contacts[tuple(pairs[order].T)].mean()

    def test_maps(self):
        with atlas.open(RECORDING) as recording:
            numpy.testing.assert_allclose(recording.contact_map(), self.scores, atol=1e-5)
            one = recording.contact_map(layer=0, head=2)
            numpy.testing.assert_allclose(one, evidence(self.weights[2].astype(float)), atol=1e-5)
            shown = {"structure": CHAIN, **LATTICE}
            numpy.testing.assert_array_equal(recording.contact_map("Contact", **shown), self.contacts)
            numpy.testing.assert_allclose(recording.contact_map("Distance", **shown), self.distances, atol=1e-4)
            with self.assertRaisesRegex(atlas.Missing, "a model with a contact head for Prediction"):
                recording.contact_map("Prediction")
            with self.assertRaisesRegex(atlas.Missing, "structure= for Precision"):
                recording.contacts(show="Precision")

    def test_fasta_is_read_by_residues(self):
        """Also by a tokenizer that splits at spaces, as the words of the model do."""
        letters = "GFGPGCLCSSGS"
        model = simple.TransformerReader(FileName=str(MODEL), Checkpoints=0)
        ids = []
        for text, kind in ((" ".join(letters), "Lines"), (f">chain\n{letters[:5]}\n{letters[5:]}", "Fasta")):
            recording = simple.TransformerRecorder(Input=model, Prompts=text, PromptFormat=kind)
            recording.UpdatePipeline()
            tokens = data.blocks(data.first_part(recording))["tokens"].GetColumnByName("TokenId")
            ids.append([tokens.GetValue(i) for i in range(tokens.GetNumberOfTuples())])
        self.assertGreaterEqual(len(ids[0]), len(letters))
        self.assertEqual(ids[1], ids[0])

    def test_contacts_of_one_head_are_those_of_its_evidence(self):
        """Also where the model predicts contacts."""
        folder = atlastest.OUTPUT / "esm"
        shutil.copytree(atlastest.ORACLE.parent / "v5" / "encoder" / "esm-a", folder, dirs_exist_ok=True)
        words = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]
        words += [f"<own_{number}>" for number in range(97 - len(words))]
        (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        with atlas.open(folder) as model, model.record("MKTAYIAKQRQISFVKSHFSRQ") as recording:
            for head in range(2):
                scores = recording.contact_map(layer=0, head=head)
                first = recording.contacts(layer=0, head=head, minimum_separation=1, pair_count=5)
                pairs = numpy.transpose(numpy.triu_indices(len(scores), 1))
                best = pairs[numpy.argsort(-scores[tuple(pairs.T)], kind="stable")[:5]]
                found = numpy.sort(numpy.transpose([first["Query"], first["Key"]]), axis=1) - 1  # behind <cls>
                numpy.testing.assert_array_equal(found, best)

    def test_proteins_are_recorded_from_texts_and_files(self):
        """Several, rows of an alignment whose insertions are left out, and what is wrong in one sentence."""
        with atlas.open(RECORDING) as recording:
            letters = "".join(recording.tokens())
            weights = recording.attention(0, 2)
        fasta = f">one protein\n{letters[:20]}\n{letters[20:]}\n>another\n{letters[::-1]}\n"
        path = atlastest.OUTPUT / "two.fasta"
        path.write_text(fasta, encoding="ascii")
        with atlas.open(FOLDER / "checkpoint-2000" / "config.json") as model:
            for given in (
                {"prompts": fasta, "prompt_format": "Fasta"}, {"prompts": fasta.splitlines(), "prompt_format": "fasta"},
                {"prompt_file": path}, {"prompts": f"#\n>a\n{letters}\n>b\n{letters[35]}ac{letters[34::-1]}", "prompt_format": "A3m"},
            ):
                with self.subTest(given=list(given)), model.record(**given) as recording:
                    found = ["".join(recording.tokens(sequence)) for sequence in range(recording.sequences)]
                    self.assertEqual(found, [letters, letters[::-1]])
                    numpy.testing.assert_allclose(recording.attention(0, 2), weights, atol=1e-5)
            for text, message in (
                (f">a\n{letters}*", r"sequence 'a': expected residues.*found '\*', a stop, after 36 residues"),
                (f">a\n{letters}\n>b\ngf", "sequence 'b': expected residues.*found 'g', a lower-case letter"),
                (f">a\n>b\n{letters}", "sequence 'a': expected residues, found none"),
                (">a\nGF-G", "found '-'"),
            ):
                with self.subTest(text), self.assertRaisesRegex(ValueError, message):
                    model.record(text, prompt_format="Fasta")

    def test_options_are_checked(self):
        with atlas.open(RECORDING) as recording:
            for option in ("port", "show", "shown", "thresh"):
                with self.subTest(option), self.assertRaisesRegex(TypeError, f"found '{option}'"):
                    recording.contact_map(**{option: 2})
            with self.assertRaisesRegex(TypeError, "found 'port'"):
                recording.contacts(port=2)
            with self.assertRaisesRegex(ValueError, "quantity: expected one of Contact Evidence"):
                recording.contact_map("Attention")

    def test_layers_that_are_missing_are_named(self):
        with atlas.open(atlastest.DATA / "models" / "bert" / "config.json") as model:
            with model.record(token_ids="11 12 13 14 15 16 17 18", layers=(0,)) as recording:
                with self.assertRaisesRegex(atlas.Missing, "a recording of all layers of the model, also of 1"):
                    recording.contact_map("Prediction")

    def test_tables(self):
        with atlas.open(RECORDING) as recording:
            pairs = recording.contacts(structure=CHAIN, **LATTICE)
            self.assertEqual(len(pairs), 36)
            found = [self.scores[query, key] for query, key in zip(pairs["Query"], pairs["Key"])]
            self.assertEqual(found, sorted(found, reverse=True))
            numpy.testing.assert_allclose(found, pairs["Contact Evidence"], atol=1e-5)
            table = recording.contacts(show="Precision", structure=CHAIN, **LATTICE)
            known = {(row[1], row[2]): row[5] for row in zip(*(table[name] for name in ("Source", "Range", "Top", "Pairs", "Contacts", "Precision")))}
            for top, count in (("L", 36), ("L/2", 18), ("L/5", 7)):
                self.assertAlmostEqual(known["All", top], self.precision(self.scores, count))
                self.assertAlmostEqual(known["Medium", top], self.precision(self.scores, count, 12, 23))
            self.assertEqual(known["All", "L/2"], 1)
            heads = recording.contacts(show="Heads", structure=CHAIN, threshold=0.1, **LATTICE)
            for head, weights in enumerate(self.weights):
                attended = weights > 0.1
                self.assertEqual(heads["Attended Pairs"][head], attended.sum())
                self.assertAlmostEqual(heads["Contact Share"][head], self.contacts[attended].mean())
                self.assertAlmostEqual(heads["Attention Share"][head], weights[self.contacts].sum() / weights.sum(), 5)
                self.assertAlmostEqual(heads["Precision L/2"][head], self.precision(evidence(weights.astype(float)), 18))

    def test_sites(self):
        """Attention to a few residues, of each head, counted anew."""
        with atlas.open(RECORDING) as recording:
            heads = recording.contacts(show="Heads", sites="3-5 20", threshold=0.1)
            again = recording.contacts(show="Heads", sites=[3, 4, 5, 20], threshold=0.1)
            for head, weights in enumerate(self.weights):
                to_sites = weights[:, [2, 3, 4, 19]]
                self.assertAlmostEqual(heads["Site Attention Share"][head], to_sites.sum() / weights.sum(), 5)
                self.assertAlmostEqual(heads["Site Share"][head], (to_sites > 0.1).sum() / (weights > 0.1).sum())
            numpy.testing.assert_array_equal(heads["Site Share"], again["Site Share"])
            with self.assertRaisesRegex(ValueError, "Sites: expected numbers of residues from 1 to 36"):
                recording.contacts(show="Heads", sites=[0])

    def test_pairs_without_a_place_are_not_counted(self):
        pairs = numpy.transpose(numpy.triu_indices(36, 3))
        strongest = pairs[numpy.argsort(-self.scores[tuple(pairs.T)], kind="stable")[:36]]
        gone = int(strongest[0, 0])
        path = atlastest.OUTPUT / "unresolved.pdb"
        lines = CHAIN.read_text(encoding="ascii").splitlines(keepends=True)
        kept = [line for line in lines if not (line.startswith("ATOM") and int(line[22:26]) == gone + 1)]
        path.write_text("".join(kept), encoding="ascii")
        count = int((strongest != gone).all(axis=1).sum())
        self.assertLess(count, 36)
        title = proteins.contacts(RECORDING, structure=path, **LATTICE).axes[0].get_title(loc="left")
        self.assertRegex(title, f" of the {count} strongest pairs are in contact")

    def test_figures(self):
        figure = proteins.contacts(RECORDING, structure=CHAIN, **LATTICE)
        self.assertRegex(figure.axes[0].get_title(loc="left"), "36 of the 36 strongest pairs are in contact")
        shown = figure.axes[0].images[0].get_array()
        above = numpy.triu_indices(36, 1)
        numpy.testing.assert_allclose(shown[above], self.scores[above], atol=1e-5)
        contacts, strongest = (dots.get_offsets() for dots in figure.axes[0].collections[:2])
        self.assertEqual({tuple(place) for place in contacts}, set(zip(*numpy.nonzero(numpy.triu(self.contacts)))))
        self.assertEqual(len(strongest), 36)
        one = proteins.contacts(RECORDING, head=2).axes[0]
        self.assertEqual(one.get_title(loc="left"), "Evidence of contacts by head 2 of all layers")
        numpy.testing.assert_allclose(one.images[0].get_array()[above], evidence(self.weights[2].astype(float))[above], atol=1e-5)
        self.assertTrue(self.contacts[tuple(strongest.astype(int).T)].all())
        figure = proteins.contact_heads(RECORDING, structure=CHAIN, sites="1-4", **LATTICE)
        shares = [weights[self.contacts].sum() / weights.sum() for weights in self.weights]
        numpy.testing.assert_allclose(figure.axes[0].images[0].get_array(), [shares], atol=1e-5)
        titles = [axes.get_title(loc="left") for axes in figure.axes]
        self.assertIn("Attention to sites", titles)
        with self.assertRaisesRegex(atlas.Missing, "structure= or sites="):
            proteins.contact_heads(RECORDING)

    def test_commands(self):
        """Figures and a page, as files."""
        chosen = ["--structure", str(CHAIN), "--contact-atom", "CAlpha", "--contact-distance", "4"]
        chosen += ["--minimum-separation", "3"]
        commands.figures([str(RECORDING), "--only", "contacts,contact-heads", *chosen, "-o", str(atlastest.OUTPUT)])
        for name in ("contacts", "contact-heads"):
            self.assertTrue((atlastest.OUTPUT / f"protein-{name}.png").is_file())
        commands.figures([str(RECORDING), "--only", "contact-heads", "--sites", "2", "-o", str(atlastest.OUTPUT / "sites")])
        self.assertTrue((atlastest.OUTPUT / "sites" / "protein-contact-heads.png").is_file())
        page = atlastest.OUTPUT / "protein.html"
        web.main([str(RECORDING), "--only", "structure", *chosen, "-o", str(page)])
        self.assertTrue(page.is_file())
        with self.assertRaisesRegex(SystemExit, "expected a structure"):
            web.main([str(RECORDING), "--only", "structure", "-o", str(page)])

    def test_the_page_has_the_chain_and_its_pairs(self):
        scene = web.contacts_in_space(RECORDING, structure=CHAIN, sites=[2, 30], **LATTICE)
        surface, residues, sites, lines = scene.parts
        self.assertEqual(residues["pointArrays"]["Token"].texts[0], "GLY 1")
        numpy.testing.assert_allclose(residues["points"], places(), atol=1e-4)
        numpy.testing.assert_allclose(sites["points"], places()[[1, 29]], atol=1e-4)
        self.assertEqual(len(lines["cellArrays"]["Query"]), 36)
        # Each point of the tube is on the half of the way to the next residue that is nearer, and around its middle.
        drawn = numpy.unique(surface["polys"]["points"])
        owners = surface["owners"][drawn, 0]
        steps = surface["points"][drawn][:, None] - places()
        self.assertLess(numpy.linalg.norm(steps, axis=2)[range(len(drawn)), owners].max(), 1.9 + 0.6)
        self.assertEqual(set(owners), set(range(36)))
        attention = residues["attention"]
        found = attention["matrix"].reshape(37, 36) / 65535 * numpy.array(attention["highest"])[:, None]
        mean = numpy.mean(self.weights, axis=0)
        numpy.testing.assert_allclose(found, [*mean, mean.mean(axis=0)], atol=1e-5)
        self.assertEqual(attention["rows"].ravel().tolist(), list(range(36)))
        one = web.contacts_in_space(RECORDING, layer=0, head=2, structure=CHAIN, **LATTICE).parts[1]["attention"]
        found = one["matrix"].reshape(37, 36)[:36] / 65535 * numpy.array(one["highest"])[:36, None]
        numpy.testing.assert_allclose(found, self.weights[2], atol=1e-5)
        with self.assertRaisesRegex(atlas.Missing, "a structure"):
            web.contacts_in_space(RECORDING)

    def test_chains_are_drawn_by_their_places(self):
        """Of residues that are out of order, of another model than the first, and with a gap."""
        lines = [line for line in CHAIN.read_text(encoding="ascii").splitlines() if line.startswith("ATOM")][:6]
        chosen = [lines[number] for number in (3, 0, 1, 4)]
        path = atlastest.OUTPUT / "disorder.pdb"
        path.write_text("".join(f"MODEL        {model}\n" + "".join(f"{line}\n" for line in chosen) + "ENDMDL\n" for model in (2, 3)))
        with atlas.open(RECORDING):
            reader = simple.MmcifReader(FileName=str(path))
            made = ribbon(data.fetch(reader, 1))
        self.assertGreater(made.surface.GetNumberOfPolys(), 0)
        found = numpy.array([made.residues.GetPoint(i) for i in range(4)])
        known = numpy.array([[float(line[begin : begin + 8]) for begin in (30, 38, 46)] for line in chosen])
        numpy.testing.assert_allclose(found, known, atol=1e-4)
        with self.assertRaisesRegex(ValueError, "expected a protein with C-alpha atoms, found none"):
            ribbon(data.fetch(simple.MmcifReader(FileName=str(water())), 1))

    def test_another_chain_is_shown_beside_the_recorded_one(self):
        """The recorded protein is the second chain, without its first two residues and shifted by 100."""
        records = [line for line in CHAIN.read_text(encoding="ascii").splitlines() if line.startswith("ATOM")]
        other = "".join(f"{line}\n" for line in records[:5]) + "TER\n"
        own = [f"{line[:21]}B{int(line[22:26]) + 100:4}{line[26:30]}{float(line[30:38]) + 30:8.3f}{line[38:]}\n" for line in records[2:]]
        path = atlastest.OUTPUT / "chains.pdb"
        path.write_text(other + "".join(own) + "TER\n", encoding="ascii")
        residues = web.contacts_in_space(RECORDING, structure=path, chain="B", **LATTICE).parts[1]
        self.assertEqual(residues["attention"]["rows"].ravel().tolist(), [-1] * 5 + list(range(2, 36)))
        words = residues["pointArrays"]["Token"]
        self.assertEqual([words.texts[i] for i in words.indices[5:7]], ["GLY 103", "PRO 104"])
        self.assertEqual(residues["pointArrays"]["Position"].ravel()[:7].tolist(), [-1] * 5 + [2, 3])

    def test_mutations(self):
        """Beside recordings of the protein with each residue masked."""
        with atlas.open(MODEL) as model, atlas.open(RECORDING) as recording:
            letters = "".join(recording.tokens())
            table = model.mutations(letters)
            self.assertEqual(len(table), 36 * 20)
            tokens, _ = atlastest.read_safetensors(RECORDING)
            vocabulary = dict(zip(letters, tokens["tokens.id"].tolist()))
            for place in (0, 17, 35):
                ids = tokens["tokens.id"].tolist()
                ids[place] = 20  # [MASK]
                with model.record(token_ids=" ".join(map(str, ids)), record="Logits") as masked:
                    logits = masked.logits()[place].astype(float)
                for letter, token in vocabulary.items():
                    row = place * 20 + AMINO_ACIDS.index(letter)
                    expected = logits[token] - logits[vocabulary[letters[place]]]
                    self.assertAlmostEqual(table["Mutation Effect"][row], expected, 4)
            residues = model.mutations(letters, show="Residues")
            effects = numpy.asarray(table["Mutation Effect"]).reshape(36, 20)
            numpy.testing.assert_allclose(residues["Mean Effect"], effects.sum(1) / 19, atol=1e-9)
            with self.assertRaisesRegex(ValueError, "Protein: sequence 1: expected residues"):
                model.mutations("GF*")
            with self.assertRaisesRegex(ValueError, "protein: expected letters of residues, found none"):
                model.mutations("")

    def test_another_protein_is_refused(self):
        other = atlastest.OUTPUT / "other.pdb"
        other.write_text(CHAIN.read_text(encoding="ascii").replace("GLY", "TRP").replace("PRO", "TRP"), encoding="ascii")
        with atlas.open(RECORDING) as recording:
            with self.assertRaisesRegex(ValueError, "expected the same protein"):
                recording.contacts(structure=other, **LATTICE)
            with self.assertRaises(FileNotFoundError):
                recording.contacts(structure=atlastest.OUTPUT / "none.pdb")

    def test_proxies(self):
        recording = simple.RecordingReader(FileName=str(RECORDING))
        protein = simple.MmcifReader(FileName=str(CHAIN))
        shown = simple.ContactMap(
            Input=recording, Structure=protein, ContactAtom="CAlpha", ContactDistance=4, MinimumSeparation=3
        )
        shown.UpdatePipeline()
        lines = servermanager.Fetch(shown, idx=4)
        self.assertEqual(lines.GetNumberOfLines(), 36)
        model = simple.TransformerReader(FileName=str(MODEL))
        bound = simple.BindTokens(Input=protein, Recording=recording, Method="Residues")
        scan = simple.MutationScan(Input=model, Structure=bound, Protein="GFGPGCLCSSGSGIGCGTTQTPGKWPDPMMGPMPMP")
        scan.UpdatePipeline()
        effects = servermanager.Fetch(scan, idx=3).GetPointData().GetArray("Mean Effect")
        means = servermanager.Fetch(scan, idx=2).GetColumnByName("Mean Effect")
        self.assertEqual([effects.GetValue(i) for i in range(36)], [numpy.float32(means.GetValue(i)) for i in range(36)])


class OnScreen:
    """Where a page shows places: the camera of its scene, which looks along parallel lines."""

    def __init__(self, scene, rectangle):
        left, top, right, bottom = rectangle
        camera = scene.camera
        self.middle = numpy.array(camera["focalPoint"])
        toward = numpy.array(camera["position"]) - self.middle
        across = numpy.cross(camera["viewUp"], toward)
        up = numpy.cross(toward, across)
        self.axes = [axis / numpy.linalg.norm(axis) for axis in (across, up, toward)]
        self.scale = (bottom - top) / 2 / camera["parallelScale"]
        self.corner = ((left + right) / 2, (top + bottom) / 2)

    def __call__(self, points):
        """x and y in the window, and how near the place is."""
        x, y, near = ((points - self.middle) @ numpy.transpose(self.axes)).T
        return numpy.array([self.corner[0] + self.scale * x, self.corner[1] - self.scale * y, near]).T


@unittest.skipUnless(PROGRAM, "needs Chromium")
class Pages(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = cls.enterClassContext(Chromium())
        cls.path = atlastest.OUTPUT / "structure.html"
        cls.scene = web.contacts_in_space(RECORDING, structure=CHAIN, sites="1-4", **LATTICE)
        web.page([web.contact_map(RECORDING, structure=CHAIN, **LATTICE), cls.scene], cls.path)
        cls.mean = numpy.mean([attention_of(RECORDING, 0, head, causal=False) for head in range(4)], axis=0)

    def setUp(self):
        super().setUp()
        self.browser.resize(1000, 900)
        self.browser.prefer("light")

    def open(self, asks):
        self.browser.open(self.path, asks)
        self.assertEqual((self.browser.state("error"), self.browser.console), (None, []))

    def legend(self):
        return self.browser.run("document.querySelector('#legends .legend').textContent")

    def green(self):
        """How many pixels of the stage are green: the query's."""
        path = atlastest.OUTPUT / "structure.png"
        self.browser.picture(path)
        left, top, right, bottom = map(round, self.browser.rectangle("#stage"))
        red, green, blue = numpy.moveaxis(atlastest.read_picture(path)[::-1][top:bottom, left:right, :3].astype(int), 2, 0)
        return int(((green > red + 40) & (green > blue + 40)).sum())

    def test_the_residue_in_front_is_found(self):
        """Wherever the page says what residue is at a place of the ribbon, by the triangles that lie there."""
        self.open("scene=1")
        left, top, right, bottom = rectangle = self.browser.rectangle("#stage")
        surface = self.scene.parts[0]
        corners = OnScreen(self.scene, rectangle)(surface["points"].astype(float))[surface["polys"]["points"].reshape(-1, 3)]
        owners = surface["owners"].ravel()[surface["polys"]["points"].reshape(-1, 3)]

        def front(place):
            """The residues of the corners of the triangle in front, if there is one."""
            a, b, c = (corners[:, k, :2] - place for k in range(3))
            sides = numpy.array([u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0] for u, v in ((b, c), (c, a), (a, b))])
            inside = (sides >= 0).all(axis=0) | (sides <= 0).all(axis=0)
            if not inside.any():
                return set()
            depth = (corners[inside, :, 2].T * sides[:, inside]).sum(axis=0) / sides[:, inside].sum(axis=0)
            return set(owners[numpy.flatnonzero(inside)[depth.argmax()]])

        compared = 0
        for x in numpy.linspace(left, right, 26)[6:-6]:
            for y in numpy.linspace(top, bottom, 14)[1:-1]:
                around = [front((x + i, y + j)) for i, j in ((0, 0), (2, 0), (-2, 0), (0, 2), (0, -2))]
                known = set.union(*around)
                if not all(around) or max(known) - min(known) > 1:
                    continue  # not where the ribbon or a part of it ends
                self.browser.point(x, y)
                item = self.browser.state("item") or f"{x} {y}: {around}"
                if "Query" not in item:  # and no arc is before it
                    found = dict(row.split(": ", 1) for row in item.split("; "))
                    self.assertIn(int(found["Position"]), known)
                    compared += 1
        self.assertGreater(compared, 10)

    def test_a_click_chooses_the_query(self):
        self.open("scene=1")
        self.assertEqual(self.browser.state("query"), None)
        self.assertRegex(self.legend(), r"Mean attention.*0\.0")
        self.assertEqual(self.green(), 0)
        shown = OnScreen(self.scene, self.browser.rectangle("#stage"))
        screen, surface = shown(places()), shown(self.scene.parts[0]["points"].astype(float))
        owners = self.scene.parts[0]["owners"].ravel()
        for query in range(4, 36):  # one before which nothing else is
            others = surface[(owners != query) & (numpy.linalg.norm(surface[:, :2] - screen[query, :2], axis=1) < 25)]
            if not len(others) or others[:, 2].max() < screen[query, 2] - 1:
                break
        self.browser.click(*screen[query, :2])
        self.assertEqual(self.browser.state("query"), str(query))
        name = self.scene.parts[1]["pointArrays"]["Token"].texts[self.scene.parts[1]["pointArrays"]["Token"].indices[query]]
        self.assertIn(f"Attention of {name}", self.legend())
        self.assertAlmostEqual(float(self.legend().split()[-1][-5:]), self.mean[query].max(), 2)
        item = dict(row.split(": ", 1) for row in self.browser.state("item").split("; "))
        self.assertAlmostEqual(float(item[f"Attention of {name}"]), self.mean[query, query], 3)
        self.assertEqual(self.browser.run("location.hash"), f"#scene=1&query={query}")
        self.assertGreater(self.green(), 100)
        self.browser.click(*screen[query, :2])
        self.assertEqual((self.browser.state("query"), self.browser.run("location.hash")), (None, "#scene=1"))

    def test_the_address_and_the_map_choose_the_query(self):
        self.open("scene=1&query=5")
        self.assertIn("Attention of CYS 6", self.legend())
        self.open("scene=0")
        self.browser.run("document.getElementById('stage').focus()")
        for key in ("ArrowRight", "ArrowRight", "Enter"):
            self.browser.press(key)
        item = dict(row.split(": ", 1) for row in self.browser.state("item").split("; "))
        self.assertEqual(self.browser.state("query"), item["Query"])
        self.browser.run("document.getElementById('tab-1').click()")
        self.browser.settle()
        self.assertIn("Attention of", self.legend())
        self.open("scene=1&query=400")  # a residue that is not there: the mean
        self.assertIn("Mean attention", self.legend())
