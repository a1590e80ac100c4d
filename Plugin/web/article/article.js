// The live article: a transformer that the page itself evaluates, in chapters with linked views.
// attentionatlas.article writes the model and the text into the page.

import { byId, element, offerThemes, page as root } from "../elements.js";
import { arrayOf, inflated } from "../scene.js";
import { Chapter } from "./chapter.js";
import { CircleView, CurveView, MatrixView, SimplexView, TermsView } from "./drawings.js";
import { Evaluator, trained, wrapped } from "./model.js";
import { Painter } from "./painter.js";
import { MapView, SpaceView, SphereView } from "./stage.js";

const PAINTED = { map: MapView, space: SpaceView, sphere: SphereView };
const DRAWN = { circle: CircleView, simplex: SimplexView, terms: TermsView, curve: CurveView, matrix: MatrixView };

/** A frame that takes longer is drawn with fewer pixels, so that it takes about so long, but not fewer than this share
of them; all of them after a rest. In milliseconds. */
const [SLOW, FLUENT, COARSE, REST] = [50, 33, 0.3, 250];

const began = performance.now();

function fail(error) {
  const message = error?.message ?? String(error);
  Object.assign(root.dataset, { status: "error", error: message });
  const place = byId("failed");
  place.hidden = false;
  place.textContent = `The pictures of this article cannot be drawn: ${message}`;
}

/** A row of a matrix of numbers. */
const rowsOf = (values, width) => Array.from({ length: values.length / width }, (_, i) => Array.from(values.slice(i * width, (i + 1) * width)));

/** The parameters of a model, one after the other as the page has them: angles, positions, heads, unembedding. */
function modelOf(numbers, { heads, tokens, next, colors }) {
  let at = 0;
  const take = (count) => numbers.slice(at, (at += count));
  return {
    angles: take(tokens),
    positions: rowsOf(take(6), 3),
    heads: Array.from({ length: heads }, () => ({ qk: take(9), ov: take(9) })),
    unembedding: rowsOf(take(3 * tokens), 3),
    next, colors,
  };
}

/** The attention of all heads of a trained transformer on a text, at some steps of its training. */
class Run {
  constructor({ tokens, layers, heads, steps }, weights) {
    Object.assign(this, { tokens, layers, heads, steps, weights });
    const all = Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
    const values = all.map(([layer, head]) => this.induction(steps.length - 1, layer, head));
    this.best = all[values.indexOf(Math.max(...values))];
  }

  weight(checkpoint, layer, head, query, key) {
    const count = this.tokens.length;
    return this.weights[(((checkpoint * this.layers + layer) * this.heads + head) * count + query) * count + key] / 255;
  }

  /** The mean weight of queries on what came after the same token before. */
  induction(checkpoint, layer, head) {
    const weights = [];
    this.tokens.forEach((token, query) => {
      const before = this.tokens.lastIndexOf(token, query - 1);
      if (query > 0 && before >= 0 && before + 1 < query) weights.push(this.weight(checkpoint, layer, head, query, before + 1));
    });
    return weights.length ? weights.reduce((a, b) => a + b, 0) / weights.length : 0;
  }

  /** The mean weight of queries on the token before. */
  previous(checkpoint, layer, head) {
    const count = this.tokens.length;
    let sum = 0;
    for (let query = 1; query < count; ++query) sum += this.weight(checkpoint, layer, head, query, query - 1);
    return sum / (count - 1);
  }
}

class Article {
  constructor(data, buffer) {
    const shape = data.model;
    const frames = arrayOf(buffer, shape.frames);
    const width = shape.frames.width;
    const made = new Map();
    const frameModel = (i) => {
      if (!made.has(i)) made.set(i, modelOf(frames.slice(i * width, (i + 1) * width), shape));
      return made.get(i);
    };
    this.model = {
      ...modelOf(arrayOf(buffer, shape.numbers), shape),
      frames: shape.steps.map((step, i) => ({ step, loss: shape.losses[i], accuracy: shape.accuracies[i] })),
      frameModel,
      run: data.run ? new Run(data.run, arrayOf(buffer, data.run.weights)) : null,
    };
    this.point = [0.6, -0.9];
    this.detail = 1;
    this.coarse = new Set();
    /** The output of the trained model there, which the sphere shows at first. */
    this.front = new Evaluator(this.model, trained(this.model)).at(...this.point).output;
    this.motion = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.painter = new Painter(shape.heads, shape.tokens);
    this.chapters = Array.from(document.querySelectorAll("section.chapter"), (section) => new Chapter(this, section));
    this.observer = new IntersectionObserver((seen) => this.seen(seen), { rootMargin: "80px" });
    for (const chapter of this.chapters) this.equip(chapter);
    this.listen(data.frames);
    this.follow();
    for (const chapter of this.chapters) chapter.update();
    this.loop = this.loop.bind(this);
    this.ask();
  }

  get isStill() {
    return this.motion.matches || this.isPrinted;
  }

  /** Views and controls of a chapter. */
  equip(chapter) {
    for (const canvas of chapter.section.querySelectorAll("canvas[data-view]")) {
      const kind = canvas.dataset.view;
      const view = PAINTED[kind] ? new PAINTED[kind](this.painter, chapter, canvas) : new DRAWN[kind](chapter, canvas);
      canvas.setAttribute("role", PAINTED[kind] ? "application" : "img");
      if (PAINTED[kind]) {
        canvas.tabIndex = 0;
        canvas.setAttribute("aria-describedby", "keys");
      }
      canvas.view = view;
      chapter.views.push(view);
      this.observer.observe(canvas);
      new ResizeObserver(() => { view.isOld = true; this.ask(); }).observe(canvas);
    }
    const place = chapter.section.querySelector(".canvases") ?? chapter.section.querySelector("figure");
    if (chapter.section.querySelector("canvas[data-kind=class], canvas[data-view=sphere]")) place.after(this.legend());
    chapter.build();
  }

  /** The colors of the words. */
  legend() {
    const words = this.model.colors.map((color, word) => {
      const swatch = element("i");
      swatch.style.background = `rgb(${color.join(",")})`;
      return element("span", {}, swatch, `word ${word}`);
    });
    return element("p", { className: "legend" }, ...words);
  }

  listen(frames) {
    const steps = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) this.reach(target);
    }, { rootMargin: "-45% 0px -45% 0px" });
    for (const step of document.querySelectorAll("[data-set]")) steps.observe(step);
    const redraw = () => {
      for (const { views } of this.chapters) for (const view of views) view.isOld = true;
      for (const place of document.querySelectorAll(".scene.live")) {
        place.querySelector("iframe").remove();
        this.load(place, frames);
      }
      this.ask();
    };
    offerThemes(byId("theme"), redraw);
    window.addEventListener("hashchange", () => { if (window.location.hash !== this.written) this.follow(); });
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    const hero = byId("hero");
    const play = byId("hero-play");
    play.addEventListener("click", () => { this.isPlaying = !this.isPlaying; this.sayPlaying(play); this.ask(); });
    this.isPlaying = !this.isStill;
    this.hero = this.chapters.find(({ section }) => section === hero);
    this.sayPlaying(play);
    const scenes = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) this.load(target, frames);
    }, { rootMargin: "100px" });
    for (const place of document.querySelectorAll("[data-scene]")) scenes.observe(place);
  }

  sayPlaying(button) {
    button.textContent = this.isPlaying ? "Pause" : "Play";
  }

  /** A page of a scene, in a frame of its own, where its picture was. */
  load(place, { pages, script, style }) {
    if (place.querySelector("iframe") || this.isPrinted) return;
    const themed = pages[place.dataset.scene].replace('data-theme="system"', `data-theme="${root.dataset.theme}"`);
    const text = themed.split("@@page-style@@").join(style).split("@@page-script@@").join(script);
    const frame = element("iframe", { title: place.dataset.title });
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.srcdoc = text;
    place.append(frame);
    place.classList.add("live");
  }

  /** The text has come to a step: the figure shows what it is about, unless the reader has changed something. */
  reach(step) {
    const chapter = this.chapters.find(({ section }) => section.contains(step));
    if (!chapter || chapter.isTouched || step.hidden) return;
    chapter.moveTo(chapter.parsed(step.dataset.set));
  }

  setPoint(point, chapter) {
    this.point = point.map(wrapped);
    for (const other of this.chapters) for (const view of other.views) view.isOld = true;
    if (chapter) chapter.isPointed = true;
    this.current = chapter ?? this.current;
    for (const other of this.chapters) if (other === chapter || other.views.some(({ isSeen }) => isSeen)) other.isChanged = true;
    this.ask();
  }

  changed(chapter) {
    chapter.isChanged = true;
    for (const view of chapter.views) view.isOld = true;
    if (chapter.isTouched) this.current = chapter;
    this.ask();
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      target.view.isSeen = isIntersecting;
      if (isIntersecting) this.current ??= target.view.chapter;
    }
    this.ask();
  }

  /** Draws before the next picture of the browser. */
  ask() {
    this.asked ??= requestAnimationFrame((now) => { this.asked = null; this.loop(now); });
  }

  loop(now) {
    const { hero } = this;
    const moves = this.isPlaying && !hero.isTouched && hero.views.some(({ isSeen }) => isSeen);
    if (moves) this.drift(now / 1000);
    const from = performance.now();
    const drawn = [];
    for (const chapter of this.chapters) {
      if (chapter.isChanged) {
        chapter.isChanged = false;
        chapter.update();
        if (chapter.isTouched || chapter.isPointed) this.writeAddress(chapter);
      }
      for (const view of chapter.views) {
        if (view.isSeen && view.isOld) {
          view.isOld = false;
          view.draw(undefined, this.detail);
          drawn.push(view);
        }
      }
    }
    if (drawn.length) this.adapt(drawn, performance.now() - from);
    if (root.dataset.status === "loading") {
      Object.assign(root.dataset, { status: "ready", milliseconds: String(Math.round(performance.now() - began)) });
    }
    if (moves) this.ask();
  }

  /** While something moves, a slow machine draws fewer pixels; all of them once it rests. */
  adapt(drawn, milliseconds) {
    const wasCoarse = this.detail < 1;
    if (milliseconds > SLOW || wasCoarse) {
      this.detail = Math.max(COARSE, Math.min(1, this.detail * Math.sqrt(FLUENT / milliseconds)));
    }
    if (!wasCoarse) return;
    for (const view of drawn) this.coarse.add(view);
    clearTimeout(this.refining);
    this.refining = setTimeout(() => {
      for (const view of this.coarse) view.draw();
      this.coarse.clear();
    }, REST);
  }

  /** The moving decision boundary: the waves of head 0 drift, and the map follows. */
  drift(seconds) {
    const { hero } = this;
    hero.whole ??= hero.waves();
    const moved = hero.whole.map((value, i) => (i && i % 2 === 0 ? value + Math.sin(0.4 * seconds + i) : i === 0 ? value + 2 * Math.sin(0.3 * seconds) : value));
    Object.assign(hero.values, Object.fromEntries(moved.map((value, i) => [`wave${i}`, value])));
    hero.rebuild();
    hero.isChanged = true;
  }

  /** The address of what a chapter shows. */
  writeAddress(chapter) {
    const parts = [`chapter=${chapter.name}`, `point=${this.point.join(",")}`];
    for (const [name, value] of Object.entries(chapter.values)) {
      if (chapter.isTouched && value !== chapter.defaults[name]) parts.push(`${name}=${value}`);
    }
    clearTimeout(this.writing);
    this.writing = setTimeout(() => {
      this.written = `#${parts.join("&")}`;
      try {
        window.history.replaceState(null, "", this.written);
      } catch {
        // A page in a frame without an address of its own.
      }
    }, 250);
  }

  /** What the address asks for. */
  follow() {
    const asked = new URLSearchParams(window.location.hash.slice(1));
    const chapter = this.chapters.find(({ name }) => name === asked.get("chapter"));
    const point = (asked.get("point") ?? "").split(",").map(Number);
    if (point.length === 2 && point.every(Number.isFinite)) this.setPoint(point, chapter);
    if (!chapter) return;
    const changes = {};
    for (const [name, text] of asked) {
      const value = Number(text);
      const isKnown = name in chapter.defaults || /^wave[0-8]$/.test(name);
      if (isKnown && Number.isFinite(value)) changes[name] = chapter.allowed(name, value);
    }
    if (Object.keys(changes).length) chapter.touch(changes);
    chapter.section.scrollIntoView();
  }

  /** Draws everything for paper, or for the screen again. */
  print(isPrinted) {
    this.isPrinted = isPrinted;
    const theme = root.dataset.theme;
    if (isPrinted) {
      this.shownTheme = theme;
      root.dataset.theme = "light";
    } else {
      root.dataset.theme = this.shownTheme ?? theme;
    }
    for (const chapter of this.chapters) {
      if (isPrinted) chapter.before = { ...chapter.values };
      const shown = isPrinted ? { ...chapter.defaults, ...chapter.parsed(chapter.section.dataset.print ?? "") } : chapter.before;
      if (shown) chapter.values = shown;
      chapter.rebuild();
      for (const view of chapter.views) view.draw(isPrinted ? 2 : undefined);
    }
  }

  /** Numbers of a model that tests and measurements ask for: see TestArticle. */
  static evaluate(described, settings, points, isShader) {
    const model = modelOf(Float64Array.from(described.numbers), described);
    const evaluator = new Evaluator(model, settings);
    if (isShader) {
      const painter = new Painter(described.heads, described.tokens);
      const numbers = [0, 1].map((kind) => Array.from(painter.probe(evaluator, points, kind)));
      painter.gl.getExtension("WEBGL_lose_context")?.loseContext();
      return points.map((_, i) => [...numbers[0].slice(4 * i, 4 * i + 4), ...numbers[1].slice(4 * i, 4 * i + 4)]);
    }
    return points.map(([t1, t2]) => {
      const found = evaluator.at(t1, t2);
      const [first, last] = [found.scores[0], found.scores.at(-1)];
      return [...found.output, found.probabilities[found.predicted], first, found.attention[0], last, found.predicted];
    });
  }

  /** The time of a frame while a value of a chapter moves, in milliseconds, on canvases of a size. */
  measure(name, value, range, size, count, detail = 1) {
    const chapter = this.chapters.find((one) => one.name === name);
    const views = chapter.views;
    const styles = views.map(({ canvas }) => canvas.getAttribute("style"));
    for (const { canvas } of views) Object.assign(canvas.style, { width: `${size}px`, height: `${size}px`, maxWidth: "none", aspectRatio: "auto" });
    const kept = { ...chapter.values };
    const times = [];
    for (let i = 0; i <= count; ++i) {
      const from = performance.now();
      chapter.set({ [value]: chapter.allowed(value, range[0] + ((range[1] - range[0]) * i) / count) });
      chapter.update();
      for (const view of views) view.draw(1, detail);
      this.painter.finish();
      if (i) times.push(performance.now() - from);
    }
    chapter.values = kept;
    chapter.rebuild();
    views.forEach(({ canvas }, i) => (styles[i] === null ? canvas.removeAttribute("style") : canvas.setAttribute("style", styles[i])));
    chapter.isChanged = true;
    this.ask();
    return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
  }
}

async function main() {
  window.addEventListener("error", (event) => fail(event.error ?? event.message));
  window.addEventListener("unhandledrejection", (event) => fail(event.reason));
  document.addEventListener("securitypolicyviolation", (event) => fail(`blocked: ${event.violatedDirective}`));
  const data = JSON.parse(byId("article").textContent);
  const buffer = await inflated(byId("data").textContent);
  window.article = new Article(data, buffer);
  window.article.evaluate = Article.evaluate;
}

main().catch(fail);
