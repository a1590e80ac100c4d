// A one-layer attention-only transformer on two tokens, evaluated in double precision at any point of the torus.
//
// The formulas are those of the plugin: x_s = e(theta_s) + p_s, score_h = x_2' W_QK^h (x_1 - x_2), the attention of
// token 2 to token 1 is sigmoid(score_h / T), r = residual + sum_h w_h W_OV^h (a_h x_1 + (1 - a_h) x_2), and the
// logits are W_U r. The score is evaluated as the trigonometric polynomial that it is.

const ROOT3 = Math.sqrt(3);
const U = [1 / Math.SQRT2, 0, -1 / Math.SQRT2].map((value) => value * ROOT3);
const V = [-1, 2, -1].map((value) => (value / Math.sqrt(6)) * ROOT3);

/** The terms of a score: 1, cos t1, sin t1, cos t2, sin t2, cos 2t2, sin 2t2, cos(t1+t2), sin(t1+t2), cos(t1-t2), sin(t1-t2). */
export const TERMS = 11;

export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
/** A matrix of 3 x 3, by rows, times a vector. */
const times = (matrix, v) => [0, 3, 6].map((at) => matrix[at] * v[0] + matrix[at + 1] * v[1] + matrix[at + 2] * v[2]);
const transposed = (m) => [m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]];

/** The word embedding at an angle: on a circle of radius sqrt(3). */
export function word(angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return [0, 1, 2].map((i) => c * U[i] + s * V[i]);
}

/** An angle in (-pi, pi]. */
export function wrapped(angle) {
  const turned = angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
  return turned <= -Math.PI ? turned + 2 * Math.PI : turned;
}

/** The 11 coefficients of a head's score, from W_QK and the two position embeddings. */
export function scoreTerms(qk, positions) {
  const [p1, p2] = positions;
  const [qkU, qkV] = [times(qk, U), times(qk, V)];
  const [uu, uv, vu, vv] = [dot(U, qkU), dot(U, qkV), dot(V, qkU), dot(V, qkV)];
  const difference = p1.map((value, i) => value - p2[i]);
  const query = times(transposed(qk), p2); // p_2' W_QK
  const key = times(qk, difference); // W_QK (p_1 - p_2)
  const [fromU, fromV, ofU, ofV] = [dot(query, U), dot(query, V), dot(key, U), dot(key, V)];
  const [even, odd] = [(uu - vv) / 2, (uv + vu) / 2];
  return Float64Array.of(
    dot(query, difference) - (uu + vv) / 2,
    fromU, fromV,
    ofU - fromU, ofV - fromV,
    -even, -odd,
    even, odd,
    (uu + vv) / 2, (uv - vu) / 2,
  );
}

/** The values of the 11 terms at a point. */
export function basis(t1, t2) {
  return [
    1, Math.cos(t1), Math.sin(t1), Math.cos(t2), Math.sin(t2), Math.cos(2 * t2), Math.sin(2 * t2),
    Math.cos(t1 + t2), Math.sin(t1 + t2), Math.cos(t1 - t2), Math.sin(t1 - t2),
  ];
}

/** The coefficients of the nine free parameters: a constant, and amplitude and phase of t1, t2, t1+t2 and t1-t2. */
export function termsOf([constant, ...waves]) {
  const parts = [];
  for (let i = 0; i < 8; i += 2) parts.push([waves[i] * Math.cos(waves[i + 1]), waves[i] * Math.sin(waves[i + 1])]);
  const [first, second, sum, difference] = parts;
  return Float64Array.of(constant, ...first, ...second, -sum[0], -sum[1], ...sum, ...difference);
}

/** The nine free parameters of coefficients: amplitudes are positive, phases in (-pi, pi]. */
export function waves(terms) {
  const wave = (at) => [Math.hypot(terms[at], terms[at + 1]), Math.atan2(terms[at + 1], terms[at])];
  return [terms[0], ...wave(1), ...wave(3), ...wave(7), ...wave(9)];
}

/** How a model is read: as it was trained. waves: the nine parameters of each head's score, or null for its own. */
export function trained(model) {
  return {
    temperature: 1,
    residual: "EmbeddingPosition",
    weights: model.heads.map(() => 1),
    angles: Array.from(model.angles),
    waves: model.heads.map(() => null),
  };
}

/** A model with settings, ready to be evaluated at points. */
export class Evaluator {
  constructor(model, settings) {
    this.model = model;
    this.settings = settings;
    this.terms = model.heads.map(({ qk }, h) =>
      settings.waves[h] ? termsOf(settings.waves[h]) : scoreTerms(qk, model.positions),
    );
    const { residual } = settings;
    /** What of the word and of the position of token 2 the residual stream carries. */
    this.carried = [residual === "None" ? 0 : 1, residual === "EmbeddingPosition" ? 1 : 0];
  }

  scores(t1, t2) {
    const values = basis(t1, t2);
    return this.terms.map((terms) => terms.reduce((sum, term, i) => sum + term * values[i], 0));
  }

  attention(score) {
    const { temperature } = this.settings;
    if (temperature === 0) return score > 0 ? 1 : 0;
    return 1 / (1 + Math.exp(-score / temperature));
  }

  /** Scores, attention and output of each head, output, probabilities and class at a point of the torus. */
  at(t1, t2) {
    const { model, settings } = this;
    const [e1, e2] = [word(t1), word(t2)];
    const [p1, p2] = model.positions;
    const scores = this.scores(t1, t2);
    const attention = scores.map((score) => this.attention(score));
    const heads = model.heads.map(({ ov }, h) => {
      const a = attention[h];
      return times(ov, [0, 1, 2].map((i) => a * (e1[i] + p1[i]) + (1 - a) * (e2[i] + p2[i])));
    });
    const [ofWord, ofPosition] = this.carried;
    const output = [0, 1, 2].map((i) =>
      heads.reduce((sum, head, h) => sum + settings.weights[h] * head[i], ofWord * e2[i] + ofPosition * p2[i]),
    );
    return { scores, attention, heads, output, ...predicted(model, output) };
  }

  /** The points of the token pairs, row by row of token 1. */
  pairs() {
    const { angles } = this.settings;
    return angles.flatMap((t1, first) =>
      angles.map((t2, second) => ({
        first, second, theta: [t1, t2], target: this.model.next?.[first * angles.length + second],
      })),
    );
  }

  /** The share of the token pairs whose next token is predicted; NaN where the model has no next tokens. */
  accuracy() {
    const pairs = this.pairs();
    const correct = pairs.filter(({ theta, target }) => this.at(...theta).predicted === target).length;
    return this.model.next ? correct / pairs.length : NaN;
  }

  /** A function of what is at a point, on a grid of size x size points in the middles of squares. */
  grid(size, read) {
    const angle = (i) => -Math.PI + ((i + 0.5) * 2 * Math.PI) / size;
    const values = [];
    for (let j = 0; j < size; ++j) for (let i = 0; i < size; ++i) values.push(read(this.at(angle(i), angle(j))));
    return values;
  }
}

/** The probabilities of the next token and the most probable one, the first of equals. */
export function predicted(model, output) {
  const logits = model.unembedding.map((row) => dot(row, output));
  const largest = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return { logits, probabilities: powers.map((power) => power / sum), predicted: logits.indexOf(largest) };
}

/** The accuracy of mixtures of three heads over the triangle of their shares, whose sum is 1: rows of head 2's share. */
export function simplex(evaluator, rows) {
  const { model, settings } = evaluator;
  const pairs = evaluator.pairs().map(({ theta, target }) => {
    const { heads, output } = evaluator.at(...theta);
    const rest = output.map((value, i) => value - [0, 1, 2].reduce((sum, h) => sum + settings.weights[h] * heads[h][i], 0));
    return { heads, rest, target };
  });
  const accuracy = (shares) => {
    const correct = pairs.filter(({ heads, rest, target }) => {
      const output = rest.map((value, i) => value + 3 * (shares[0] * heads[0][i] + shares[1] * heads[1][i] + shares[2] * heads[2][i]));
      return predictedClass(model, output) === target;
    }).length;
    return correct / pairs.length;
  };
  const values = [];
  for (let j = 0; j < rows; ++j) {
    const third = (j + 0.5) / rows;
    for (let i = 0; i < rows; ++i) {
      const first = (i + 0.5) / rows - third / 2;
      const shares = [1 - third - first, first, third];
      values.push(Math.min(...shares) < 0 ? NaN : accuracy(shares));
    }
  }
  return values;
}

function predictedClass(model, output) {
  let [best, at] = [-Infinity, 0];
  model.unembedding.forEach((row, k) => {
    const logit = dot(row, output);
    if (logit > best) [best, at] = [logit, k];
  });
  return at;
}
