"""All findings, in the order of the page: the claims, and the figures that test them."""

from __future__ import annotations

from attentionatlas.findings import attention, torus, training, vision, weights
from attentionatlas.findings.base import Draw, Finding

_VIZ = "Yeh et al. 2023, AttentionViz"
_FOCUS = "Claus, Attention Focus Plots"
_TOKENS = "\u201cAttention tokens\u201d, a notebook on GPT-2"
_CIRCUITS = "Elhage et al. 2021, A mathematical framework for transformer circuits"
_TORUS = "\u201cVisualizing small Attention-only Transformers\u201d"
_INDUCTION = "Olsson et al. 2022, In-context learning and induction heads"

#: The models, in the order of the page, and what they are.
MODELS = {
    "language-2": "Two layers of attention without MLPs, trained to predict the next token of the King James Bible. The "
    "smallest kind of language model in which induction heads can form.",
    "language-4": "Four layers of attention without MLPs and a vocabulary of 4,000 tokens, trained on the King James Bible, "
    "the Devil\u2019s Dictionary and the Jargon File.",
    "language-1": "As language-2, with one layer. It can know which token follows which, and skip-trigrams, but no induction.",
    "language-alibi": "A language model whose positions come from ALiBi: the farther a key, the lower its score, in each "
    "head with another slope.",
    "bert": "A small BERT. Each token sees those before and after it, and the model guesses hidden tokens.",
    "vit": "A small vision transformer that tells pictures of gradients, stripes and shapes apart, a token per patch.",
    "induction": "Two layers of attention, trained on random tokens that are repeated: there is nothing to learn but to "
    "copy.",
    "markov": "Trained on sequences of Markov chains, each with probabilities of its own, which it has to estimate.",
    "modular": "One layer, trained on sums modulo a prime number.",
    "mess3": "Trained on symbols of a hidden process with three states.",
    "gpt2": "A recording of GPT-2 (Radford et al. 2019): its attention to six tokens. It holds no queries, keys or weights "
    "of the model.",
    "torus": "The small transformers of dimension 3 with two tokens, whose inputs are a torus: a model of three heads, and "
    "100 trainings.",
}


def _positions(model: str, of: str) -> Finding:
    return Finding(
        f"positions-{model}",
        f"Attention that depends on position alone ({of})",
        _VIZ,
        "Some heads encode positional patterns: they attend to the next token, or to others a few positions away, "
        "whatever the words are.",
        model,
        attention.position_heads,
        "Top left, each head is a point: heads at the top right attend to a fixed offset in every text. Beside it "
        "is the mean map of the most positional head; its diagonal is what all texts have in common. Such heads "
        "form first in training, since positions are the simplest thing to tell apart, and other heads build on "
        "them.",
        "Transformer Reader > Transformer Recorder > Attention Map, with Sequence \u22121 for the mean over the "
        "texts. Move the slider Head.",
    )


def _spirals(model: str, of: str) -> Finding:
    return Finding(
        f"spirals-{model}",
        f"Spirals and clumps of positions ({of})",
        _VIZ,
        "In early layers some joint embeddings of queries and keys are spirals along which the position increases, "
        "others small clumps; spirals belong to heads that attend one position away, clumps to heads with several "
        "offsets.",
        model,
        attention.spirals,
        "A point is a query or a key; near points attend to each other. In the first two heads points lie in the "
        "order of their positions, from pale to dark, along an arc or a ring; a small clump is one position in all "
        "texts, as the colors of the lower row show, which repeat after five positions. The thread is "
        "one-dimensional because the head compares positions and little else. In the third head positions are "
        "mixed, and the same words gather instead.",
        "Transformer Recorder > Head Embedding > Token Colors, with By RelativePosition, then PositionMod5.",
    )


def _birth(model: str, of: str, more: str = "") -> Finding:
    return Finding(
        f"birth-{model}",
        f"The birth of induction heads ({of})",
        _INDUCTION,
        "In-context learning appears abruptly, in the same short stretch of training in which induction heads form.",
        model,
        training.birth,
        "Above, the loss of the first block cannot fall, since random tokens cannot be guessed; that of the second "
        "block falls once the model copies. Below are the scores of the heads at the same steps. First a head "
        "learns to attend to the previous token, "
        "then the induction head can use what that one writes, and both losses part at that moment (dashed lines)." + more,
        "Open config.json of the model, then Transformer Recorder with Random Prompts > Head Scores, and press "
        "Play: the scores change with training time.",
    )


def _induction(model: str, of: str, least: float) -> Finding:
    return Finding(
        f"induction-{model}",
        f"Induction heads ({of})",
        _INDUCTION,
        "Models of two layers have induction heads, which find the previous copy of the present token and attend "
        "to what came after it; a head of the layer before attends to the previous token.",
        model,
        lambda study, page: attention.induction(study, page, least),
        "The tokens are random, so only their repetition can guide a head. The induction head has a diagonal "
        "stripe, one block back and one token on. It works because the previous-token head has written into each "
        "token what stood before it, and the induction head looks for this.",
        "Random Prompts (RepeatedBlock) > Transformer Recorder > Head Scores, and Attention Map of the strongest head.",
    )


def _induction_copies(model: str, of: str) -> Finding:
    return Finding(
        f"induction-copies-{model}",
        f"Induction heads copy ({of})",
        _INDUCTION,
        "Induction heads make the tokens that they attend to more likely: they copy.",
        model,
        weights.induction_copies,
        "Each point is a head. Those on the right find what came after an earlier copy; if they lie high, they also "
        "raise it. The eigenvalues on the right are those of the strongest induction head: to the right of the "
        "vertical line, combinations of tokens make themselves more likely.",
        "Head Scores and Head Spectra, with Full on.",
    )


def _composition(model: str, of: str) -> Finding:
    return Finding(
        f"composition-{model}",
        f"K-composition of the previous-token head with the induction head ({of})",
        _CIRCUITS,
        "Induction heads arise by K-composition: their keys read what a head of the previous token has written.",
        model,
        weights.composition,
        "Each point is a pair of heads; the dashed line is what random matrices would have. The marked pair stands "
        "out among the keys (K): the weights of the later head are turned to the space into which the earlier head "
        "writes. This is read from the weights alone, without any text.",
        "Transformer Reader > Head Composition, with Kind K; a double click on the widest line opens Virtual Weights.",
    )


def _sinks(model: str, of: str, draw: Draw) -> Finding:
    return Finding(
        f"sinks-{model}",
        f"First-token sinks by layer ({of})",
        _FOCUS,
        "How often heads attend most to the first token depends on the layer: often in later layers.",
        model,
        draw,
        "Each point is a head, numbers are layer.head. A query has to spend all of its attention, which adds up to "
        "1; a head that has nothing to add puts it on the first token, whose value is then made small. Models of "
        "few layers need this less.",
        "Transformer Recorder > Attention Focus, with Measure StrongestIsFirst; the second output as a line chart.",
    )


def _concentration(model: str, of: str, draw: Draw) -> Finding:
    return Finding(
        f"concentration-{model}",
        f"Concentration of attention ({of})",
        _FOCUS,
        "Heads differ in how concentrated they are: a difference of the two largest weights close to 1 means that "
        "a head focuses on single tokens.",
        model,
        draw,
        "High on the left means one key takes nearly all weight; high on the right means attention is spread "
        "evenly. Heads of positions are concentrated, heads that collect the words of the text are spread.",
        "Transformer Recorder > Attention Focus, with Measure Concentration.",
    )


FINDINGS = (
    Finding(
        "harmonics",
        "Scores are trigonometric polynomials",
        _TORUS,
        "The raw attention pattern of a head is a trigonometric polynomial with 11 harmonics.",
        "torus",
        torus.harmonics,
        "The cells are the Fourier coefficients of each head\u2019s score as a function of the two angles. All but "
        "the middle ones are empty: the score is a product of two vectors that each move on a circle, so no faster "
        "wave can appear.",
        "Attention-Only Model Reader > Score Harmonics; Harmonic Head animates the coefficients.",
    ),
    Finding(
        "boosting",
        "Boosting is less efficient",
        _TORUS,
        "Heads that are trained one after the other learn less than heads that are trained together.",
        "torus",
        torus.boosting,
        "Left, blue bars stand at 1: trained together, nearly all seeds learn every pair. Trained one after the "
        "other, the first head takes what it can and the later ones must mend the rest, with frozen heads before "
        "them.",
        "Attention-Only Training, with Mode Joint, then Boosting, and press Play.",
    ),
    Finding(
        "shared-work",
        "Heads do not share the work",
        _TORUS,
        "Heads do not divide the pairs of tokens among themselves, each predicting its own part.",
        "torus",
        torus.shared_work,
        "If heads divided the pairs, every point on the right would lie at (1, 1). Most lie below the line: heads "
        "predict the same pairs, and some pairs only together. Nothing in the loss rewards a division.",
        "Attention-Only Model Reader > Head Accuracy and Head Accuracy Simplex.",
    ),
    _positions("language-2", "language model"),
    _positions("bert", "BERT"),
    _spirals("language-2", "language model"),
    _spirals("bert", "BERT"),
    Finding(
        "previous-gpt2",
        "The previous-token head of GPT-2",
        "Elhage et al. 2021; Vig 2019",
        "Head 11 of layer 4 of GPT-2 attends to the previous token.",
        "gpt2",
        attention.gpt2_previous,
        "Nearly all weight of the head lies just left of the diagonal. One text of six tokens cannot show that it "
        "does so in every text, but chance would be far from it.",
        "File > Open the recording > Attention Map, with Layer 4 and Head 11.",
    ),
    _induction("induction", "repeated random tokens", 0.9),
    _induction("language-2", "language model", 0.5),
    _induction("language-4", "four layers", 0.5),
    _induction_copies("induction", "repeated random tokens"),
    _induction_copies("language-2", "language model"),
    _induction_copies("language-4", "four layers"),
    _composition("induction", "repeated random tokens"),
    _composition("language-2", "language model"),
    _birth("induction", "repeated random tokens"),
    _birth(
        "language-2",
        "language model",
        " This model reads repeated random tokens alone at first (curriculum in its recipe), since induction heads "
        "did not form from this text within minutes. When the text begins, the scores fall and the losses rise: "
        "random tokens are unlike any text.",
    ),
    Finding(
        "both-directions",
        "Induction in both directions",
        _VIZ,
        "BERT shows signs of induction in both directions: one head attends to tokens that came before another "
        "copy of the present token, another to those that came after it.",
        "bert",
        attention.both_directions,
        "Zero on the lower axes is the other copy of the present token, \u22121 the token before it, +1 the one "
        "after it. Gray is the same head on tokens that do not repeat. In a model that guesses hidden tokens, "
        "the neighbors on both sides say where the other copy is, and what helps is the copy itself: heads of our "
        "BERT attend to it, not to its neighbors.",
        "Random Prompts (RepeatedBlock) > Transformer Recorder > Attention Map, with Sequence \u22121.",
    ),
    Finding(
        "copying",
        "Copying heads",
        _CIRCUITS,
        "In one-layer models most heads copy: the eigenvalues of their OV circuit are mostly positive.",
        "language-1",
        weights.copying,
        "Red heads raise the tokens that they attend to. A positive eigenvalue means that a combination of tokens "
        "makes itself more likely; points to the right of the vertical line are such. Words that have occurred "
        "occur again, so copying pays at once.",
        "Transformer Reader > Head Spectra, with Full on.",
    ),
    Finding(
        "skip-trigrams",
        "Skip-trigrams",
        _CIRCUITS,
        "A one-layer model holds skip-trigrams \u201csource \u2026 destination \u2192 output\u201d in its weights.",
        "language-1",
        weights.skip_trigrams,
        "The list on the left is read from the weights, without running a text. The bars are then measured by "
        "running the model: with the source earlier in the text, the output becomes more likely after the "
        "destination. A middle dot is a space. "
        "Many complete a word of several tokens, as \u201cBe \u2026 c \u2192 ause\u201d does.",
        "Transformer Reader > Skip Trigrams; Head Circuit shows the two factors.",
    ),
    Finding(
        "attention-tokens",
        "Attention tokens that heads share",
        _TOKENS,
        "Each head uses few tokens of the vocabulary; every pair of heads shares at least one token, and products "
        "of queries and keys use fewer tokens than queries, keys or values.",
        "language-2",
        weights.shared_tokens,
        "Left, how many tokens two heads have in common; right, how many different ones all heads have. The "
        "vocabulary here is 50 times smaller than that of GPT-2, so heads share more by chance: compare with the "
        "number by chance.",
        "Transformer Recorder > Attention Tokens > Shared Tokens.",
    ),
    Finding(
        "colors",
        "Heads of hue and of brightness",
        _VIZ,
        "One head of ViT aligns gray patches by brightness, another one colorful patches by hue, regardless of "
        "their place.",
        "vit",
        vision.colors,
        "Above, a large number means that a head attends to patches that look alike, a negative one that it attends to contrast. Below "
        "are the queries and keys of the strongest heads for gradients in all directions, each patch in its own color: if similar "
        "colors gather although they come from different places, the head compares colors and not positions.",
        "Transformer Recorder with Images > Head Embedding > Token Colors, with By Hue or Brightness.",
    ),
    Finding(
        "columns",
        "Rows and columns of patches",
        _VIZ,
        "Some heads of ViT attend to the patches of the same column or row, whatever the picture shows.",
        "vit",
        vision.columns,
        "The lower maps show where a patch in the middle looks, the mean over pictures of random patches. What "
        "remains comes from positions: a stripe down the picture is a head of columns.",
        "Transformer Recorder with Images > Patch Attention, with Sequence \u22121 and Patch in the middle.",
    ),
    Finding(
        "alibi-decay",
        "Near-linear decay of ALiBi heads",
        "Press et al. 2022; " + _FOCUS,
        "ALiBi adds a linear term to the scores, larger for the first heads; with it scores fall nearly linearly "
        "with distance.",
        "language-alibi",
        attention.alibi_decay,
        "Left, the mean score of a key by its distance; straight lines mean that content adds little on average. "
        "Right, a point on the diagonal is a head that keeps the slope of ALiBi; points off it have learned to see "
        "farther or less far. Solid lines are layer 0, dashed ones layer 1.",
        "Transformer Recorder > Attention Map, with Quantity Scores, then Bias; Score Breakdown has the parts of "
        "each score.",
    ),
    _sinks("language-alibi", "ALiBi model", attention.of_text(attention.sinks)),
    _sinks("language-2", "language model", attention.of_text(attention.sinks)),
    _sinks("language-4", "four layers", attention.of_text(attention.sinks)),
    _sinks("gpt2", "GPT-2", attention.sinks),
    _concentration("language-alibi", "ALiBi model", attention.of_text(attention.concentration)),
    _concentration("gpt2", "GPT-2", attention.concentration),
    Finding(
        "updates",
        "Update sizes by position",
        _FOCUS,
        "How much attention changes the hidden state depends on the position in the sequence.",
        "language-alibi",
        attention.updates,
        "The first token can attend only to itself. Later tokens mix more values, which partly cancel, so the "
        "update changes along the text.",
        "Transformer Recorder with HeadOutputs and Residual > Head Updates; the third output as a line chart.",
    ),
    Finding(
        "idle-sinks",
        "Heads at rest on the first token",
        _FOCUS,
        "When attention focuses on the first token, the head has no impact on the hidden state (in layers 4 and "
        "later of the source\u2019s model).",
        "language-alibi",
        attention.idle_sinks,
        "Each point is a query of a head. If points at the right lie low, attention to the first token is a way to "
        "do nothing.",
        "Attention Focus per Query and Head Updates, linked by Token Index.",
    ),
    Finding(
        "two-drops",
        "Two drops of statistical induction",
        "Edelman et al. 2024, The evolution of statistical induction heads",
        "The loss first falls to that of a unigram predictor, rests there, and then falls to that of the Bayes "
        "bigram predictor.",
        "markov",
        training.two_drops,
        "The dashed lines are exact predictors, computed without the model. The model first learns to count "
        "symbols, which is easy; counting what followed the present symbol takes two layers that fit together, "
        "which form later and quickly.",
        "Open config.json of the model > Transformer Recorder > Attention Map, and press Play.",
    ),
    Finding(
        "grokking",
        "Grokking",
        "Power et al. 2022; Nanda et al. 2023",
        "The model knows its training pairs early and generalizes to the others long after.",
        "modular",
        training.grokking,
        "The axis is logarithmic. Learning by heart takes large weights; weight decay slowly replaces them by the "
        "circles of the next figure, which need less and work for all pairs.",
        "Plot curves.csv, or open config.json and press Play.",
    ),
    Finding(
        "fourier",
        "Fourier circles of modular addition",
        "Nanda et al. 2023, Progress measures for grokking",
        "The model that has generalized represents numbers on circles of a few frequencies.",
        "modular",
        weights.fourier,
        "Each circle shows all numbers on the plane of one frequency k; the line joins numbers whose angles follow "
        "each other. To add is to rotate: the sum of two angles is the angle of the sum, modulo p.",
        "Transformer Reader gives the model over time; its embedding is in model.safetensors as embed.W_E.",
    ),
    Finding(
        "belief-fractal",
        "The belief fractal in the residual stream",
        "Shai et al. 2024, Transformers represent belief state geometry in their residual stream",
        "The residual stream holds, linearly, the beliefs of an ideal observer about the hidden state, which form "
        "a fractal.",
        "mess3",
        training.belief_fractal,
        "Each point is a position of a sequence, in the color of its exact belief. Left is Bayes\u2019 rule, "
        "computed without the model; beside it what a linear map reads from the model. The process itself never "
        "shows its states. An untrained model does well already, since it holds the last symbols; only training "
        "gives the fine structure.",
        "Transformer Recorder with Residual; the steps of the training are its time.",
    ),
)
