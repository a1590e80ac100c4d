"""What filters tell of the weights of a transformer, and of changes to its runs, as arrays and tables."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from collections.abc import Sequence as Listed
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from attentionatlas._internal import data
from attentionatlas._internal.arguments import Head, index, json_lines, number, some, text_lines, word
from attentionatlas._internal.circuitfile import Circuit
from attentionatlas._internal.readers import Missing
from attentionatlas._internal.tables import Table, Tables, as_table

Floats: TypeAlias = NDArray[numpy.floating[Any]]


def measures_loss(made: Any) -> bool:
    """Whether a filter of attribution measures a loss, which has no tokens."""
    return data.fetch(made).GetFieldData().GetAbstractArray("Target") is None


def patching_texts(
    prompt: str | Listed[str], patch_from: str | Listed[str] | None, reference: str | Listed[str] | None
) -> dict[str, Any]:
    """The options of ActivationPatching that are texts."""
    texts = {"prompt": prompt, "patch_from": patch_from, "reference_prompts": text_lines(reference)}
    written = {name: json_lines(name, text) for name, text in texts.items() if text}
    return {**written, "prompt_format": "JsonLines"}


def check_patching(texts: Mapping[str, str | Listed[str]], position: Head, special: str) -> None:
    """Raises ValueError without one of the texts, and for a position below 0, in place of which `special` stands."""
    for name, text in texts.items():
        if not text:
            raise ValueError(f"{name}: expected a text, found none.")
    if not isinstance(position, str) and number("position", position) < 0:
        raise ValueError(f"position: expected a number from 0 or \"{special}\", found {position}.")


class Model(Tables):
    """A model that is open: a SmallModel or a Transformer, with the number of its heads."""

    head_count: int
    #: The file; None if the model was just trained.
    path: pathlib.Path | None

    def _inputs(self, name: str) -> dict[str, Any]:
        return {"Input": self.reader}

    def curves(self) -> Table:
        """Loss, accuracy and what else was measured by Step of a training; raises Missing for a model from a file."""
        self._check_trained()
        return as_table(data.table(self.reader, 1))

    def _check_trained(self) -> None:
        if self.path is not None:
            raise Missing(f"{self.name}: expected a model that was just trained, found one from a file")


class Circuits(Model):
    """A transformer's tables of its circuits."""

    layer_count: int

    def place(self, layer: int, head: int) -> tuple[int, int]:
        """Layer and head as filters take them, negative ones from the end; raises ValueError if there is no such head."""
        return index("layer", layer, range(self.layer_count)), index("head", head, range(self.head_count))

    def composition(self, kind: str = "K", processing: str = "TransformerLens") -> Table:
        """Which heads read what heads of earlier layers write: a row per pair with its Score, 0 to 1, and Corrected, that
        less the score of random matrices.

        kind: Q, K or V, what of the later head reads. processing: of the weights, None or TransformerLens.
        """
        return self._of("HeadComposition", 1, locals())

    def spectra(
        self, layer: Head = "all", head: Head = "all", circuit: str = "OV", full: bool = False,
        processing: str = "TransformerLens",
    ) -> Table:
        """The eigenvalues and singular values of a circuit, and Copying, the sum of the real parts of the eigenvalues
        over that of their moduli, -1 to 1: a row per head.

        layer, head: a number, or "all". circuit: OV or QK. full: over the vocabulary. processing: as composition.
        """
        layer, head = some("layer", layer, range(self.layer_count), "all"), some("head", head, range(self.head_count), "all")
        return self._of("HeadSpectra", 0, locals())

    def circuit(
        self, layer: int = 0, head: int = 0, circuit: str = "QK", tokens: Listed[str] = (), top: int = 10,
        processing: str = "TransformerLens",
    ) -> Table:
        """What a head attends to and writes: a row per token, direction and rank with the other token and the Value.

        circuit: QK, which sources each destination attends to; OV, which outputs attention to each source raises; or
        PositionQK, of positions. tokens: texts or #ids; empty: frequent words. top: partners of each token.
        """
        layer, head = self.place(layer, head)
        return self._of("HeadCircuit", 0, locals())

    def circuit_matrix(
        self, layer: int = 0, head: int = 0, circuit: str = "QK", tokens: Listed[str] = (),
        processing: str = "TransformerLens",
    ) -> Floats:
        """The circuit of a head on some words, as circuit(): an array [destinations or sources, sources or outputs]."""
        layer, head = self.place(layer, head)
        return self._image(circuit, 1, "HeadCircuit", locals())

    def skip_trigrams(
        self,
        layer: int = 0,
        head: int = 0,
        top: int = 50,
        tokens: Listed[str] = (),
        source_limit: int = 2048,
        processing: str = "TransformerLens",
    ) -> Table:
        """The strongest skip-trigrams "source ... destination -> output" of a head: a row each with the Score, QK x OV.

        top: the number of rows. tokens: texts or #ids of sources; empty: the vocabulary. source_limit: the most tokens of
        it that are searched as sources, those with the longest keys and values; 0: all.
        """
        layer, head = self.place(layer, head)
        return self._of("SkipTrigrams", 0, locals())

    def bigrams(self, tokens: Listed[str] = (), top: int = 10, processing: str = "TransformerLens") -> Table:
        """The words that follow others by embedding and unembedding alone: a row per token and rank with the Logit.

        tokens: texts or #ids; empty: frequent words. top: following words of each.
        """
        return self._of("BigramTable", 0, locals())

    def virtual_weights(
        self, from_layer: int, from_head: int, to_layer: int, to_head: int, kind: str = "K",
        processing: str = "TransformerLens",
    ) -> Floats:
        """The weights through which a head reads what an earlier one writes: an array [values of the earlier head,
        components of the later one's queries, keys or values (kind Q, K or V)]."""
        from_layer, from_head = self.place(from_layer, from_head)
        to_layer, to_head = self.place(to_layer, to_head)
        return self._image("Virtual Weights", 0, "VirtualWeights", locals())

    def patching(
        self,
        prompt: str,
        patch_from: str,
        site: str = "HeadOutput",
        mode: str = "Patch",
        target: str = "",
        against: str = "",
        position: Head = "all",
        reference_prompts: str | Listed[str] | None = None,
    ) -> Table:
        """Which activations make the model predict one token and not another (activation patching): a row per head, or
        layer and position, with the Logit Difference and the Effect, of which 1 makes up the whole difference.

        prompt, patch_from: texts of as many tokens, which may have line breaks. site: HeadOutput, Residual, AttentionOutput or MlpOutput. mode:
        Patch, Zero, MeanOverPositions or MeanOverPrompts, those of reference_prompts, a list of texts or a text with one
        in each line. target, against: tokens; empty:
        the predictions on patch_from and on prompt. position: a number, or "all".
        """
        check_patching({"prompt": prompt, **({"patch_from": patch_from} if mode == "Patch" else {})}, position, "all")
        written = patching_texts(prompt, patch_from, reference_prompts)
        places = {"site": site, "mode": mode, "target": target, "against": against, "position": position}
        return self._of("ActivationPatching", 0, {**places, **written})

    def mutations(self, protein: str, show: str = "Effects") -> Table:
        """What each substitution of a residue does to a protein, by a model that predicts masked residues (masked marginals,
        Meier et al. 2021): the Mutation Effect, the logarithm of the probability of the mutant less that of the wild type.

        protein: its letters, or a FASTA record. show: Effects, a row per residue and amino acid; or Residues, a row per
        residue with the Mean Effect. Raises ValueError for letters that are no residues, and for other models.
        """
        port = {"Effects": 0, "Residues": 2}[word("show", show, ("Effects", "Residues"))]
        if not protein:
            raise ValueError("protein: expected letters of residues, found none.")
        return self._of("MutationScan", port, {"protein": protein})

    def attribution(
        self,
        prompt: str | Listed[str],
        patch_from: str | Listed[str],
        edges: bool = False,
        target: str = "",
        against: str = "",
        position: Head = "last",
        steps: int = 10,
        exact: bool = False,
        exact_edges: int = 0,
        measure: str = "LogitDifference",
    ) -> Table:
        """Which heads and MLPs make the model predict one token and not another, estimated by gradients (attribution
        patching): a row per node with its Effect on the logit difference, negative for parts that raise it; on a loss
        negative for parts that raise that, so positive for those that help to predict.

        prompt, patch_from: as patching, or lists of them, pairs of which all measures and effects are means. edges: a row
        per edge between nodes, strongest first, by its Input, Q, K, V or Stream. target, against: tokens; empty: the predictions on prompt and on patch_from, the opposite of
        patching. position: of the logits, a number, or "last". steps: gradients that are averaged (integrated
        gradients). exact: also Exact Effect, of a run with the node patched; not with edges, which raises ValueError.
        exact_edges: of how many edges, the strongest, there is also the Exact Effect, NaN for the others; with edges alone.
        measure: LogitDifference, or Loss, the mean cross-entropy of the tokens of prompt, without target, against and position.
        """
        if edges and exact:
            raise ValueError("exact: expected False for edges, which have exact_edges, found True.")
        if exact_edges and not edges:
            raise ValueError(f"exact_edges: expected 0 without edges, found {exact_edges}.")
        asked = {"edges": edges, "target": target, "against": against, "position": position, "steps": steps, "exact": exact}
        asked.update(exact_edges=exact_edges, measure=measure)
        return self._of("AttributionPatching", 2 if edges else 1, {**asked, **self._pair(prompt, patch_from, position)})

    def circuit_faithfulness(
        self,
        prompt: str | Listed[str],
        patch_from: str | Listed[str],
        circuit: str | Circuit = "Nodes",
        target: str = "",
        against: str = "",
        position: Head = "last",
        steps: int = 10,
        measure: str = "LogitDifference",
    ) -> Table:
        """How well circuits of the strongest nodes or edges of attribution do alone: a row per Size with Faithfulness, 1
        if the circuit alone reproduces the whole model's difference, Without Circuit, the share of the difference that
        remains in the model without the circuit, and Incompleteness, by how much circuit and model differ at most when
        both lack the same part of the circuit, its stronger half or all, or none (Wang et al. 2022).

        circuit: Nodes or Edges, or a Circuit, of which there is one row. The others: as attribution.
        """
        asked: dict[str, Any] = {"target": target, "against": against, "position": position, "steps": steps, "measure": measure}
        if isinstance(circuit, Circuit):
            asked.update(circuit="FromFile", circuit_file=circuit, edges=False)
        else:
            kind = word("circuit", circuit, ("Nodes", "Edges"))
            asked.update(circuit=kind, edges=kind == "Edges")
        return self._of("AttributionPatching", 4, {**asked, **self._pair(prompt, patch_from, position)})

    def find_circuit(
        self,
        prompt: str | Listed[str],
        patch_from: str | Listed[str],
        of: str = "Edges",
        top: int = 60,
        target: str = "",
        against: str = "",
        position: Head = "last",
        steps: int = 10,
        measure: str = "LogitDifference",
    ) -> Circuit:
        """The circuit of the strongest nodes or edges of attribution, which can be saved, compared and run alone.

        of: Nodes or Edges. top: how many; 0: all. The others: as attribution.
        """
        asked: dict[str, Any] = {"target": target, "against": against, "position": position, "steps": steps, "top": top}
        asked["measure"] = measure
        asked["edges"] = word("of", of, ("Nodes", "Edges")) == "Edges"
        with self.scope():
            return Circuit.found(self.made("AttributionPatching", **asked, **self._pair(prompt, patch_from, position)))

    @staticmethod
    def _pair(prompt: str | Listed[str], patch_from: str | Listed[str], position: Head) -> dict[str, Any]:
        """The prompts of attribution as options. Raises ValueError without one, and for a position below 0."""
        check_patching({"prompt": prompt, "patch_from": patch_from}, position, "last")
        return patching_texts(prompt, patch_from, None)

    def _image(self, array: str, port: int, name: str, options: dict[str, Any]) -> Floats:
        """An array of an image that a filter makes, of which the options are a method's arguments."""
        with self.scope():
            made = self.made(name, port, **{key: value for key, value in options.items() if key != "self"})
            image: Floats = data.image(made, array, port)[::-1]
            return image.copy()
