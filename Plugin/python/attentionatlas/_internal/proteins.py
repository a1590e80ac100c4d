"""Proteins: the contacts that a recording shows."""

from __future__ import annotations

from typing import Any

from attentionatlas._internal.arguments import PathLike, index, some
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import make_filter, open_structure


def unrecorded_layers(recording: Any) -> list[int]:
    """The layers of the model, if it is known, that were not recorded."""
    if not recording.has_model:
        return []
    return [layer for layer in range(recording.model.layer_count) if layer not in recording.layer_numbers]


def contact_filter(recording: Any, structure: PathLike | None, options: dict[str, Any]) -> Any:
    """The filter ContactMap on a recording, up to date, which is deleted at the end of the recording's scope.

    structure: a file. options: properties of the filter; TypeError for others. The model is an input if it is known and
    all of its layers were recorded.
    """
    recording.check_open()
    chosen = dict(options)
    chosen["layer"] = some("layer", chosen.get("layer", "all"), recording.layer_numbers, "all")
    chosen["head"] = some("head", chosen.get("head", "all"), range(recording.head_count), "all")
    chosen["sequence"] = index("sequence", chosen["sequence"], range(recording.sequences))
    inputs = recording.shown_by("ContactMap")
    if recording.has_model and not unrecorded_layers(recording):
        inputs["Model"] = recording.model.reader
    if structure is not None:
        inputs["Structure"] = recording.own(open_structure(structure))
    made = recording.own(make_filter("ContactMap", inputs, chosen))
    update(made)
    return made
