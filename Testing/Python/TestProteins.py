"""Contacts and mutations of the protein that is installed, by NumPy beside the filters."""

import shutil

import attentionatlas as atlas
import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import __main__ as commands, proteins, web
from attentionatlas._internal import data
from attentionatlas._internal.proteins import trace
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

    def test_prompts_of_python_keep_their_format(self):
        letters = "GFGPGCLCSSGS"
        with atlas.open(MODEL) as model:
            found = []
            for text, kind in ((" ".join(letters), None), (f">chain\n{letters[:5]}\n{letters[5:]}", "fasta")):
                with model.record(text, prompt_format=kind) as recording:
                    found.append(recording.tokens())
                    self.assertEqual(recording.sequences, 1)
        self.assertEqual(found[1], found[0])

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
        scene = web.contacts_in_space(RECORDING, structure=CHAIN, **LATTICE)
        tube, residues, lines = scene.parts
        self.assertEqual(residues["pointArrays"]["Token"].texts[0], "GLY 1")
        numpy.testing.assert_allclose(residues["points"], places(), atol=1e-4)
        self.assertEqual(len(lines["cellArrays"]["Query"]), 36)
        low, high = tube["points"].min(0), tube["points"].max(0)
        radius = 0.12 * 3.8
        numpy.testing.assert_allclose(low, places().min(0) - radius, atol=radius / 2)
        numpy.testing.assert_allclose(high, places().max(0) + radius, atol=radius / 2)
        with self.assertRaisesRegex(atlas.Missing, "a structure"):
            web.contacts_in_space(RECORDING)

    def test_chains_are_traced_by_their_places(self):
        """Of residues that are out of order, of another model than the first, and with a gap."""
        lines = [line for line in CHAIN.read_text(encoding="ascii").splitlines() if line.startswith("ATOM")][:6]
        chosen = [lines[number] for number in (3, 0, 1, 4)]
        path = atlastest.OUTPUT / "disorder.pdb"
        path.write_text("".join(f"MODEL        {model}\n" + "".join(f"{line}\n" for line in chosen) + "ENDMDL\n" for model in (2, 3)))
        with atlas.open(RECORDING):
            structure = simple.MmcifReader(FileName=str(path))
            tube, residues = trace(data.fetch(structure), "")
        self.assertGreater(tube.GetNumberOfPoints(), 0)
        self.assertEqual(residues.GetNumberOfPoints(), 4)
        found = numpy.array([residues.GetPoint(i) for i in range(4)])
        known = numpy.array([[float(line[begin : begin + 8]) for begin in (30, 38, 46)] for line in chosen])
        self.assertEqual(set(map(tuple, found.round(3))), set(map(tuple, known.round(3))))
        with self.assertRaisesRegex(ValueError, "found none in chain 'Q'"):
            trace(data.fetch(structure), "Q")

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
