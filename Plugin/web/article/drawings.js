// The views that are drawn in the plane: the circle of words, the triangle of mixtures, the terms of a score, the
// curves of a training, and attention matrices.

import { basis, simplex } from "./model.js";
import { View } from "./stage.js";

const css = (color) => `rgb(${color.join(",")})`;
const FONT = "12px sans-serif";

/** A drawing that can be dragged in. */
class Drawing extends View {
  constructor(chapter, canvas) {
    super(chapter, canvas);
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.begin?.(...this.placeOf(event));
      this.drag?.(...this.placeOf(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons > 0) this.drag?.(...this.placeOf(event));
    });
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  draw(ratio) {
    const size = this.fit(ratio);
    const { context } = this;
    context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    Object.assign(context, { font: FONT, textAlign: "center", textBaseline: "middle", lineWidth: 1 });
    this.paint(context, size, this.ink());
  }
}

/** The circle on which the word embeddings lie. Words can be dragged. */
export class CircleView extends Drawing {
  circle({ width, height }) {
    return { x: width / 2, y: height / 2, radius: Math.max(10, Math.min(width, height) / 2 - 30) };
  }

  paint(context, size, { ink, line, soft }) {
    const { x, y, radius } = (this.shown = this.circle(size));
    const { evaluator, page } = this.chapter;
    const at = (angle, r = radius) => [x + r * Math.cos(angle), y - r * Math.sin(angle)];
    context.strokeStyle = line;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.stroke();
    page.point.forEach((angle, i) => {
      context.setLineDash(i ? [5, 4] : []);
      context.strokeStyle = ink;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(...at(angle, radius - 14));
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = ink;
      context.fillText(`token ${i + 1}`, ...at(angle + 0.22, radius * 0.6));
    });
    evaluator.settings.angles.forEach((angle, token) => {
      context.beginPath();
      context.arc(...at(angle), 9, 0, 2 * Math.PI);
      context.fillStyle = css(evaluator.model.colors[token]);
      context.fill();
      context.strokeStyle = ink;
      context.stroke();
      context.fillStyle = ink;
      context.fillText(String(token), ...at(angle, radius + 19));
    });
    context.fillStyle = soft;
    context.fillText("angle 0", ...at(0, radius - 28));
  }

  begin(px, py) {
    const { x, y, radius } = this.shown;
    const places = this.chapter.settings.angles.map((angle) => Math.hypot(x + radius * Math.cos(angle) - px, y - radius * Math.sin(angle) - py));
    const nearest = places.indexOf(Math.min(...places));
    this.held = places[nearest] < 26 ? nearest : null;
  }

  drag(px, py) {
    const { x, y } = this.shown;
    if (this.held === null || this.held === undefined) return;
    this.chapter.touch({ [`angle${this.held}`]: Math.atan2(y - py, px - x) });
  }
}

/** The accuracy of mixtures of three heads. The weights are three times the shares of a point. */
export class SimplexView extends Drawing {
  constructor(chapter, canvas) {
    super(chapter, canvas);
    this.rows = 120;
  }

  triangle({ width, height }) {
    const side = Math.max(10, Math.min(width - 70, (height - 46) / 0.866));
    return { left: (width - side) / 2, bottom: (height + side * 0.866) / 2, side };
  }

  /** The picture, made again only where it changes. */
  picture() {
    const { evaluator } = this.chapter;
    const key = JSON.stringify([{ ...evaluator.settings, weights: evaluator.settings.weights.slice(3) }, this.chapter.frame]);
    if (this.key !== key) {
      this.key = key;
      const { rows } = this;
      this.values = simplex(evaluator, rows);
      this.image ??= Object.assign(document.createElement("canvas"), { width: rows, height: rows });
      const context = this.image.getContext("2d");
      const data = context.createImageData(rows, rows);
      const ramp = [[255, 245, 235], [252, 209, 163], [252, 140, 61], [217, 71, 0], [128, 38, 5]];
      for (let j = 0; j < rows; ++j) {
        for (let i = 0; i < rows; ++i) {
          const value = this.values[j * rows + i];
          if (Number.isNaN(value)) continue;
          const place = Math.min(3.9999, value * 4);
          const [low, share] = [Math.floor(place), place % 1];
          const color = ramp[low].map((c, k) => c + share * (ramp[low + 1][k] - c));
          data.data.set([...color, 255], 4 * ((rows - 1 - j) * rows + i));
        }
      }
      context.putImageData(data, 0, 0);
    }
    return this.image;
  }

  paint(context, size, { ink }) {
    const { left, bottom, side } = (this.shown = this.triangle(size));
    const height = side * 0.866;
    context.imageSmoothingEnabled = false;
    context.save();
    context.beginPath();
    context.moveTo(left, bottom);
    context.lineTo(left + side, bottom);
    context.lineTo(left + side / 2, bottom - height);
    context.closePath();
    context.strokeStyle = ink;
    context.stroke();
    context.clip();
    context.drawImage(this.picture(), left, bottom - height, side, height);
    context.restore();
    context.fillStyle = ink;
    context.fillText("head 0", left, bottom + 14);
    context.fillText("head 1", left + side, bottom + 14);
    context.fillText("head 2", left + side / 2, bottom - height - 12);
    const [first, second, third] = this.chapter.settings.weights;
    const sum = first + second + third;
    if (sum <= 0 || Math.min(first, second, third) < 0) return;
    const place = [left + side * (second + third / 2) / sum, bottom - (height * third) / sum];
    for (const [radius, color] of [[8, "#000"], [6, "#fff"], [4, "#000"]]) {
      context.beginPath();
      context.arc(...place, radius, 0, 2 * Math.PI);
      context.strokeStyle = color;
      context.lineWidth = 2;
      context.stroke();
    }
  }

  drag(px, py) {
    const { left, bottom, side } = this.shown;
    const third = Math.max(0, (bottom - py) / (side * 0.866));
    const second = Math.max(0, (px - left) / side - third / 2);
    const first = Math.max(0, 1 - second - third);
    const sum = first + second + third;
    this.chapter.touch({ weight0: (3 * first) / sum, weight1: (3 * second) / sum, weight2: (3 * third) / sum });
  }
}

const NAMES = ["1", "cos \u03b81", "sin \u03b81", "cos \u03b82", "sin \u03b82", "cos 2\u03b82", "sin 2\u03b82", "cos(\u03b81+\u03b82)", "sin(\u03b81+\u03b82)", "cos(\u03b81\u2212\u03b82)", "sin(\u03b81\u2212\u03b82)"];

/** The eleven coefficients of a head's score, and what each term adds at the point. */
export class TermsView extends Drawing {
  paint(context, { width, height }, { ink, line, soft, accent }) {
    const { evaluator, page, head } = this.chapter;
    const terms = evaluator.terms[head];
    const added = basis(...page.point).map((value, i) => value * terms[i]);
    const largest = Math.max(1e-9, ...terms.map(Math.abs));
    const [labels, numbers] = [76, 52];
    const [middle, half] = [labels + (width - labels - numbers) / 2, (width - labels - numbers) / 2];
    const row = height / 12;
    context.strokeStyle = line;
    context.beginPath();
    context.moveTo(middle, 0);
    context.lineTo(middle, row * 11);
    context.stroke();
    terms.forEach((term, i) => {
      const y = (i + 0.5) * row;
      const bar = (value, thick) => context.fillRect(Math.min(middle, middle + (value / largest) * half), y - thick / 2, Math.abs((value / largest) * half), thick);
      context.fillStyle = soft;
      context.globalAlpha = 0.4;
      bar(term, row * 0.7);
      context.globalAlpha = 1;
      context.fillStyle = accent;
      bar(added[i], row * 0.3);
      context.fillStyle = ink;
      context.textAlign = "left";
      context.fillText(NAMES[i], 2, y);
      context.textAlign = "right";
      context.fillText(term.toFixed(2).replace("-", "\u2212"), width - 2, y);
    });
    const score = added.reduce((a, b) => a + b, 0);
    context.textAlign = "left";
    context.fillText(`Score at the point: ${score.toFixed(2).replace("-", "\u2212")}`, 2, row * 11.5);
  }
}

/** Loss and accuracy against the step, with the step that is shown. */
export class CurveView extends Drawing {
  frames({ width }) {
    return { left: 40, right: width - 40 };
  }

  paint(context, size, { ink, line, accent, soft }) {
    const { model } = this.chapter.page;
    const { left, right } = (this.shown = this.frames(size));
    const [top, bottom] = [22, size.height - 34];
    const frames = model.frames;
    const last = frames.length - 1;
    const x = (i) => left + ((right - left) * i) / last;
    context.strokeStyle = line;
    context.strokeRect(left, top, right - left, bottom - top);
    const largest = Math.max(...frames.map(({ loss }) => loss));
    const draw = (read, color, dashes) => {
      context.strokeStyle = color;
      context.lineWidth = 2;
      context.setLineDash(dashes);
      context.beginPath();
      frames.forEach((frame, i) => context.lineTo(x(i), bottom - read(frame) * (bottom - top)));
      context.stroke();
      context.setLineDash([]);
    };
    draw(({ loss }) => loss / largest, ink, []);
    draw(({ accuracy }) => accuracy, accent, [6, 3]);
    context.fillStyle = ink;
    context.textAlign = "left";
    context.fillText("Loss (solid, left)", left, 10);
    context.fillStyle = accent;
    context.textAlign = "right";
    context.fillText("Accuracy (dashed, right)", right, 10);
    context.fillStyle = ink;
    context.textAlign = "center";
    for (const i of [0, Math.round(last / 3), Math.round((2 * last) / 3), last]) context.fillText(String(frames[i].step), x(i), bottom + 11);
    context.fillText("step", (left + right) / 2, bottom + 25);
    context.textAlign = "right";
    context.fillText(largest.toFixed(2), left - 5, top);
    context.fillText("0", left - 5, bottom);
    context.textAlign = "left";
    context.fillStyle = accent;
    context.fillText("1", right + 5, top);
    context.fillText("0", right + 5, bottom);
    context.strokeStyle = soft;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(this.chapter.frame), top);
    context.lineTo(x(this.chapter.frame), bottom);
    context.stroke();
  }

  drag(px) {
    const { left, right } = this.shown;
    const last = this.chapter.page.model.frames.length - 1;
    this.chapter.touch({ frame: Math.max(0, Math.min(last, Math.round(((px - left) / (right - left)) * last))) });
  }
}

/** The attention of a head of the trained transformer at a checkpoint; or of all heads, one beside the other. */
export class MatrixView extends Drawing {
  constructor(chapter, canvas) {
    super(chapter, canvas);
    canvas.addEventListener("pointermove", (event) => this.hover(...this.placeOf(event)));
    canvas.addEventListener("pointerleave", () => this.hover(-1, -1));
  }

  /** Writes weights as grey values into a canvas of a pixel each. */
  image(layer, head) {
    const { tokens, weights, heads, layers } = this.chapter.page.model.run;
    const count = tokens.length;
    const context = Object.assign(document.createElement("canvas"), { width: count, height: count }).getContext("2d");
    const data = context.createImageData(count, count);
    const from = ((this.chapter.checkpoint * layers + layer) * heads + head) * count * count;
    for (let i = 0; i < count * count; ++i) {
      const value = weights[from + i] / 255;
      data.data.set([255 - value * 247, 255 - value * 217, 255 - value * 163, 255], 4 * i);
    }
    context.putImageData(data, 0, 0);
    return context.canvas;
  }

  paint(context, { width, height }, { ink, line, accent }) {
    const { run } = this.chapter.page.model;
    const { layer, runHead } = this.chapter;
    context.imageSmoothingEnabled = false;
    context.strokeStyle = line;
    if (this.canvas.dataset.all !== undefined) {
      const side = Math.min((width - 30) / run.heads, (height - 16) / run.layers) - 4;
      this.cells = [];
      for (let l = 0; l < run.layers; ++l) {
        context.fillStyle = ink;
        context.textAlign = "left";
        context.fillText(String(l), 6, 16 + l * (side + 4) + side / 2);
        for (let h = 0; h < run.heads; ++h) {
          const [x, y] = [24 + h * (side + 4), 16 + l * (side + 4)];
          context.drawImage(this.image(l, h), x, y, side, side);
          const isShown = l === layer && h === runHead;
          Object.assign(context, { strokeStyle: isShown ? accent : line, lineWidth: isShown ? 3 : 1 });
          context.strokeRect(x, y, side, side);
          if (!l) {
            context.textAlign = "center";
            context.fillText(String(h), x + side / 2, 7);
          }
          this.cells.push({ x, y, side, layer: l, runHead: h });
        }
      }
      return;
    }
    const count = run.tokens.length;
    const room = 62;
    const side = Math.max(20, Math.min(width, height) - room - 4);
    const step = side / count;
    this.shown = { left: room, top: room, step, count };
    context.drawImage(this.image(layer, runHead), room, room, side, side);
    context.strokeRect(room, room, side, side);
    const size = Math.max(6, Math.min(12, step * 0.95));
    context.font = `${size}px sans-serif`;
    context.fillStyle = ink;
    run.tokens.forEach((token, i) => {
      const at = room + (i + 0.5) * step;
      context.textAlign = "right";
      context.fillText(token, room - 4, at);
      context.save();
      context.translate(at, room - 4);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(token, 0, 0);
      context.restore();
    });
  }

  drag(px, py) {
    const cell = this.cells?.find(({ x, y, side }) => px >= x && py >= y && px < x + side && py < y + side);
    if (cell) this.chapter.touch({ layer: cell.layer, runHead: cell.runHead });
  }

  hover(px, py) {
    if (!this.shown) return;
    const { left, top, step, count } = this.shown;
    const [key, query] = [Math.floor((px - left) / step), Math.floor((py - top) / step)];
    const isInside = key >= 0 && query >= 0 && key < count && query < count;
    this.chapter.setCell(isInside ? [query, key] : null);
  }
}

