// The texts beside points, drawn over the scene as far as they do not overlap.
import { arrayOf } from "./scene.js";

/** Between a point and its text, at least. */
const GAP = 4;
/** Letters are not smaller, in pixels. */
const SMALLEST = 9;
/** Among more points labels have no room beside all dots. */
const SPARSE = 500;
/** Points that are tried in one drawing. */
const TRIES = 20000;
const FONT = '"DejaVu Sans", "Noto Sans", Verdana, Arial, sans-serif';
const LEFT = 0;
const RIGHT = 1;
const BELOW = 3;

/** A token as it is written: a leading space as a dot, control characters as escape sequences. */
export function shownToken(text) {
  const escaped = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) => {
    const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
    return known[c] ?? `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
  return escaped.replace(/^ +/, (spaces) => "\u00b7".repeat(spaces.length));
}

/** Numbers from 0 in an order whose first part is an even choice of all. */
function spread(count) {
  const order = [];
  const bits = Math.ceil(Math.log2(Math.max(2, count)));
  for (let i = 0; i < 1 << bits; ++i) {
    let reversed = 0;
    for (let b = 0; b < bits; ++b) reversed |= ((i >> b) & 1) << (bits - 1 - b);
    if (reversed < count) order.push(reversed);
  }
  return order;
}

/** The rectangles that are taken, in squares of the screen, so that few are compared. */
class Taken {
  constructor() {
    this.squares = new Map();
  }

  add(box) {
    const keys = [];
    for (let i = Math.floor(box[0] / 64); i <= Math.floor(box[2] / 64); ++i) {
      for (let j = Math.floor(box[1] / 64); j <= Math.floor(box[3] / 64); ++j) keys.push(`${i} ${j}`);
    }
    const meets = (other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3];
    if (keys.some((key) => this.squares.get(key)?.some(meets))) return false;
    for (const key of keys) {
      if (!this.squares.has(key)) this.squares.set(key, []);
      this.squares.get(key).push(box);
    }
    return true;
  }
}

export class Labels {
  constructor(canvas) {
    this.context = canvas.getContext("2d");
    this.canvas = canvas;
  }

  /** Draws the labels of a scene; returns how many. found: for each part which points match a search. */
  draw(scene, projection, theme, found) {
    const { canvas, context } = this;
    canvas.width = Math.round(projection.width * theme.pixelRatio);
    canvas.height = Math.round(projection.height * theme.pixelRatio);
    context.setTransform(theme.pixelRatio, 0, 0, theme.pixelRatio, 0, 0);
    const taken = new Taken();
    this.boxes = [];
    if (scene.isFlat) this.avoidDots(scene, projection, taken);
    let count = 0;
    for (const part of scene.parts) {
      if (part.labels) count += this.drawPart(scene, part, projection, theme, taken, found.get(part));
    }
    return count;
  }

  /** Labels do not lie on the dots of others. */
  avoidDots(scene, projection, taken) {
    for (const part of scene.parts.filter(({ kind, size }) => kind === "dots" && size > 0)) {
      if (part.points.count > SPARSE) continue;
      const screen = projection.of(scene, part);
      const half = Math.min(part.size / 2, GAP);
      for (let i = 0; i < screen.length; i += 3) {
        const [x, y] = [screen[i], screen[i + 1]];
        taken.add([x - half, y - half, x + half, y + half]);
      }
    }
  }

  drawPart(scene, part, projection, theme, taken, matches) {
    const { labels } = part;
    labels.order ??= spread(part.points.count);
    const screen = projection.of(scene, part);
    const names = arrayOf(scene.buffer, labels.names);
    const sides = arrayOf(scene.buffer, labels.sides);
    const hidden = arrayOf(scene.buffer, labels.hidden);
    const groups = matches ? [(i) => matches[i], (i) => !matches[i]] : [() => true];
    let count = 0;
    let tries = 0;
    for (const [number, isOf] of groups.entries()) {
      for (const i of labels.order) {
        if (count >= labels.most || tries >= TRIES) return count;
        const [x, y, depth] = screen.subarray(3 * i, 3 * i + 3);
        const isOnScreen = x >= 0 && y >= 0 && x <= projection.width && y <= projection.height;
        if (!isOf(i) || !isOnScreen || !(Math.abs(depth) <= 1)) continue;
        ++tries;
        const isFaint = hidden?.[i] || number === 1;
        const color = isFaint ? theme.faintText : theme.text;
        const size = this.sizeOf(scene, part, i, projection, y);
        const side = sides ? sides[i] : 2;
        const text = shownToken(labels.names.texts[names[i]]);
        const gap = Math.max(GAP, part.size / 2 + 2);
        count += this.write(text, { x, y, size, side, gap, color, isBold: Boolean(matches) && !isFaint }, taken);
      }
    }
    return count;
  }

  sizeOf(scene, part, i, projection, y) {
    const { height, size } = part.labels;
    if (!height) return size;
    const places = arrayOf(scene.buffer, part.points);
    const above = new Float32Array(3);
    projection.apply(places[3 * i], places[3 * i + 1] + height, places[3 * i + 2], above, 0);
    return Math.min(part.labels.largest, Math.max(SMALLEST, 0.8 * Math.abs(above[1] - y)));
  }

  /** Writes a text beside a place, if it meets no other; returns how many texts that are. */
  write(text, { x, y, size, side, gap, color, isBold }, taken) {
    const { context } = this;
    context.font = `${isBold ? "bold " : ""}${size}px ${FONT}`;
    const width = context.measureText(text).width;
    const half = 0.55 * size;
    let box;
    if (side === BELOW) box = [x - half, y + gap, x + half, y + gap + width];
    else if (side === LEFT) box = [x - gap - width, y - half, x - gap, y + half];
    else if (side === RIGHT) box = [x + gap, y - half, x + gap + width, y + half];
    else box = [x + GAP, y - GAP - 2 * half, x + GAP + width, y - GAP];
    if (!taken.add(box)) return 0;
    this.boxes.push(box);
    context.fillStyle = color;
    context.textBaseline = "middle";
    context.textAlign = "left";
    if (side === BELOW) {
      context.save();
      context.translate(x, box[3]);
      context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    } else {
      context.fillText(text, box[0], (box[1] + box[3]) / 2);
    }
    return 1;
  }
}
