// A chapter: what its controls say, the transformer read so, and the questions that are answered by moving something.

import { Evaluator, trained, waves, wrapped } from "./model.js";
import { nearestDirection } from "./stage.js";
import { element } from "../elements.js";
import { QUESTIONS } from "./questions.js";

const RESIDUALS = ["EmbeddingPosition", "None"];
/** How long a change by the text takes, in milliseconds. */
const SLOW = 700;
/** Points on a side of the grid that ranges and questions are taken from. */
const GRID = 48;

const number = (value, digits = 2) => value.toFixed(digits).replace("-", "\u2212");
const percent = (value) => `${Math.round(100 * value)}\u00a0%`;

/** The controls: label, range, step, and how a value is written. Some are one for each head or word. */
const CONTROLS = {
  temperature: { label: () => "Temperature of the softmax", range: [0, 3], step: 0.02, write: (value) => (value === 0 ? "0: hardmax" : number(value)) },
  weight: { each: (model) => model.heads.length, label: (i) => `Weight of head ${i}`, range: [-1, 3], step: 0.05, write: (value) => number(value) },
  angle: { each: (model) => model.angles.length, label: (i) => `Angle of word ${i}`, range: [-Math.PI, Math.PI], step: 0.01, write: (value) => number(value) },
  shape: { label: () => "Square, torus, outputs", range: [0, 2], step: 0.02, write: (value) => (value === 0 ? "square" : value === 1 ? "torus" : value === 2 ? "outputs" : number(value)) },
  frame: { label: () => "Step of the training", range: (page) => [0, page.model.frames.length - 1], step: 1, write: (value, page) => String(page.model.frames[value].step) },
  checkpoint: { label: () => "Step of the training", range: (page) => [0, page.model.run.steps.length - 1], step: 1, write: (value, page) => String(page.model.run.steps[value]) },
  layer: { label: () => "Layer", range: (page) => [0, page.model.run.layers - 1], step: 1, write: String },
  runHead: { label: () => "Head", range: (page) => [0, page.model.run.heads - 1], step: 1, write: String },
};
const WAVES = ["Constant", "Amplitude of \u03b81", "Phase of \u03b81", "Amplitude of \u03b82", "Phase of \u03b82", "Amplitude of \u03b81+\u03b82, 2\u03b82", "Phase of \u03b81+\u03b82, 2\u03b82", "Amplitude of \u03b81\u2212\u03b82", "Phase of \u03b81\u2212\u03b82"];

export class Chapter {
  constructor(page, section) {
    this.page = page;
    this.section = section;
    this.name = section.id;
    const { model } = page;
    const plain = trained(model);
    this.defaults = { temperature: 1, residual: 0, head: 0, shape: 0, frame: model.frames.length - 1 };
    plain.weights.forEach((weight, i) => { this.defaults[`weight${i}`] = weight; });
    plain.angles.forEach((angle, i) => { this.defaults[`angle${i}`] = angle; });
    if (model.run) Object.assign(this.defaults, { checkpoint: model.run.steps.length - 1, layer: model.run.best[0], runHead: model.run.best[1] });
    Object.assign(this.defaults, this.parsed(section.dataset.begin ?? ""));
    this.values = { ...this.defaults };
    this.isTouched = false;
    this.views = [];
    this.controls = new Map();
    this.rebuild();
  }

  /** Values by name, as the text gives them: "temperature=0 head=1". */
  parsed(text) {
    const parts = text.split(/\s+/).filter((part) => part.includes("="));
    return Object.fromEntries(parts.map((part) => part.split("=")).map(([name, value]) => [name, Number(value)]));
  }

  get head() { return this.values.head; }
  get shape() { return this.values.shape; }
  get frame() { return this.values.frame; }
  get checkpoint() { return this.values.checkpoint; }
  get layer() { return this.values.layer; }
  get runHead() { return this.values.runHead; }

  /** Whether the chapter shows a model as it is trained, rather than the model of the article. */
  get isTraining() { return /\bframe\b/.test(this.section.dataset.controls); }

  get model() {
    const { model } = this.page;
    return this.isTraining ? model.frameModel(this.frame) : model;
  }

  /** The transformer as the controls say. */
  rebuild() {
    const { values, model } = this;
    const list = (name, count) => Array.from({ length: count }, (_, i) => values[`${name}${i}`]);
    this.settings = {
      temperature: values.temperature,
      residual: RESIDUALS[values.residual],
      weights: list("weight", model.heads.length),
      angles: this.isTraining ? Array.from(model.angles) : list("angle", model.angles.length),
      waves: model.heads.map((_, h) => (h === values.head && values.wave0 !== undefined ? list("wave", 9) : null)),
    };
    this.evaluator = new Evaluator(model, this.settings);
    this.kept = new Map();
    for (const view of this.views) view.isOld = true;
  }

  /** A value that is computed once for the transformer as it is. */
  once(name, make) {
    if (!this.kept.has(name)) this.kept.set(name, make());
    return this.kept.get(name);
  }

  points() { return this.once("points", () => this.evaluator.grid(GRID, (found) => found)); }
  accuracy() { return this.once("accuracy", () => this.evaluator.accuracy()); }
  scores() { return this.points().map(({ scores }) => scores[this.head]); }
  largestScore() { return this.once("largest", () => Math.max(1e-6, ...this.scores().map(Math.abs))); }

  /** Center and half the size of the outputs over the torus. */
  outputs() {
    return this.once("outputs", () => {
      const all = this.points().map(({ output }) => output);
      const ends = [0, 1, 2].map((i) => [Math.min(...all.map((v) => v[i])), Math.max(...all.map((v) => v[i]))]);
      return { center: ends.map(([a, b]) => (a + b) / 2), extent: ends.map(([a, b]) => Math.max(1e-9, (b - a) / 2)) };
    });
  }

  /** The nine free parameters of the shown head's score. */
  waves() { return waves(this.evaluator.terms[this.head]); }

  set(changes) {
    Object.assign(this.values, changes);
    if ("head" in changes && !("wave0" in changes)) for (let i = 0; i < 9; ++i) delete this.values[`wave${i}`];
    this.rebuild();
    this.page.changed(this);
  }

  /** A change by the reader, which the text does not undo. */
  touch(changes) {
    cancelAnimationFrame(this.moving);
    this.isTouched = true;
    const clean = Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, /^angle/.test(name) ? wrapped(value) : value]));
    if (Object.keys(clean).some((name) => /^wave/.test(name)) && this.values.wave0 === undefined) {
      this.waves().forEach((value, i) => { clean[`wave${i}`] ??= value; });
    }
    this.set(clean);
  }

  /** Moves to values in a while; at once where the reader wants no motion. */
  moveTo(values) {
    cancelAnimationFrame(this.moving);
    const from = { ...this.values };
    const began = performance.now();
    const steps = ["head", "residual", "layer", "runHead"];
    const to = { ...this.defaults, ...values };
    const step = (now) => {
      const share = this.page.isStill ? 1 : Math.min(1, (now - began) / SLOW);
      const eased = share * share * (3 - 2 * share);
      const changes = {};
      for (const [name, end] of Object.entries(to)) {
        const start = from[name] ?? end;
        changes[name] = steps.includes(name) || share === 1 ? end : start + eased * (end - start);
        if (["frame", "checkpoint"].includes(name)) changes[name] = Math.round(changes[name]);
      }
      if (share === 1) for (let i = 0; i < 9; ++i) if (!(`wave${i}` in to)) delete this.values[`wave${i}`];
      this.set(changes);
      if (share < 1) this.moving = requestAnimationFrame(step);
    };
    step(this.page.isStill ? Infinity : began);
  }

  /** A value of the address within its range. */
  allowed(name, value) {
    const control = CONTROLS[name.replace(/\d+$/, "")];
    const range = typeof control?.range === "function" ? control.range(this.page) : control?.range;
    const [least, most] = range ?? { head: [0, this.page.model.heads.length - 1], residual: [0, RESIDUALS.length - 1] }[name] ?? [-100, 100];
    const within = Math.max(least, Math.min(most, value));
    return control?.step === 1 || !control ? (/^wave/.test(name) ? within : Math.round(within)) : within;
  }

  reset() {
    this.isTouched = false;
    this.moveTo({});
  }

  pointAtDirection(direction) {
    const found = nearestDirection(this.evaluator, direction);
    this.away = found.angle > 0.06 ? `No pair of angles has an output in this direction: the nearest is ${number((found.angle * 180) / Math.PI, 0)} degrees away.` : "";
    this.page.setPoint(found.theta, this);
  }

  setCell(cell) {
    this.cell = cell;
    this.page.changed(this);
  }

  /** The controls that the chapter asks for. */
  build() {
    const place = this.section.querySelector(".controls");
    if (!place) return;
    const { model } = this.page;
    for (const name of (this.section.dataset.controls ?? "").split(/\s+/).filter(Boolean)) {
      if (name === "residual") place.append(this.box());
      else if (name === "head") place.append(this.choice());
      else if (name === "waves") WAVES.forEach((label, i) => place.append(this.slider(`wave${i}`, label, [-Math.PI, Math.PI], 0.01, (value) => number(value))));
      else {
        const control = CONTROLS[name];
        const range = typeof control.range === "function" ? control.range(this.page) : control.range;
        const count = control.each?.(model) ?? 0;
        const write = (value) => control.write(value, this.page);
        if (!count) place.append(this.slider(name, control.label(), range, control.step, write));
        for (let i = 0; i < count; ++i) place.append(this.slider(`${name}${i}`, control.label(i), range, control.step, write));
      }
    }
    const reset = element("button", { type: "button", textContent: "Reset" });
    reset.addEventListener("click", () => this.reset());
    place.append(reset);
    if (this.section.dataset.controls?.includes("frame") || this.section.dataset.controls?.includes("checkpoint")) place.append(this.player());
    this.section.querySelectorAll(".question").forEach((question) => this.ask(question));
    this.section.querySelectorAll("fieldset[data-answer]").forEach((guess) => this.guess(guess));
  }

  slider(name, label, [least, most], step, write) {
    const id = `${this.name}-${name}`;
    const input = element("input", { type: "range", id, min: String(least), max: String(most), step: String(step) });
    const output = element("output", { htmlFor: id });
    input.addEventListener("input", () => this.touch({ [name]: Number(input.value) }));
    this.controls.set(name, () => {
      const value = this.values[name] ?? (name.startsWith("wave") ? this.waves()[Number(name.slice(4))] : 0);
      if (name.startsWith("wave") && Math.abs(value) > Number(input.max)) Object.assign(input, { min: String(-Math.ceil(Math.abs(value))), max: String(Math.ceil(Math.abs(value))) });
      input.value = String(value);
      output.textContent = write(value);
      input.setAttribute("aria-valuetext", write(value));
    });
    return element("div", { className: "control" }, element("label", { htmlFor: id, textContent: label }), input, output);
  }

  box() {
    const id = `${this.name}-residual`;
    const input = element("input", { type: "checkbox", id });
    input.addEventListener("change", () => this.touch({ residual: input.checked ? 0 : 1 }));
    this.controls.set("residual", () => { input.checked = this.values.residual === 0; });
    return element("div", { className: "control" }, element("label", { htmlFor: id, textContent: "Residual stream" }), input);
  }

  choice() {
    const id = `${this.name}-head`;
    const select = element("select", { id }, ...this.page.model.heads.map((_, h) => element("option", { value: String(h), textContent: `Head ${h}` })));
    select.addEventListener("change", () => this.touch({ head: Number(select.value) }));
    this.controls.set("head", () => { select.value = String(this.head); });
    return element("div", { className: "control" }, element("label", { htmlFor: id, textContent: "Head" }), select);
  }

  /** A button that plays a training. */
  player() {
    const name = this.section.dataset.controls.includes("frame") ? "frame" : "checkpoint";
    const button = element("button", { type: "button", textContent: "Play" });
    const stop = () => {
      clearInterval(this.playing);
      this.playing = null;
      button.textContent = "Play";
    };
    button.addEventListener("click", () => {
      if (this.playing) return stop();
      const last = this.defaults[name];
      if (this.values[name] >= last) this.touch({ [name]: 0 });
      button.textContent = "Pause";
      this.playing = setInterval(() => {
        if (this.values[name] >= last) stop();
        else this.touch({ [name]: this.values[name] + 1 });
      }, name === "frame" ? 60 : 500);
    });
    return button;
  }

  /** A question, which says when it is answered, and shows an answer. */
  ask(place) {
    const question = QUESTIONS[place.dataset.question];
    const said = element("output", { className: "answer" });
    said.setAttribute("aria-live", "polite");
    const show = element("button", { type: "button", textContent: "Show me" });
    show.addEventListener("click", () => {
      this.isTouched = true;
      const { point, ...values } = question.answer(this);
      if (point) {
        this.page.setPoint(point, this);
        for (const view of this.views) view.face?.(this.evaluator.at(...point).output);
      }
      this.moveTo(values);
    });
    place.append(show, said);
    this.controls.set(`question ${place.dataset.question}`, () => {
      const isMet = this.isTouched && question.isMet(this);
      place.classList.toggle("met", isMet);
      const text = isMet ? `\u2713 ${question.said?.(this) ?? "Yes."}` : "";
      if (said.textContent !== text) said.textContent = text;
    });
  }

  /** A guess, after which the text goes on. */
  guess(place) {
    const reveal = document.getElementById(place.dataset.reveal);
    const said = element("p", { className: "answer" });
    said.setAttribute("aria-live", "polite");
    place.append(said);
    place.addEventListener("change", (event) => {
      said.textContent = event.target.value === place.dataset.answer ? "\u2713 Right." : "Not so.";
      reveal.hidden = false;
      if (reveal.dataset.set !== undefined && !this.isTouched) this.moveTo(this.parsed(reveal.dataset.set));
    });
  }

  /** What is at the point, in words. */
  readout() {
    const { evaluator, page, head } = this;
    if (this.section.dataset.readout === "matrix") {
      const { run } = page.model;
      const induction = `Weight on the induction target: ${number(run.induction(this.checkpoint, this.layer, this.runHead))}.`;
      if (!this.cell) return induction;
      const [query, key] = this.cell;
      const weight = run.weight(this.checkpoint, this.layer, this.runHead, query, key);
      return `${induction} The query \u201c${run.tokens[query]}\u201d attends to \u201c${run.tokens[key]}\u201d with weight ${number(weight)}.`;
    }
    const found = evaluator.at(...page.point);
    const parts = {
      point: () => `Angles: ${page.point.map((angle) => number(angle)).join(" and ")}.`,
      attention: () => `Score of head ${head}: ${number(found.scores[head])}. Token 2 attends to token 1 with weight ${number(found.attention[head])}, to itself with weight ${number(1 - found.attention[head])}.`,
      prediction: () => `Predicts word ${found.predicted} with probability ${number(found.probabilities[found.predicted])}.`,
      accuracy: () => (Number.isNaN(this.accuracy()) ? "" : `Accuracy on the token pairs: ${percent(this.accuracy())}.`),
      output: () => `Output: ${found.output.map((value) => number(value)).join(", ")}.`,
    };
    const wanted = (this.section.dataset.readout ?? "point prediction").split(/\s+/);
    return [...wanted.map((name) => parts[name]()), this.away ?? ""].filter(Boolean).join(" ");
  }

  /** Brings controls, questions and the line below the figure up to date. */
  update() {
    for (const refresh of this.controls.values()) refresh();
    const line = this.section.querySelector(".readout");
    if (line) line.textContent = this.readout();
  }
}

