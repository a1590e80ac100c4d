"""An attention-only transformer that is opened once for several figures, and what they raise with nothing to show.

    from attentionatlas import figures, model
    with model.Model.opened("MODEL.safetensors") as opened:
        figures.class_map(opened)
"""

from attentionatlas._internal.model import Model
from attentionatlas._internal.readers import Missing

__all__ = ["Missing", "Model"]
