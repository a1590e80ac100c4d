"""Proteins: the contacts that a recording shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attentionatlas._internal.arguments import index, some
from attentionatlas._internal.errors import update
from attentionatlas._internal.readers import make_filter, open_structure

if TYPE_CHECKING:
    from attentionatlas._internal.recording import Recording

#: Options of the methods of recordings that are no properties of the filter.
_OWN = ("self", "show", "shown", "port", "options", "structure")


def contact_filter(recording: Recording, options: dict[str, Any]) -> Any:
    """The filter ContactMap on a recording, up to date, which is deleted at the end of the recording's scope.

    options: its properties, and structure, a file. The model is an input if it is known and all of its layers were recorded.
    """
    recording.check_open()
    chosen = {name: value for name, value in options.items() if name not in _OWN}
    chosen["layer"] = some("layer", chosen.get("layer", "all"), recording.layer_numbers, "all")
    chosen["head"] = some("head", chosen.get("head", "all"), range(recording.head_count), "all")
    chosen["sequence"] = index("sequence", chosen["sequence"], range(recording.sequences))
    inputs = recording.shown_by("ContactMap")
    if recording.has_model and len(recording.layer_numbers) == recording.model.layer_count:
        inputs["Model"] = recording.model.reader
    if options.get("structure") is not None:
        inputs["Structure"] = recording.own(open_structure(options["structure"]))
    made = recording.own(make_filter("ContactMap", inputs, chosen))
    update(made)
    return made
