// The questions of the chapters: when each is answered, and an answer.

const isSame = (a, b) => Math.abs(a - b) < 1e-6;
/** The share of a list of values with a property. */
const share = (values, has) => values.filter(has).length / values.length;

/** The point of a grid over the torus that is the best by a measure. */
function bestPoint(chapter, measure, size = 96) {
  let [best, point] = [-Infinity, [0, 0]];
  for (let j = 0; j < size; ++j) {
    for (let i = 0; i < size; ++i) {
      const theta = [i, j].map((n) => Math.PI * ((2 * n + 1) / size - 1));
      const found = measure(chapter.evaluator.at(...theta), theta);
      if (found > best) [best, point] = [found, theta];
    }
  }
  return point;
}

const alone = (chapter, head) => Object.fromEntries(chapter.settings.weights.map((_, h) => [`weight${h}`, h === head ? 1 : 0]));

/** The accuracy of each head without the others, with the residual stream as it is. */
function accuraciesAlone(chapter) {
  const { model } = chapter.evaluator;
  return model.heads.map((_, head) => {
    const settings = { ...chapter.settings, weights: model.heads.map((__, h) => (h === head ? 1 : 0)) };
    return new chapter.evaluator.constructor(model, settings).accuracy();
  });
}

const certainty = (chapter) => share(chapter.points(), ({ attention }) => Math.abs(attention[chapter.head] - 0.5) > 0.45);

const nearestPair = (chapter) => {
  const { point } = chapter.page;
  const away = ({ theta }) => Math.hypot(...theta.map((angle, i) => 2 * Math.sin((angle - point[i]) / 2)));
  return chapter.evaluator.pairs().map((pair) => ({ ...pair, away: away(pair) })).sort((a, b) => a.away - b.away)[0];
};

const isWrong = (chapter, { theta, target }) => chapter.evaluator.at(...theta).predicted !== target;

const wavesOf = (chapter, change) => Object.fromEntries(change(chapter.waves()).map((value, i) => [`wave${i}`, value]));

/** The first checkpoint at which the best head has a weight of 0.3 on its target. */
const forming = ({ page: { model: { run } } }) => run.steps.findIndex((_, c) => run.induction(c, ...run.best) >= 0.3);

export const QUESTIONS = {
  undecided: {
    isMet: (chapter) => Math.abs(chapter.evaluator.at(...chapter.page.point).attention[chapter.head] - 0.5) < 0.02,
    answer: (chapter) => ({ point: bestPoint(chapter, ({ attention }) => -Math.abs(attention[chapter.head] - 0.5)) }),
    said: () => "Half and half: here the score is zero.",
  },
  sharp: {
    isMet: (chapter) => chapter.values.temperature > 0 && certainty(chapter) >= 0.95,
    answer: () => ({ temperature: 0.02 }),
    said: (chapter) => `Yes: on ${Math.round(100 * certainty(chapter))} % of the square the larger weight is above 0.95.`,
  },
  collapse: {
    isMet: (chapter) => {
      const { angles } = chapter.settings;
      return angles.some((a, i) => angles.some((b, j) => i < j && Math.abs(Math.sin((a - b) / 2)) < 0.03));
    },
    answer: (chapter) => ({ angle0: chapter.defaults.angle1 }),
    said: (chapter) => `The two words are now one. Accuracy: ${Math.round(100 * chapter.accuracy())} %.`,
  },
  worse: {
    isMet: (chapter) => chapter.accuracy() <= 0.6,
    answer: (chapter) => Object.fromEntries(chapter.settings.angles.map((_, i) => [`angle${i}`, chapter.defaults[`angle${i}`] + 1])),
    said: (chapter) => `Accuracy: ${Math.round(100 * chapter.accuracy())} %. The map is the same; the grid has moved.`,
  },
  seam: {
    isMet: ({ page }) => Math.abs(Math.cos(page.point[0] / 2)) < 0.03,
    answer: () => ({ point: [Math.PI, 0], shape: 0 }),
    said: () => "The left and the right edge are the same line of the torus.",
  },
  lost: {
    isMet: (chapter) => {
      const pair = nearestPair(chapter);
      return pair.away < 0.2 && isWrong(chapter, pair);
    },
    answer: (chapter) => {
      for (const temperature of [2.8, 0, 0.3]) {
        const other = new chapter.evaluator.constructor(chapter.evaluator.model, { ...chapter.settings, temperature });
        const wrong = other.pairs().find(({ theta, target }) => other.at(...theta).predicted !== target);
        if (wrong) return { temperature, shape: 0, point: wrong.theta };
      }
      return {};
    },
    said: () => "The dot is not in the color of the map.",
  },
  constant: {
    isMet: (chapter) => {
      const scores = chapter.scores();
      return Math.min(...scores) * Math.max(...scores) > 0;
    },
    answer: (chapter) => wavesOf(chapter, ([, ...rest]) => [1.2 * rest.reduce((sum, value, i) => sum + (i % 2 ? 0 : Math.abs(value) * (i === 4 ? 2 : 1)), 0.1), ...rest]),
    said: () => "No frontier: the constant is larger than all waves together. The head attends to one token whatever the words are.",
  },
  second: {
    isMet: (chapter) => {
      const [, first, , second, , sum, , difference] = chapter.waves().map(Math.abs);
      return Math.max(first, sum, difference) < 0.02 && second > 0.1;
    },
    answer: (chapter) => wavesOf(chapter, ([constant, , p1, second, p2, , p3, , p4]) => [constant, 0, p1, Math.max(0.5, second), p2, 0, p3, 0, p4]),
    said: () => "The frontier is horizontal: only token 2 decides.",
  },
  unsure: {
    isMet: (chapter) => {
      const { probabilities } = chapter.evaluator.at(...chapter.page.point);
      const sorted = [...probabilities].sort((a, b) => b - a);
      return sorted[0] - sorted[2] < 0.1;
    },
    answer: (chapter) => ({
      point: bestPoint(chapter, ({ probabilities }) => {
        const sorted = [...probabilities].sort((a, b) => b - a);
        return sorted[2] - sorted[0];
      }, 192),
    }),
    said: () => "Three tokens are equally probable: on the sphere the ring is at a corner of three cells.",
  },
  leaves: {
    isMet: (chapter) => chapter.accuracy() < 1,
    answer: (chapter) => ({ weight0: -0.5, weight1: chapter.defaults.weight1 }),
    said: (chapter) => `A dot has left its cell. Accuracy: ${Math.round(100 * chapter.accuracy())} %.`,
  },
  best: {
    isMet: (chapter) => {
      const { weights } = chapter.settings;
      const used = weights.map((weight, h) => [weight, h]).filter(([weight]) => !isSame(weight, 0));
      if (used.length !== 1) return false;
      const found = accuraciesAlone(chapter);
      return found[used[0][1]] === Math.max(...found) && chapter.accuracy() === Math.max(...found);
    },
    answer: (chapter) => {
      const found = accuraciesAlone(chapter);
      return alone(chapter, found.indexOf(Math.max(...found)));
    },
    said: (chapter) => `Alone it predicts ${Math.round(100 * chapter.accuracy())} % of the pairs: far fewer than all heads together.`,
  },
  poor: {
    isMet: (chapter) => chapter.accuracy() <= 0.2,
    answer: (chapter) => {
      for (const a of [-1, 3]) for (const b of [-1, 3]) for (const c of [-1, 3]) {
        const values = chapter.settings.weights.map((weight, h) => [a, b, c][h] ?? weight);
        const found = new chapter.evaluator.constructor(chapter.evaluator.model, { ...chapter.settings, weights: values });
        if (found.accuracy() <= 0.2) return Object.fromEntries(values.map((value, h) => [`weight${h}`, value]));
      }
      return alone(chapter, -1);
    },
    said: () => "No better than chance.",
  },
  half: {
    isMet: (chapter) => {
      const { frames } = chapter.page.model;
      return chapter.frame === frames.findIndex(({ accuracy }) => accuracy >= 0.5);
    },
    answer: (chapter) => ({ frame: chapter.page.model.frames.findIndex(({ accuracy }) => accuracy >= 0.5) }),
    said: (chapter) => `Step ${chapter.page.model.frames[chapter.frame].step}.`,
  },
  last: {
    isMet: (chapter) => {
      const { frames } = chapter.page.model;
      return chapter.frame === frames.findLastIndex(({ accuracy }) => accuracy < 1);
    },
    answer: (chapter) => ({ frame: Math.max(0, chapter.page.model.frames.findLastIndex(({ accuracy }) => accuracy < 1)) }),
    said: (chapter) => `Step ${chapter.page.model.frames[chapter.frame].step}: one more step of the slider, and every pair is right.`,
  },
  forms: {
    isMet: (chapter) => {
      const { run } = chapter.page.model;
      return run.best[0] === chapter.layer && run.best[1] === chapter.runHead && chapter.checkpoint === forming(chapter);
    },
    answer: (chapter) => ({ layer: chapter.page.model.run.best[0], runHead: chapter.page.model.run.best[1], checkpoint: Math.max(0, forming(chapter)) }),
    said: (chapter) => `Step ${chapter.page.model.run.steps[chapter.checkpoint]}: the stripe has appeared.`,
  },
  previous: {
    isMet: (chapter) => {
      const { run } = chapter.page.model;
      return chapter.layer === 0 && run.previous(chapter.checkpoint, 0, chapter.runHead) > 0.5;
    },
    answer: (chapter) => {
      const { run } = chapter.page.model;
      const found = Array.from({ length: run.heads }, (_, h) => run.previous(run.steps.length - 1, 0, h));
      return { layer: 0, runHead: found.indexOf(Math.max(...found)), checkpoint: run.steps.length - 1 };
    },
    said: (chapter) => `Head ${chapter.runHead} of layer 0 gives the token before weight ${chapter.page.model.run.previous(chapter.checkpoint, 0, chapter.runHead).toFixed(2)} on average.`,
  },
};
