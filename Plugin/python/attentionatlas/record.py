"""Turns a run of Hugging Face's transformers or of TransformerLens into a recording.

    python3 record.py MODEL "a text" -o run.safetensors [--attention | --transformer-lens]

Needs those libraries, but not ParaView. A Hugging Face run keeps queries and keys as the model's attention
function gets them, whichever it is: no attention is computed for it, and memory is that of one layer. A
name that ends with .safetensors.index.json gives a file per layer. With --attention it keeps the attention
itself, of any model. A TransformerLens run keeps queries, keys and values. RecordingReader reads the file.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import math
import os
import pathlib
import re
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

#: Tensors by name, token strings, metadata.
Recorded = tuple[dict[str, Any], list[str], dict[str, str]]
#: What is kept of a cache: the names of HookedTransformer, and those of TransformerBridge.
HOOKS = ("hook_q", "hook_k", "hook_v", "hook_rot_q", "hook_rot_k")
BRIDGE_HOOKS = tuple(
    f".attn.{name}"
    for part in "qkv"
    for name in (f"{part}.hook_out", f"qkv.{part}_hook_out")
)
#: How the name of a recording ends that is an index of files, one per layer.
INDEX = ".safetensors.index.json"
#: Attention modules that add T5's bias of distances to scores, which attention functions get as a mask, if at all.
T5_MODULES = ("T5Attention", "MT5Attention", "SwitchTransformersAttention", "Pop2PianoAttention")
#: Attention modules whose sinks scale the output of a head, and are no part of the attention that they return.
SCALING_SINKS = ("GraniteSWAAttention",)
_CROSS = re.compile(r"encoder_attn|cross_?attn|cross_?attention|EncDecAttention", re.I)
_NO_LANGUAGE = re.compile(r"vision|visual|image|audio", re.I)
#: At most this in an added mask hides a key.
_HIDDEN = -1e4


def record_hugging_face(
    model: Any, tokenizer: Any, text: str, *, layers: Sequence[int] | None = None, dtype: str | None = None
) -> Recorded:
    """Runs a model, loaded with attn_implementation="eager", on a text.

    layers: those to keep, all by default. dtype: of numbers in the file, float32 or float16, by default float32.
    Returns tensors (attention [layers, 1, heads, tokens, tokens], or layer.L.attention of each of the layers that
    are asked for, and token_ids), token strings, metadata. write_hugging_face needs no eager attention.
    """
    inputs = _inputs(model, tokenizer, text, None)
    with _without_gradients():
        attentions = model(**inputs, output_attentions=True).attentions
    if not attentions or any(layer is None for layer in attentions):
        raise ValueError('expected the attention of each layer; load with attn_implementation="eager".')
    ids = inputs["input_ids"]
    if layers is None:
        kept = {"attention": _stack(attentions)}
    else:
        _require_layers(layers, range(len(attentions)))
        kept = {f"layer.{layer}.attention": _array(attentions[layer]) for layer in layers}
    tensors = {**_in_precision(kept, dtype), "token_ids": _array(ids)}
    tokens = tokenizer.convert_ids_to_tokens(_array(ids)[0].tolist())
    return tensors, tokens, {"architecture": model.config.model_type}


def write_hugging_face(
    path: str | os.PathLike[str], model: Any, tokenizer: Any, text: str | Sequence[str] | Mapping[str, Any], *,
    target: str | Sequence[str] | None = None, layers: Sequence[int] | None = None, values: bool = False,
    dtype: str | None = None, part: str = "language",
) -> pathlib.Path:
    """Runs a model on texts and writes its queries and keys, after rotation and normalization, layer by layer.

    path: NAME.safetensors, or NAME.safetensors.index.json for a file per layer. It appears whole or not at all.
    text: one or more texts, or the model's inputs, such as a processor made. target: of a model with an encoder and a
    decoder, the decoder's texts; by default what the model generates. layers: those to keep, all by default. values:
    keeps values too. dtype: of numbers in the file, float32, float16 or bfloat16, by default the model's. part: of a
    model of pictures or sound, "language", or "vision" for its tower. The model may be loaded with any attention:
    its attention function is called as before, and what it gets is kept. Returns the path. Raises ValueError if the
    attention does not follow from queries and keys alone, and NotHeardError, a ValueError, for models that call no
    attention function of transformers, such as BLOOM and GPT-J; both say why.
    """
    if dtype not in (None, "float32", "float16", "bfloat16"):
        raise ValueError(f"dtype: expected float32, float16 or bfloat16, found {dtype}.")
    if part not in ("language", "vision"):
        raise ValueError(f"part: expected language or vision, found {part}.")
    path = pathlib.Path(path)
    if path.suffix != ".safetensors" and not path.name.endswith(INDEX):
        raise ValueError(f"{path}: expected a name that ends with .safetensors or {INDEX}.")
    inputs = _inputs(model, tokenizer, text, target)
    with _Files(path) as files:
        run = _Run(model, tokenizer, inputs, files, layers, values, dtype, part)
        forward = getattr(model, "forward", model)
        known = inspect.signature(forward).parameters
        spare = {"use_cache": False, "logits_to_keep": 1}  # what a run need not keep
        chosen = {name: value for name, value in spare.items() if name in known}
        with _listening(model, run), _without_gradients():
            model(**{**chosen, **inputs})
        run.finish()
    return path


def record_transformer_lens(
    model: Any, text: str, *, layers: Sequence[int] | None = None, dtype: str | None = None
) -> Recorded:
    """Runs a TransformerBridge or a HookedTransformer on a text.

    layers: those to keep, all by default. dtype: of numbers in the file, float32 or float16, by default float32.
    Returns tensors (queries, keys and values under the names of the cache), token strings, metadata.
    Raises ValueError if the cache holds no queries, or those of a rotary model before their rotation alone.
    """
    ids = model.to_tokens(text)
    with _without_gradients():
        _, cache = model.run_with_cache(ids)
    names = [name for name in cache.keys() if name.endswith(HOOKS + BRIDGE_HOOKS)]
    if not names:
        raise ValueError("expected queries and keys in the cache (hook_q or attn.q.hook_out), found none.")
    cfg = model.cfg
    rotary = getattr(cfg, "positional_embedding_type", None) == "rotary"
    if rotary and not any(name.endswith("hook_rot_q") for name in names):
        raise ValueError("expected rotated queries in the cache (hook_rot_q), found those before rotation.")
    if layers is not None:
        of_layer = {name: int(found[1]) for name in names if (found := re.match(r"blocks\.(\d+)\.", name))}
        _require_layers(layers, sorted(set(of_layer.values())))
        names = [name for name in names if of_layer.get(name) in layers]
    tensors = _in_precision({name: _array(cache[name]) for name in names}, dtype)
    tensors["tokens"] = _array(ids)
    scale = getattr(cfg, "attn_scale", None) or cfg.d_head**0.5
    metadata = {"architecture": cfg.model_name, "score_scale": str(1 / scale)}
    return tensors, model.to_str_tokens(text), metadata


def load_transformer_lens(name: str, device: str | None = None) -> Any:
    """A model of TransformerLens on a device, by default its choice: a TransformerBridge with the weights as
    published, or, with releases before 3, a HookedTransformer."""
    chosen = {} if device is None else {"device": device}
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ImportError:
        from transformer_lens import HookedTransformer

        return HookedTransformer.from_pretrained(name, **chosen)
    return TransformerBridge.boot_transformers(name, **chosen)


def save(path: str | os.PathLike[str], tensors: dict[str, Any], tokens: Iterable[str], metadata: dict[str, str]) -> None:
    """Writes a recording and, beside it, its token strings; both appear whole or not at all."""
    from safetensors.numpy import save_file

    path = pathlib.Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"{path}: expected a name that ends with .safetensors; attention alone is one file.")
    part = path.with_suffix(".part")
    save_file(tensors, str(part), metadata=metadata)
    beside = path.with_suffix(".tokens.json")
    text = beside.with_suffix(".part.json")
    text.write_text(json.dumps(list(tokens), ensure_ascii=False), encoding="utf-8")
    os.replace(text, beside)
    os.replace(part, path)


class NotHeardError(ValueError):
    """A model whose attention does not go through the attention functions of transformers."""


class _Files:
    """The files of a recording, which get their names when `with` ends without an exception.

    Arrays are lists of a type's name in safetensors files and a NumPy array.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.folder = path, pathlib.Path()
        self.headers: list[dict[str, Any]] = []  # of each file, without offsets of other files
        self.metadata: dict[str, str] = {}

    def __enter__(self) -> _Files:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.path.name}.part", dir=self.path.parent))
        return self

    def __exit__(self, kind: Any, *others: Any) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, arrays: Mapping[str, tuple[str, Any]]) -> None:
        """Writes arrays to a file of their own."""
        header, end = {}, 0
        for name, (kind, values) in arrays.items():
            header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [end, end + values.nbytes]}
            end += values.nbytes
        with self._file(len(self.headers)).open("wb") as file:
            file.write(_header(header))
            for _, values in arrays.values():
                file.write(values.tobytes())
        self.headers.append(header)

    def _file(self, number: int) -> pathlib.Path:
        return self.folder / f"{number:05}"

    def _finish(self) -> None:
        if self.path.suffix == ".safetensors":
            self._unite()
        else:
            self._index()

    def _unite(self) -> None:
        """One file, which takes each of the others and removes it."""
        united: dict[str, Any] = {"__metadata__": self.metadata}
        begin = 0
        for header in self.headers:
            end = begin
            for name, entry in header.items():
                offsets = [begin + offset for offset in entry["data_offsets"]]
                united[name], end = {**entry, "data_offsets": offsets}, offsets[1]
            begin = end
        whole = self.folder / "whole"
        with whole.open("wb") as file:
            file.write(_header(united))
            for number, header in enumerate(self.headers):
                with self._file(number).open("rb") as part:
                    part.seek(len(_header(header)))
                    shutil.copyfileobj(part, file, 1 << 24)
                self._file(number).unlink()
        whole.replace(self.path)

    def _index(self) -> None:
        """The files under names that count them, and their index. It comes last: without it there is no recording."""
        stem = self.path.name[: -len(INDEX)]
        count = len(self.headers)
        names = [f"{stem}-{number + 1:05}-of-{count:05}.safetensors" for number in range(count)]
        places = {name: names[number] for number, header in enumerate(self.headers) for name in header}
        index = self.folder / "index"
        index.write_text(json.dumps({"metadata": self.metadata, "weight_map": places}, indent=1), encoding="utf-8")
        earlier = self._earlier(stem)
        self.path.unlink(missing_ok=True)
        for number, name in enumerate(names):
            self._file(number).replace(self.path.with_name(name))
        index.replace(self.path)
        for name in earlier - set(names):
            self.path.with_name(name).unlink(missing_ok=True)

    def _earlier(self, stem: str) -> set[str]:
        """The files of a recording that had this name."""
        try:
            listed = json.loads(self.path.read_text(encoding="utf-8"))["weight_map"].values()
        except (OSError, ValueError, KeyError, AttributeError):
            return set()
        return {name for name in listed if re.fullmatch(re.escape(stem) + r"-\d{5}-of-\d{5}\.safetensors", str(name))}


class _Rows:
    """The tokens of one part of a run: which of a padded batch are kept, and their ids, if they have any."""

    def __init__(self, ids: Any, mask: Any, batch: int, length: int) -> None:
        import numpy

        self.ids = ids if ids is not None and ids.shape == (batch, length) else None
        if mask is None or mask.shape != (batch, length):
            self.kept = [numpy.arange(length)] * batch
        else:
            self.kept = [numpy.flatnonzero(row) for row in mask]
        self.shape = (batch, length)
        self.lengths = [len(kept) for kept in self.kept]

    def take(self, values: Any) -> Any:
        """The rows of the tokens, of an array [batch, length, ...]."""
        import numpy

        return numpy.concatenate([values[b][kept] for b, kept in enumerate(self.kept)])


def _places(config: Any, ids: Sequence[int], grids: Mapping[str, Any], images: int) -> Any:
    """Picture, row and column of each token of pictures among words, -1 for words; None where that is not known.

    It is for pictures with a grid (Qwen2-VL), of which each group of frames is a picture, and for LLaVA's squares.
    """
    import numpy

    ids = numpy.asarray(ids)
    merge = getattr(getattr(config, "vision_config", None), "spatial_merge_size", 1)
    found = numpy.full((3, len(ids)), -1, "<i4")
    pictures = 0
    for name, token in (("image_grid_thw", "image_token_id"), ("video_grid_thw", "video_token_id")):
        squares = numpy.flatnonzero(ids == getattr(config, token, None))
        grid = [(t, h // merge, w // merge) for t, h, w in grids.get(name, numpy.empty((0, 3))).tolist()]
        if name == "image_grid_thw" and not grid and images and config.model_type == "llava":
            token_id = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
            squares = numpy.flatnonzero(ids == token_id)
            side = math.isqrt(len(squares) // images)
            grid = [(1, side, side)] * images
        if len(squares) != sum(t * h * w for t, h, w in grid):
            return None
        done = 0
        for frames, rows, columns in grid:
            for _ in range(frames):
                of_picture = squares[done : done + rows * columns]
                found[0, of_picture] = pictures
                found[1:, of_picture] = numpy.divmod(numpy.arange(rows * columns), columns)
                pictures, done = pictures + 1, done + rows * columns
    return found if pictures else None


class _Part:
    """What is known of the encoder, the decoder or the cross attention of a run."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.rows: Any = None  # _Rows, of queries, from its first layer on
        self.mask: str | None = None
        self.heads = 0
        self.scales: dict[str, float] = {}
        self.caps: dict[str, float] = {}
        self.windows: dict[str, int] = {}
        self.chunks: dict[str, int] = {}
        self.sinks: dict[str, list[float]] = {}
        self.seen: set[int] = set()
        self.bias: Any = None  # T5's, by distance
        self.checked: tuple[Any, Any, Any] = (None, None, None)  # the last mask, what was declared, what it is


class _Run:
    """Writes what the attention functions of a model get while it runs."""

    def __init__(
        self, model: Any, tokenizer: Any, inputs: Mapping[str, Any], files: _Files, layers: Sequence[int] | None,
        values: bool, dtype: str | None, part: str,
    ) -> None:
        self.model, self.config, self.files = model, model.config, files
        self.tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
        self.layers, self.values, self.dtype, self.language = layers, values, dtype, part == "language"
        named = [of + name for of in ("", "decoder_") for name in ("input_ids", "attention_mask")]
        self.inputs = {name: _array(inputs[name]) for name in named if inputs.get(name) is not None}
        grids = ("image_grid_thw", "video_grid_thw")
        self.grids = {name: _array(inputs[name]) for name in grids if inputs.get(name) is not None}
        self.images = len(inputs["pixel_values"]) if inputs.get("pixel_values") is not None else 0
        self.modules = list(model.named_modules())
        self.names = {id(module): name for name, module in self.modules}
        self.encoder = self._encoder() if getattr(self.config, "is_encoder_decoder", False) else None
        self.decoder = _Part("")
        self.parts = {"decoder": self.decoder}
        if self.encoder is not None:
            self.parts |= {"encoder": _Part("encoder."), "cross": _Part("cross.")}

    def _encoder(self) -> str | None:
        """What the names of the encoder's modules begin with, if there is a decoder beside it."""
        name = self.names.get(id(self.model.get_encoder()))
        if not name:
            return None
        beside = (module for other, module in self.modules if not other.startswith(name + "."))
        return name + "." if any(type(module).__name__.endswith("Attention") for module in beside) else None

    def _part_of(self, module: Any, name: str) -> _Part | None:
        """The part to which a module belongs; None for one that is not kept."""
        cross = _CROSS.search(name) is not None or getattr(module, "is_cross_attention", False)
        if self.encoder is None:
            return self.decoder if self._is_language(module, name) == self.language and not cross else None
        return self.parts["encoder" if name.startswith(self.encoder) else "cross" if cross else "decoder"]

    def _is_language(self, module: Any, name: str) -> bool:
        """Whether a module is in the language model of a model that has others too. The only tower is that."""
        of_text = getattr(self.config, "get_text_config", lambda: self.config)()
        if type(of_text) is type(self.config):
            return True
        config = getattr(module, "config", None)
        return _NO_LANGUAGE.search(name) is None if config is None else type(config) is type(of_text)

    def keep(self, module: Any, function: str, given: Mapping[str, Any]) -> None:
        """Takes the arguments of a call of an attention function."""
        name = self.names.get(id(module), "")
        part = self._part_of(module, name)
        if part is None:
            return
        index = _layer_of(module, name, len(part.seen))
        if index in part.seen:
            raise ValueError(
                f"{name}: expected one call of its attention function, found two; modules that layers share, and "
                "towers that run pictures one by one, are not kept."
            )
        part.seen.add(index)
        queries, keys = given["query"], given["key"]
        self._meet(part, name, queries, keys)
        if self.layers is not None and index not in self.layers:
            return
        heads, groups = queries.shape[1], keys.shape[1]
        if heads % groups or part.heads not in (0, heads):
            raise ValueError(
                f"{name}: expected {part.heads or groups} heads as elsewhere, found {heads} with {groups} of keys."
            )
        part.heads = heads
        layer = str(index)
        if part.prefix != "cross.":
            self._see_mask(part, name, layer, module, function, given)
        elif _is_tensor(given["mask"]) and not self._sees_all(given["mask"], name):
            raise ValueError(
                f"{name}: expected cross attention to all tokens of the source, found a mask that hides some."
            )
        part.scales[layer] = _scale(module, function, given)
        self._see_variants(part, name, layer, function, module, given)
        kept = {"query": queries, "key": keys, **({"value": given["value"]} if self.values else {})}
        self.files.add(self._arrays(part, f"{part.prefix}layers.{layer}.heads.", heads, kept))

    def _meet(self, part: _Part, name: str, queries: Any, keys: Any) -> None:
        """Notes the tokens of a part when its first layer comes, and checks the others."""
        if part.rows is None:
            of = "decoder_" if self.encoder is not None and part.prefix != "encoder." else ""
            ids = self.inputs.get(f"{of}input_ids") if self.language else None
            mask = self.inputs.get(f"{of}attention_mask") if self.language else None
            part.rows = _Rows(ids, mask, queries.shape[0], queries.shape[2])
        sources = self.parts["encoder"].rows if part.prefix == "cross." else part.rows
        expected = (part.rows.shape, sources.shape if sources else None)
        found = tuple((tensor.shape[0], tensor.shape[2]) for tensor in (queries, keys))
        if found != expected:
            raise ValueError(
                f"{name}: expected queries and keys of [sequences, tokens] {expected[0]} and {expected[1]}, found "
                f"{found[0]} and {found[1]}; models that run windows or earlier keys on their own are not kept."
            )

    def _see_mask(
        self, part: _Part, name: str, layer: str, module: Any, function: str, given: Mapping[str, Any]
    ) -> None:
        """Notes the mask, window and chunks of a layer, as the mask that it got shows them, or else its module declares."""
        causal = given.get("is_causal")
        if causal is None:
            causal = getattr(module, "is_causal", function != "eager")
        window = int(given.get("sliding_window") or 0)
        mask = given["mask"]
        declared = ("causal" if causal else "bidirectional", window, _chunk(module) if causal else 0)
        if _is_tensor(mask):
            last, told, kind = part.checked
            if last is not mask or told != declared:
                kind = _kind_of_mask(_visible(mask, name), part.rows, declared, name)
                part.checked = (mask, declared, kind)
        else:
            kind = declared
        if part.mask not in (None, kind[0]):
            raise ValueError(f"{name}: expected a {part.mask} mask as in other layers, found a {kind[0]} one.")
        part.mask = kind[0]
        longest = max(part.rows.lengths)
        if kind[1] and (kind[0] == "causal" or kind[1] < longest):
            part.windows[layer] = kind[1]
        if 0 < kind[2] < longest:
            part.chunks[layer] = kind[2]

    def _sees_all(self, mask: Any, name: str) -> bool:
        """Whether a mask of cross attention hides padding alone."""
        seen = _visible(mask, name)
        sources, targets = self.parts["encoder"].rows, self.parts["cross"].rows
        return all(
            seen[min(b, len(seen) - 1), 0][targets.kept[b] if seen.shape[2] > 1 else [0]][:, sources.kept[b]].all()
            for b in range(len(sources.kept))
        )

    def _see_variants(
        self, part: _Part, name: str, layer: str, function: str, module: Any, given: Mapping[str, Any]
    ) -> None:
        cap, sinks = given.get("softcap"), given.get("s_aux")
        if function == "sdpa" and (cap or sinks is not None):
            raise ValueError(
                f"{name}: the attention function sdpa leaves out this model's {'cap of scores' if cap else 'sinks'}; "
                'load it with attn_implementation="flash_attention_2" or "eager".'
            )
        if cap:
            part.caps[layer] = float(cap)
        if sinks is not None and type(module).__name__ not in SCALING_SINKS:
            part.sinks[layer] = _array(sinks).reshape(-1).tolist()

    def _arrays(
        self, part: _Part, prefix: str, heads: int, kept: Mapping[str, Any]
    ) -> dict[str, tuple[str, Any]]:
        """The arrays of a layer: a query of each head, a key and a value of the first head of each group."""
        import numpy

        arrays = {}
        targets, sources = part.rows, self.parts["encoder"].rows if part.prefix == "cross." else part.rows
        for quantity, tensor in kept.items():
            kind = self.dtype or str(tensor.dtype).rpartition(".")[2]
            values = _array(tensor)
            rows = targets if quantity == "query" else sources
            for head in range(values.shape[1]):
                taken = rows.take(values[:, head])
                if part.prefix == "cross.":
                    taken = _between(taken, quantity == "query", sources.lengths, targets.lengths)
                name = f"{prefix}{head * (heads // values.shape[1])}.{quantity}"
                arrays[name] = _stored(numpy.ascontiguousarray(taken), kind, name)
        return arrays

    def keep_t5(self, module: Any, outputs: Mapping[str, Any]) -> None:
        """Takes the queries, keys and values of a module of T5."""
        import numpy

        name = self.names[id(module)]
        part = self._part_of(module, name)
        size = module.key_value_proj_dim
        split = {
            name: output.reshape(output.shape[0], output.shape[1], -1, size).transpose(1, 2)
            for name, output in outputs.items()
        }
        cross = part is not None and part.prefix == "cross."
        if part is not None and not cross and getattr(module, "has_relative_attention_bias", False):
            if part.bias is not None:
                raise ValueError(f"{name}: expected the biases of distances in one layer, found them in two.")
            reach = module.relative_attention_max_distance
            bias = _array(module.compute_bias(reach + 1, reach + 1))[0]  # [heads, queries, keys]
            part.bias = numpy.concatenate([bias[:, :0:-1, 0], bias[:, 0, :]], axis=1)
        given = {"mask": None, "scaling": 1.0, "is_causal": bool(module.is_decoder)}
        self.keep(module, "t5", {**given, **split})

    def finish(self) -> None:
        """Writes tokens and the metadata."""
        import numpy

        if not any(part.seen for part in self.parts.values()):
            if not self.language:
                raise ValueError(f"{type(self.model).__name__}: expected a vision tower, found no attention in one.")
            raise NotHeardError(
                f"{type(self.model).__name__}: its attention does not go through the attention functions of "
                "transformers (ALL_ATTENTION_FUNCTIONS), so that queries and keys cannot be kept. Keep its attention: "
                '--attention, or record_hugging_face with a model loaded with attn_implementation="eager".'
            )
        _require_layers(self.layers or (), sorted(self.decoder.seen))
        arrays: dict[str, tuple[str, Any]] = {}
        texts = {"format": "attention-atlas.recording"}
        version = 1
        for kind, part in self.parts.items():
            if part.rows is None:
                raise ValueError(f"{type(self.model).__name__}: expected attention of the {kind}, found none.")
            rows = [part.rows] if kind != "cross" else [self.parts["encoder"].rows, self.decoder.rows]
            arrays |= self._tokens(part.prefix, rows)
            if part.bias is not None:
                arrays[f"{part.prefix}distance_bias"] = ("F32", numpy.ascontiguousarray(part.bias))
            described = self._describe(kind, part, rows)
            texts |= {part.prefix + name: text for name, text in described.items()}
            variants = bool(part.caps or part.windows or part.sinks)
            version = max(version, 3 if part.prefix or part.bias is not None else 2 if variants else 1)
            version = 5 if part.chunks else 4 if "tokens.picture" in arrays else version
        self.files.add(arrays)
        self.files.metadata = {**texts, "version": str(version)}

    def _tokens(self, prefix: str, rows: Sequence[_Rows]) -> dict[str, tuple[str, Any]]:
        """The tokens of the sequences, each of which has those of all rows one after another."""
        import numpy

        lengths = numpy.array([part.lengths for part in rows])
        arrays = {
            "sequence_offsets": ("I64", numpy.concatenate([[0], lengths.sum(axis=0).cumsum()]).astype("<i8")),
            "tokens.position": ("I32", numpy.concatenate([numpy.arange(n) for n in lengths.sum(axis=0)]).astype("<i4")),
        }
        if all(part.ids is not None for part in rows):
            arrays["tokens.id"] = ("I64", numpy.array(self._ids(rows), "<i8"))
            if self.language and not prefix:
                places = _places(self.config, self._ids(rows), self.grids, self.images)
                names = ("picture", "row", "column") if places is not None else ()
                arrays |= {f"tokens.{name}": ("I32", places[i]) for i, name in enumerate(names)}
        if len(rows) > 1:
            arrays["source_lengths"] = ("I64", lengths[0].astype("<i8"))
        return {prefix + name: array for name, array in arrays.items()}

    def _ids(self, rows: Sequence[_Rows]) -> list[int]:
        return [
            int(token)
            for b in range(len(rows[0].kept))
            for part in rows
            for token in part.ids[b][part.kept[b]]
        ]

    def _strings(self, rows: Sequence[_Rows]) -> list[str] | None:
        if self.tokenizer is None or all(part.ids is None for part in rows):
            return None
        listed: list[str] = []
        for b in range(len(rows[0].kept)):
            for part in rows:
                if part.ids is None:  # such as pieces of sound
                    listed += [f"<{i}>" for i in range(part.lengths[b])]
                else:
                    found = self.tokenizer.convert_ids_to_tokens(part.ids[b][part.kept[b]].tolist())
                    listed += [str(text) for text in found]
        return listed

    def _describe(self, kind: str, part: _Part, rows: Sequence[_Rows]) -> dict[str, str]:
        """The metadata of a part, without its prefix."""
        names = {"decoder": "decoder_layers", "encoder": "encoder_layers", "cross": "decoder_layers"}
        of_text = getattr(self.config, "get_text_config", lambda: self.config)()
        known = None
        if self.encoder is not None:
            known = getattr(self.config, names[kind], None)
        elif self.language:
            known = getattr(of_text, "num_hidden_layers", None)
        described = {
            "architecture": str(self.config.model_type),
            "mask": part.mask or ("cross" if kind == "cross" else "causal"),
            "rotated": "true" if kind != "cross" and self._is_rotated(kind) else "false",
            "processing": "unprocessed",
            "layer_count": str(max([known or 0, *(index + 1 for index in part.seen)])),
            "head_count": str(part.heads),
            "score_scales": json.dumps(part.scales),
        }
        if name := _model_name(pathlib.Path(getattr(self.config, "_name_or_path", "") or "")):
            described["model_name"] = name
        variants = {"score_caps": part.caps, "windows": part.windows, "chunks": part.chunks, "sinks": part.sinks}
        described |= {name: json.dumps(of) for name, of in variants.items() if of}
        strings = self._strings(rows)
        if strings is not None:
            described["tokens"] = json.dumps(strings, ensure_ascii=False)
        return described

    def _is_rotated(self, kind: str) -> bool:
        return any(
            "rotary" in type(module).__name__.lower()
            and (self.encoder is None or name.startswith(self.encoder) == (kind == "encoder"))
            and self._is_language(module, name) == self.language
            for name, module in self.modules
        )


class _Functions(Mapping[str, Callable[..., Any]]):
    """transformers' table of attention functions, each of which is heard."""

    def __init__(self, functions: Any, heard: Callable[[str, Any], Any]) -> None:
        self._functions, self._heard = functions, heard

    def __getitem__(self, name: str) -> Callable[..., Any]:
        heard: Callable[..., Any] = self._heard(name, self._functions[name])
        return heard

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def get_interface(self, name: str, default: Callable[..., Any]) -> Callable[..., Any]:
        heard: Callable[..., Any] = self._heard(name, self._functions.get_interface(name, default))
        return heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._functions, name)


@contextlib.contextmanager
def _listening(model: Any, run: _Run) -> Iterator[None]:
    """While this holds, the attention functions of a model tell `run` their arguments, and then do what they do."""

    def heard(name: str, function: Any) -> Any:
        if getattr(function, "is_heard", False):
            return function
        parameters = inspect.signature(function)
        order = list(parameters.parameters)[:5]

        def listen(*arguments: Any, **named: Any) -> Any:
            given = dict(parameters.bind(*arguments, **named).arguments)
            given.update(given.pop("kwargs", {}))
            module, query, key, value, mask = (given.get(each) for each in order)
            if type(module).__name__ not in T5_MODULES:  # which are heard themselves
                run.keep(module, name, {**given, "query": query, "key": key, "value": value, "mask": mask})
            return function(*arguments, **named)

        listen.is_heard = True  # type: ignore[attr-defined]
        return listen

    with contextlib.ExitStack() as stack:
        for source in {sys.modules.get(kind.__module__) for module in model.modules() for kind in type(module).__mro__}:
            for name, function in list(vars(source).items()) if source else ():
                if name == "ALL_ATTENTION_FUNCTIONS":
                    _replace(stack, source, name, _Functions(function, heard))
                elif re.fullmatch(r"\w*eager_attention_forward", name):
                    _replace(stack, source, name, heard("eager", function))
        for module in model.modules():
            if type(module).__name__ in T5_MODULES:
                _hear_t5(stack, module, run.keep_t5)
        yield


def _replace(stack: contextlib.ExitStack, place: Any, name: str, value: Any) -> None:
    """Sets an attribute until the stack ends."""
    stack.callback(setattr, place, name, getattr(place, name))
    setattr(place, name, value)


def _hear_t5(stack: contextlib.ExitStack, module: Any, keep: Callable[[Any, Mapping[str, Any]], None]) -> None:
    outputs: dict[str, Any] = {}
    for name, quantity in (("q", "query"), ("k", "key"), ("v", "value")):

        def note(_: Any, inputs: Any, output: Any, quantity: str = quantity) -> None:
            outputs[quantity] = output

        stack.callback(getattr(module, name).register_forward_hook(note).remove)

    def pass_on(_: Any, inputs: Any, output: Any) -> None:
        keep(module, dict(outputs))
        outputs.clear()

    stack.callback(module.register_forward_hook(pass_on).remove)


def _inputs(model: Any, tokenizer: Any, text: Any, target: Any) -> dict[str, Any]:
    """The arguments of the model, on its device."""
    if isinstance(text, Mapping):
        inputs = dict(text)
    else:
        padding = {} if isinstance(text, str) else {"padding": True}
        inputs = dict(tokenizer(text, return_tensors="pt", **padding))
    device = getattr(model, "device", None)
    if device is not None:
        inputs = {name: value.to(device) if hasattr(value, "to") else value for name, value in inputs.items()}
    if not getattr(model.config, "is_encoder_decoder", False) or "decoder_input_ids" in inputs:
        return inputs
    if target is not None:
        padding = {} if isinstance(target, str) else {"padding": True}
        labels = tokenizer(text_target=target, return_tensors="pt", **padding)
        ids = model.prepare_decoder_input_ids_from_labels(labels=labels["input_ids"].to(model.device))
        return {**inputs, "decoder_input_ids": ids, "decoder_attention_mask": labels["attention_mask"].to(model.device)}
    if not hasattr(model, "generate"):
        return inputs  # such as an encoder alone
    with _without_gradients():
        ids = model.generate(**inputs)
    inputs["decoder_input_ids"] = ids
    if ids.shape[0] > 1:
        inputs["decoder_attention_mask"] = ids.new_tensor(_until_end(_array(ids), model.config.eos_token_id).tolist())
    return inputs


def _until_end(ids: Any, end: int | Sequence[int] | None) -> Any:
    """1 for each of the generated tokens [sequences, tokens] up to the first one, after the start, that ends a text."""
    import numpy

    ends = numpy.isin(ids, [] if end is None else end)
    ends[:, 0] = False
    return (numpy.cumsum(ends, axis=1) - ends == 0).astype(int)


def _layer_of(module: Any, name: str, count: int) -> int:
    """The index of the layer of a module: its own, or the first number in its name, or else how many came before."""
    index = getattr(module, "layer_idx", None)
    if isinstance(index, int):
        return index
    number = re.search(r"(?:^|\.)(\d+)(?:\.|$)", name)
    return int(number[1]) if number else count


def _scale(module: Any, function: str, given: Mapping[str, Any]) -> float:
    """The factor of query . key."""
    scaling = given.get("scaling")
    if scaling is None and function == "eager" and hasattr(module, "scale_attn_weights"):  # GPT-2
        scaling = given["value"].shape[-1] ** -0.5 if module.scale_attn_weights else 1.0
        if getattr(module, "scale_attn_by_inverse_layer_idx", False):
            scaling /= module.layer_idx + 1
    if scaling is None:
        scaling = getattr(module, "scaling", None)
    return float(1 / math.sqrt(given["query"].shape[-1]) if scaling is None else scaling)


def _is_tensor(mask: Any) -> bool:
    """Whether a mask is given key by key, unlike that of padding alone, which flash attention takes."""
    return mask is not None and len(getattr(mask, "shape", ())) == 4 and hasattr(mask, "is_floating_point")


def _visible(mask: Any, name: str) -> Any:
    """Which keys a mask [sequences, heads, queries, keys] lets queries see."""
    import numpy

    values = _array(mask)
    if values.dtype == bool:
        seen = values
    else:
        seen = values > _HIDDEN
        if (values[seen] != 0).any():
            raise ValueError(
                f"{name}: expected a mask, found a bias that is added to scores; queries and keys do not show it."
            )
    if not (seen == seen[:, :1]).all():
        raise ValueError(f"{name}: expected a mask that all heads share.")
    return numpy.ascontiguousarray(seen[:, :1])


def _chunk(module: Any) -> int:
    """The tokens of the chunks in which a layer attends, as its configuration declares; 0: none."""
    config = getattr(module, "config", None)
    kinds, index = getattr(config, "layer_types", None), getattr(module, "layer_idx", None)
    if not kinds or not isinstance(index, int) or index >= len(kinds) or kinds[index] != "chunked_attention":
        return 0
    return int(getattr(config, "attention_chunk_size", None) or 0)


def _require_layers(asked: Iterable[int], known: Sequence[int]) -> None:
    for layer in asked:
        if layer not in known:
            raise ValueError(f"layers: expected some of {list(known)}, found {layer}.")


def _model_name(place: pathlib.Path) -> str:
    """What a model is called that was read from a folder or by a name: the folder, with the one above of a checkpoint-N;
    of a snapshot of Hugging Face's cache its repository without the owner."""
    if place.parent.name == "snapshots":
        return place.parent.parent.name.rpartition("--")[2]
    is_step = re.fullmatch(r"checkpoint-\d+", place.name) and place.parent.name
    return f"{place.parent.name}/{place.name}" if is_step else place.name


def _in_precision(tensors: Mapping[str, Any], dtype: str | None) -> dict[str, Any]:
    """Arrays of 32 bits in the precision of a file that the library safetensors writes from NumPy."""
    if dtype not in (None, "float32", "float16"):
        raise ValueError(f"dtype: expected float32 or float16, found {dtype}; bfloat16 is for queries and keys of transformers.")
    if dtype != "float16":
        return dict(tensors)
    return {name: _stored(values, dtype, name)[1] for name, values in tensors.items()}


#: The mask (causal or bidirectional), keys of the window and tokens of the chunks of a layer; 0: none.
_Kind = tuple[str, int, int]


def _kind_of_mask(seen: Any, rows: _Rows, declared: _Kind, name: str) -> _Kind:
    """Which mask, window and chunks the keys that are seen mean: as declared, if that fits."""
    import numpy

    parts = [
        seen[min(b, len(seen) - 1), 0][kept if seen.shape[2] > 1 else [0] * len(kept)][:, kept]
        for b, kept in enumerate(rows.kept)
    ]
    longest = max(parts, key=len)
    inferred = int(longest[:, 0].sum()) if len(longest) else 0  # queries that see the first key
    kinds: list[_Kind] = [declared, ("causal", declared[1], 0), ("causal", 0, 0), ("bidirectional", 0, 0)]
    kinds += [("causal", inferred, 0), ("causal", 0, inferred), ("bidirectional", inferred, 0)]

    def fits(kind: _Kind) -> bool:
        mask, window, chunk = kind
        for part in parts:
            place = numpy.arange(len(part))
            distance = place[:, None] - place
            expected = distance >= 0 if mask == "causal" else numpy.ones_like(part)
            if window:
                expected = expected & (abs(distance) < window)
            if chunk:
                expected = expected & (place[:, None] // chunk == place // chunk)
            if not (part == expected).all():
                return False
        return True

    for kind in kinds:
        if fits(kind):
            return kind
    raise ValueError(
        f"{name}: expected a causal or a bidirectional mask, also with a window or in chunks, found another; "
        "keep such attention by --attention."
    )


def _between(values: Any, target: bool, sources: Sequence[int], targets: Sequence[int]) -> Any:
    """Rows of the source and of the target, of each sequence: those given, and zeros."""
    import numpy

    rows, begin = [], 0
    for source, of_target in zip(sources, targets):
        length = of_target if target else source
        own = values[begin : begin + length]
        other = numpy.zeros((source if target else of_target, values.shape[1]), values.dtype)
        rows += [other, own] if target else [own, other]
        begin += length
    return numpy.concatenate(rows)


def _stored(values: Any, dtype: str, name: str) -> tuple[str, Any]:
    """Numbers of 32 bits as a file stores them."""
    import numpy

    if dtype == "float16":
        with numpy.errstate(over="ignore"):
            stored = values.astype("<f2")
        kind, finite = "F16", numpy.isfinite(stored).all()
    elif dtype == "bfloat16":
        bits = values.view("<u4")
        stored = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
        kind, finite = "BF16", ((stored & 0x7F80) != 0x7F80).all()
    else:
        kind, stored, finite = "F32", values, numpy.isfinite(values).all()
    if not finite:
        raise ValueError(f"{name}: expected numbers that are finite as {kind}, found others.")
    return kind, stored


def _header(header: Mapping[str, Any]) -> bytes:
    """What a safetensors file begins with, so that its numbers are aligned."""
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _without_gradients() -> contextlib.AbstractContextManager[Any]:
    torch: Any = sys.modules.get("torch")
    none: contextlib.AbstractContextManager[Any] = torch.no_grad() if torch else contextlib.nullcontext()
    return none


def _array(tensor: Any) -> Any:
    """A tensor as an array of its own; half precisions become float32."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).contiguous().numpy()


def _stack(tensors: Iterable[Any]) -> Any:
    import numpy

    return numpy.stack([_array(tensor) for tensor in tensors])


def _load(options: argparse.Namespace, attention: bool) -> tuple[Any, Any]:
    """A model of transformers, with eager attention or that of the options, and its tokenizer."""
    import transformers

    chosen: dict[str, Any] = {"attn_implementation": "eager"} if attention else {"torch_dtype": "auto"}
    if options.implementation and not attention:
        chosen["attn_implementation"] = options.implementation
    config = transformers.AutoConfig.from_pretrained(options.model)
    both = getattr(config, "is_encoder_decoder", False) and not attention
    kind = transformers.AutoModelForSeq2SeqLM if both else transformers.AutoModel
    model = kind.from_pretrained(options.model, **chosen).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    return model.to(options.device) if options.device else model, tokenizer


def _refuse_others(parser: argparse.ArgumentParser, options: argparse.Namespace, attention: bool = False) -> None:
    """Ends with an error for an option that what is recorded does not have."""
    attention = attention or options.attention
    endings = (".safetensors",) if options.transformer_lens or options.attention else (".safetensors", INDEX)
    if not options.output.endswith(endings):
        parser.error(f"--output: expected a name that ends with .safetensors, found {options.output}.")
    if options.transformer_lens and attention:
        parser.error("--transformer-lens and --attention: expected one of them, found both.")
    library = "a run of TransformerLens, which always keeps values" if options.transformer_lens else "attention alone"
    without = ("target", "implementation") if options.transformer_lens else ("target", "implementation", "values")
    for name in without if options.transformer_lens or attention else ():
        if getattr(options, name):
            parser.error(f"--{name}: is not for {library}.")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name or folder that the library knows")
    parser.add_argument("text")
    output = f"NAME.safetensors, or NAME{INDEX} for a file per layer (default: run.safetensors)"
    parser.add_argument("-o", "--output", default="run.safetensors", help=output)
    attention = "keep attention instead of queries and keys; of any model, loaded with eager attention"
    parser.add_argument("--attention", action="store_true", help=attention)
    parser.add_argument("--transformer-lens", action="store_true", help="instead of transformers")
    target = "the decoder's text, of a model with an encoder too (default: what it generates)"
    parser.add_argument("--target", help=target)
    parser.add_argument("--layers", type=int, nargs="+", help="those to keep (default: all)")
    parser.add_argument("--values", action="store_true", help="keep values too")
    dtype = "of numbers in the file: float32, float16 or bfloat16 (default: the model's)"
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help=dtype)
    function = "the attention function, such as flash_attention_2 (default: transformers' choice)"
    parser.add_argument("--implementation", help=function)
    parser.add_argument("--device", help="such as cuda (default: cpu)")
    options = parser.parse_args(arguments)
    _refuse_others(parser, options)
    try:
        _write(parser, options)
    except (OSError, ValueError) as error:
        raise SystemExit(f"record: {error}") from error


def _write(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Runs a model and writes what the options say."""
    kept = {"layers": options.layers, "dtype": options.dtype}
    if options.transformer_lens:
        model = load_transformer_lens(options.model, options.device)
        save(options.output, *record_transformer_lens(model, options.text, **kept))
        return
    if not options.attention:
        chosen = {name: getattr(options, name) for name in ("target", "layers", "values", "dtype")}
        try:
            write_hugging_face(options.output, *_load(options, False), options.text, **chosen)
            return
        except NotHeardError as error:
            options.output = options.output.removesuffix(".index.json")
            print(f"{error}\nThe recording keeps its attention instead, in {options.output}.", file=sys.stderr)
            _refuse_others(parser, options, attention=True)
    save(options.output, *record_hugging_face(*_load(options, True), options.text, **kept))


if __name__ == "__main__":
    main()
