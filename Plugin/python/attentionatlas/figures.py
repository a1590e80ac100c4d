"""The figures of a small attention-only transformer, each a function that returns a matplotlib Figure.

    from attentionatlas import figures
    figure = figures.class_map("MODEL.safetensors", width_mm=89)
    figure.axes[0].set_title("My model", loc="left")
    figures.save(figure, "class-map.pdf")

The first argument is a file or an opened SmallModel. Options of all: ax, an Axes to draw into, or
figure, a Figure or SubFigure; else width_mm (180), font_size (7 points) and dark (False); dpi of images (600).
FIGURES lists the figures of the tour, with what each shows; render is tour.render.
"""


from attentionatlas._internal.catalogue import FIGURES
from attentionatlas._internal.learning import training_curves, training_maps, training_movie, training_simplexes
from attentionatlas._internal.maps import attention, class_map, heads_alone, mixes, outputs
from attentionatlas._internal.mixtures import simplex, simplex_targets
from attentionatlas._internal.names import own
from attentionatlas._internal.polynomials import boundary_motion, boundary_movie, harmonics
from attentionatlas._internal.spheres import deformed_torus, layer_norm, unembedding_sphere
from attentionatlas.output import save
from attentionatlas.tour import main, render

__dir__ = own(__name__)

__all__ = [
    "FIGURES",
    "attention",
    "boundary_motion",
    "boundary_movie",
    "class_map",
    "deformed_torus",
    "harmonics",
    "heads_alone",
    "layer_norm",
    "mixes",
    "outputs",
    "save",
    "simplex",
    "simplex_targets",
    "training_curves",
    "training_maps",
    "training_movie",
    "training_simplexes",
    "unembedding_sphere",
]

if __name__ == "__main__":
    main()
