// The views that the graphics processor draws: the map, the surface in space, and the sphere of the unembedding.

import { dot, wrapped } from "./model.js";

const MARGIN = { left: 44, bottom: 34, right: 10, top: 10 };
const BARE = { left: 4, bottom: 4, right: 4, top: 4 };
/** A turn by an arrow key, and a step of the point, in radians. */
const TURN = 0.1;
const STEP = 0.05;

/** Axes of a camera that looks from an azimuth and an elevation: rightward, upward, toward the viewer. */
function cameraAt(azimuth, elevation) {
  const [ca, sa, ce, se] = [Math.cos(azimuth), Math.sin(azimuth), Math.cos(elevation), Math.sin(elevation)];
  return [[-sa, ca, 0], [-ca * se, -sa * se, ce], [ca * ce, sa * ce, se]];
}

const FRONT = [[1, 0, 0], [0, 0, 1], [0, -1, 0]];

/** A canvas of a chapter: its size on the screen, and when it has to be drawn. */
export class View {
  constructor(chapter, canvas) {
    this.chapter = chapter;
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.isSeen = false;
    this.isOld = true;
  }

  /** Gives the canvas the pixels of the screen; the size of the view in CSS pixels. ratio: pixels in one of them. */
  fit(ratio = window.devicePixelRatio || 1) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [columns, rows] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== columns || this.canvas.height !== rows) Object.assign(this.canvas, { width: columns, height: rows });
    else this.context.clearRect(0, 0, columns, rows);
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    return { width, height, ratio };
  }

  /** The colors of the page. */
  ink() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { ink: read("--ink"), soft: read("--soft"), line: read("--line"), page: read("--page"), accent: read("--accent") };
  }
}

class Stage extends View {
  constructor(painter, chapter, canvas, margin) {
    super(chapter, canvas);
    this.painter = painter;
    this.margin = margin;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("click", (event) => { if (!this.wasDragged) this.point(event); });
  }

  /** The part of the canvas for the picture, in pixels of the screen. */
  area({ width, height, ratio }) {
    const { left, bottom, right, top } = this.margin;
    const [w, h] = [Math.max(8, width - left - right), Math.max(8, height - top - bottom)];
    return { x: left * ratio, y: top * ratio, width: Math.round(w * ratio), height: Math.round(h * ratio), ratio };
  }

  zoomOf({ width, height }, half) {
    const least = Math.min(width, height);
    return [least / width / half, least / height / half];
  }

  /** detail: pixels drawn for one of the screen, at most 1. */
  draw(ratio, detail = 1) {
    const size = this.fit(ratio);
    const area = this.area(size);
    const { painter } = this;
    const look = { ...this.look(area), isCoarse: detail < 1 };
    const [width, height] = [area.width, area.height].map((pixels) => Math.max(1, Math.round(pixels * detail)));
    painter.begin(width, height);
    painter.drawSurface(this.chapter.evaluator, look);
    for (const [dots, isDirection] of this.marks(size.ratio * detail)) painter.drawDots(this.chapter.evaluator, look, dots, isDirection);
    painter.copy(this.context, width, height, area);
    this.context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    this.decorate(size);
    this.last = { area, look };
  }

  decorate() {}

  /** Dots of the token pairs in the color of their next token, and a ring around the point of the article. */
  marks(ratio) {
    const { evaluator, page } = this.chapter;
    const { colors } = evaluator.model;
    const dots = this.hasPairs
      ? evaluator.pairs().map(({ theta, target }) => ({ place: theta.map(wrapped), color: colors[target] ?? [255, 255, 255], radius: 6 * ratio }))
      : [];
    return [[[...dots, { place: page.point, color: [255, 255, 255], radius: 9 * ratio, isRing: true }], false]];
  }

  get hasPairs() {
    return this.canvas.dataset.pairs !== undefined;
  }

  press(event) {
    this.wasDragged = false;
    this.from = [event.clientX, event.clientY];
    this.canvas.setPointerCapture(event.pointerId);
    if (event.pointerType === "mouse") this.canvas.focus({ preventScroll: true });
  }

  move(event) {
    const isHeld = event.buttons > 0 && this.from;
    if (isHeld && Math.hypot(event.clientX - this.from[0], event.clientY - this.from[1]) > 3) this.wasDragged = true;
    if (isHeld && this.wasDragged) this.drag(event);
    else if (!isHeld && event.pointerType === "mouse") this.point(event);
  }

  /** The place of an event in the picture, in pixels of the screen. */
  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    const { area } = this.last;
    return [(event.clientX - box.left) * area.ratio - area.x, (event.clientY - box.top) * area.ratio - area.y];
  }

  point(event) {
    if (!this.last) return;
    const { area, look } = this.last;
    const [x, y] = this.placeOf(event);
    if (x < 0 || y < 0 || x >= area.width || y >= area.height) return;
    const found = this.painter.pick(this.chapter.evaluator, look, area.width, area.height, x, y);
    if (found) this.chapter.page.setPoint(found, this.chapter);
  }

  key(event) {
    const [right, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [];
    if (right === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (event.shiftKey && this.turn) {
      this.turn(right * TURN, up * TURN);
    } else {
      const { page } = this.chapter;
      page.setPoint([page.point[0] + right * STEP, page.point[1] + up * STEP], this.chapter);
    }
  }
}

/** The torus as a square, seen from the front: x is the angle of token 1, y that of token 2. */
export class MapView extends Stage {
  constructor(painter, chapter, canvas) {
    super(painter, chapter, canvas, canvas.dataset.bare === undefined ? MARGIN : BARE);
  }

  look() {
    const { chapter, canvas } = this;
    const kind = canvas.dataset.kind ?? "class";
    return { camera: FRONT, zoom: [1, 1], isFlat: true, kind, head: chapter.head, largest: kind === "score" ? chapter.largestScore() : 1 };
  }

  drag(event) {
    this.point(event);
  }

  decorate({ width, height }) {
    if (this.margin === BARE) return;
    const { context, margin } = this;
    const { ink, line } = this.ink();
    const [right, bottom] = [width - margin.right, height - margin.bottom];
    const [across, down] = [right - margin.left, bottom - margin.top];
    Object.assign(context, { strokeStyle: line, fillStyle: ink, lineWidth: 1, font: "12px sans-serif", textAlign: "center", textBaseline: "top" });
    context.strokeRect(margin.left - 0.5, margin.top - 0.5, across + 1, down + 1);
    for (const [share, name] of [[0, "\u2212\u03c0"], [0.5, "0"], [1, "\u03c0"]]) {
      context.fillText(name, margin.left + share * across, bottom + 4);
    }
    context.fillText("angle of token 1", margin.left + across * 0.5, bottom + 18);
    Object.assign(context, { textAlign: "right", textBaseline: "middle" });
    for (const [share, name] of [[0, "\u2212\u03c0"], [0.5, "0"], [1, "\u03c0"]]) {
      context.fillText(name, margin.left - 5, bottom - share * down);
    }
    context.save();
    context.translate(9, margin.top + down / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText("angle of token 2", 0, 0);
    context.restore();
  }
}

class Turned extends Stage {
  constructor(painter, chapter, canvas) {
    super(painter, chapter, canvas, BARE);
    [this.azimuth, this.elevation] = [-1.1, 0.5];
  }

  turn(right, up) {
    this.azimuth -= right;
    this.elevation = Math.max(-1.57, Math.min(1.57, this.elevation + up));
    this.isOld = true;
    this.chapter.page.ask();
  }

  drag(event) {
    const scale = 3.5 / Math.min(this.canvas.clientWidth, this.canvas.clientHeight);
    this.turn((event.clientX - this.from[0]) * scale, (event.clientY - this.from[1]) * scale);
    this.from = [event.clientX, event.clientY];
  }
}

/** The torus as a surface: a square that is bent to a torus, and deformed to the outputs of the transformer. */
export class SpaceView extends Turned {
  look(area) {
    const { chapter, azimuth, elevation, canvas } = this;
    const shape = canvas.dataset.shape ? Number(canvas.dataset.shape) : chapter.shape;
    const { center, extent } = shape > 1 ? chapter.outputs() : {};
    // From the front at first, as a map; from the side of a torus then.
    const turned = Math.min(1, shape);
    const camera = cameraAt(-Math.PI / 2 + turned * (azimuth + Math.PI / 2), turned * elevation);
    const kind = canvas.dataset.kind ?? "class";
    return {
      camera, zoom: this.zoomOf(area, 1.15 + 0.35 * Math.max(0, shape - 1)), shape, center, extent, kind,
      head: chapter.head, isLit: shape > 0.3, largest: kind === "score" ? chapter.largestScore() : 1,
    };
  }
}

/** The sphere of directions of the output, in the colors of the tokens that they predict. */
export class SphereView extends Turned {
  look(area) {
    if (!this.hasTurned) this.face(this.chapter.page.front);
    return { camera: cameraAt(this.azimuth, this.elevation), zoom: this.zoomOf(area, 1.12), onSphere: true, isSphere: true, isLit: true };
  }

  /** Turns until a direction is near the middle. */
  face([x, y, z]) {
    this.hasTurned = true;
    [this.azimuth, this.elevation] = [Math.atan2(y, x) + 0.4, 0.8 * Math.atan2(z, Math.hypot(x, y))];
  }

  marks(ratio) {
    const rows = this.chapter.evaluator.model.unembedding;
    return [
      [rows.map((place) => ({ place, color: [255, 255, 255], radius: 4 * ratio })), true],
      ...super.marks(ratio),
    ];
  }

  point(event) {
    if (!this.last) return;
    const { area, look } = this.last;
    const [x, y] = this.placeOf(event);
    const [across, up] = [((2 * x) / area.width - 1) / look.zoom[0], (1 - (2 * y) / area.height) / look.zoom[1]];
    const rest = 1 - across * across - up * up;
    if (rest < 0) return;
    const [r, u, t] = look.camera;
    this.chapter.pointAtDirection([0, 1, 2].map((i) => across * r[i] + up * u[i] + Math.sqrt(rest) * t[i]));
  }
}

/** The point of the torus whose output is nearest to a direction, and the angle between them. */
export function nearestDirection(evaluator, direction, size = 72) {
  const closeness = (theta) => {
    const { output } = evaluator.at(...theta);
    return dot(output, direction) / Math.sqrt(dot(output, output));
  };
  let [best, at] = [-2, [0, 0]];
  for (let j = 0; j < size; ++j) {
    for (let i = 0; i < size; ++i) {
      const theta = [i, j].map((n) => Math.PI * ((2 * n) / size - 1));
      const found = closeness(theta);
      if (found > best) [best, at] = [found, theta];
    }
  }
  for (let step = Math.PI / size; step > 1e-4; step /= 2) {
    for (let moved = true; moved; ) {
      moved = false;
      for (const [a, b] of [[step, 0], [-step, 0], [0, step], [0, -step]]) {
        const theta = [at[0] + a, at[1] + b];
        const found = closeness(theta);
        if (found > best) [best, at, moved] = [found, theta, true];
      }
    }
  }
  return { theta: at.map(wrapped), angle: Math.acos(Math.min(1, best)) };
}
