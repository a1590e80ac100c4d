// The map of a long text: an image pyramid, of which the tiles are drawn that the stage shows, with axes. In the scene
// a key is as far to the right, and a query as far down, as its position.
import { element, page } from "./elements.js";
import { shownToken } from "./labels.js";
import { arrayOf } from "./scene.js";

/** Tiles that are kept as pictures, at least; twice as many as a window shows. */
const KEPT = 96;
/** Room of an axis for numbers and for tokens, and between its marks, in pixels. */
const ROOM = { numbers: { left: 84, below: 42 }, tokens: { left: 130, below: 124 } };
const APART = { left: 36, below: 84 };
const FONT = '12px "DejaVu Sans", "Noto Sans", Verdana, Arial, sans-serif';
/** Tokens are labeled where each is at least this many pixels wide. */
const LETTERS = 15;
/** Letters of the tokens of an axis, and of those of a pixel, at most. */
const OF_AXIS = 14;
const OF_PIXEL = 80;

export const isTiled = ({ kind }) => kind === "tiles";

/** What a scene needs at each side for its axes, rightward and upward, in pixels. */
export const roomOf = ({ parts }) => (parts.some(isTiled) ? [ROOM.numbers.left, ROOM.numbers.below] : [0, 0]);

const clamp = (value, low, high) => Math.max(low, Math.min(value, high));
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

/** Where the first query and key are on the screen, and how many pixels a token has. */
function frameOf({ sides: [keys, queries] }, projection) {
  const ends = new Float64Array(6);
  projection.apply(0, 0, 0, ends, 0);
  projection.apply(keys, -queries, 0, ends, 3);
  return { left: ends[0], top: ends[1], step: (ends[3] - ends[0]) / keys };
}

/** The finest level whose pixels are not smaller than those of the screen. */
function levelFor(part, pixels) {
  const levels = Object.values(part.levels);
  return levels.find(({ cell }) => cell * pixels > 0.999) ?? levels.at(-1);
}

/** The place of a tile among those of its level; undefined without one, since all of it is 0. */
function tileAt(scene, level, row, column, size) {
  level.places ??= new Map(Array.from(arrayOf(scene.buffer, level.numbers), (number, place) => [number, place]));
  return level.places.get(row * Math.ceil(level.dimensions[0] / size) + column);
}

/** A palette as pixels, each a number. */
function colorsOf(palette) {
  const bytes = new Uint8Array((palette.length / 3) * 4).fill(255);
  for (let i = 0; i < palette.length; ++i) bytes[4 * Math.floor(i / 3) + (i % 3)] = palette[i];
  return new Uint32Array(bytes.buffer);
}

function paint(scene, part, level, place) {
  const { size } = part;
  const steps = arrayOf(scene.buffer, level.steps).subarray(place * size * size, (place + 1) * size * size);
  part.colors ??= colorsOf(arrayOf(scene.buffer, part.palette));
  const canvas = element("canvas", { width: size, height: size });
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < steps.length; ++i) pixels[i] = part.colors[steps[i]];
  context.putImageData(image, 0, 0);
  return canvas;
}

function pictureOf(scene, part, level, place) {
  part.pictures ??= new Map();
  const name = `${level.cell} ${place}`;
  const found = part.pictures.get(name) ?? paint(scene, part, level, place);
  part.pictures.delete(name); // the last one that is used is the last one of all
  part.pictures.set(name, found);
  if (part.pictures.size > Math.max(KEPT, 2 * part.shown)) part.pictures.delete(part.pictures.keys().next().value);
  return found;
}

/** Draws a map; part.view says then what is shown: the level, and the key and the query in the middle. */
export function drawTiles(context, scene, part, projection, theme) {
  const { left, top, step } = frameOf(part, projection);
  const { width, height } = projection;
  const [keys, queries] = part.sides;
  const level = levelFor(part, step * theme.pixelRatio);
  const round = (value) => Math.round(value * theme.pixelRatio) / theme.pixelRatio;
  part.view = { level, key: (width / 2 - left) / step, query: (height / 2 - top) / step };
  context.save();
  context.beginPath();
  const ends = [round(left), round(top), round(left + keys * step), round(top + queries * step)];
  context.rect(ends[0], ends[1], ends[2] - ends[0], ends[3] - ends[1]);
  context.clip();
  context.fillStyle = `rgb(${arrayOf(scene.buffer, part.palette).subarray(0, 3).join()})`;
  context.fillRect(0, 0, width, height);
  context.imageSmoothingEnabled = false;
  const side = part.size * level.cell;
  const first = (begin) => Math.max(0, Math.floor(-begin / step / side));
  const last = (begin, room, count) => Math.min(Math.ceil(count / side), Math.ceil((room - begin) / step / side));
  const drawn = [];
  part.shown = (last(top, height, queries) - first(top)) * (last(left, width, keys) - first(left));
  for (let row = first(top); row < last(top, height, queries); ++row) {
    for (let column = first(left); column < last(left, width, keys); ++column) {
      const place = tileAt(scene, level, row, column, part.size);
      if (place === undefined) continue;
      const [x, y] = [round(left + column * side * step), round(top + row * side * step)];
      const [right, bottom] = [round(left + (column + 1) * side * step), round(top + (row + 1) * side * step)];
      context.drawImage(pictureOf(scene, part, level, place), x, y, right - x, bottom - y);
      drawn.push(`${row}-${column}`);
    }
  }
  context.restore();
  drawAxes(context, scene, part, { left, top, step, width, height }, theme);
  Object.assign(page.dataset, { cell: level.cell, tiles: drawn.join(" ") });
}

/** Between two marks of an axis, in tokens: 1, 2 or 5 times a power of ten. */
function between(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((tokens) => tokens >= least);
}

const tokensOf = (part, isQuery) => (isQuery && part.queryTokens) || part.tokens;

function tokenAt(scene, part, isQuery, position) {
  const tokens = tokensOf(part, isQuery);
  return tokens.texts[arrayOf(scene.buffer, tokens)[position]];
}

/** Positions, or tokens where these have room, beside and below what is visible of the map. */
function drawAxes(context, scene, part, { left, top, step, width, height }, theme) {
  const [keys, queries] = part.sides;
  const hasTokens = step >= LETTERS;
  const room = hasTokens ? ROOM.tokens : ROOM.numbers;
  const x = Math.max(left, room.left);
  const y = Math.min(top + queries * step, height - room.below);
  context.save();
  context.fillStyle = `rgba(${theme.background.join()}, 0.9)`;
  context.fillRect(x - room.left, 0, room.left, y);
  context.fillRect(x - room.left, y, width - x + room.left, room.below);
  context.fillStyle = context.strokeStyle = theme.text;
  context.font = FONT;
  context.textBaseline = "middle";
  const write = (text, align, at, isUpright) => {
    context.save();
    context.translate(...at);
    if (isUpright) context.rotate(-Math.PI / 2);
    context.textAlign = align;
    context.fillText(text, 0, 0);
    context.restore();
  };
  const line = (...points) => {
    context.beginPath();
    points.forEach((point) => context.lineTo(...point));
    context.stroke();
  };
  line([x, Math.max(0, top)], [x, y], [Math.min(width, left + keys * step), y]);
  const marks = (isQuery, begin, low, high) => {
    const tokens = hasTokens ? 1 : between((isQuery ? APART.left : APART.below) / step);
    const end = Math.min(isQuery ? queries : keys, (high - begin) / step);
    for (let at = Math.ceil(Math.max(0, low - begin) / step / tokens) * tokens; at < end; at += tokens) {
      const place = begin + (at + 0.5) * step;
      if (place > high) break;
      const text = hasTokens ? cut(shownToken(tokenAt(scene, part, isQuery, at)), OF_AXIS) : at.toLocaleString("en");
      if (isQuery) line([x - 4, place], [x, place]);
      else line([place, y], [place, y + 4]);
      if (isQuery) write(text, "right", [x - 7, place]);
      else if (hasTokens) write(text, "right", [place, y + 7], true);
      else write(text, "center", [place, y + 13]);
    }
  };
  marks(true, top, 0, y);
  marks(false, left, x, width);
  write("Query", "center", [x - room.left + 9, (Math.max(0, top) + y) / 2], true);
  write("Key", "center", [(x + Math.min(width, left + keys * step)) / 2, y + room.below - 8]);
  context.restore();
}

const rowOf = ({ level, point }) => Math.floor(point / level.dimensions[0]);
const columnOf = ({ level, point }) => point % level.dimensions[0];

/** What is at a place of the screen: a pixel of the level that is shown. */
export function pixelAt(part, projection, x, y) {
  const { left, top, step } = frameOf(part, projection);
  const { level } = part.view;
  const [column, row] = [(x - left) / step / level.cell, (y - top) / step / level.cell].map(Math.floor);
  const [keys, queries] = part.sides;
  if (!(x >= left && y >= top && x < left + keys * step && y < top + queries * step)) return null;
  return { part, level, point: row * level.dimensions[0] + column };
}

/** The number of a pixel of the level that is shown: pixels to the right and up from one of any level, or, without one,
from the middle of the stage. */
export function pixelFrom(part, item, right, up) {
  const { level, key, query } = part.view;
  const [columns, rows] = level.dimensions;
  const cell = item?.level?.cell;
  const from = cell ? [(columnOf(item) + 0.5) * cell, (rowOf(item) + 0.5) * cell] : [key, query];
  const column = clamp(Math.floor(from[0] / level.cell) + right, 0, columns - 1);
  return clamp(Math.floor(from[1] / level.cell) - up, 0, rows - 1) * columns + column;
}

/** Where the middle of a pixel is in the scene. */
export function middleOf(item) {
  const { cell } = item.level;
  return [(columnOf(item) + 0.5) * cell, -(rowOf(item) + 0.5) * cell, 0];
}

/** The corners of a pixel in the scene. */
export function cornersOf(item) {
  const [x, y] = middleOf(item);
  const half = item.level.cell / 2;
  return [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([i, j]) => [x + i * half, y + j * half, 0]);
}

/** Steps of the scale are equal ratios; step 0 is 0, and step 1 is what is not above its low end. */
function weightOf({ range: [low, high] }, step) {
  const end = (number) => String(Number((low * (high / low) ** (number / 254)).toPrecision(3)));
  const text = step ? (step > 1 ? `${end(step - 2)} to ${end(step - 1)}` : `up to ${end(0)}`) : "0";
  return text.replaceAll("-", "\u2212");
}

/** The names and values of a pixel. */
export function describePixel(scene, item) {
  const { part, level } = item;
  const { size } = part;
  const [row, column] = [rowOf(item), columnOf(item)];
  const place = tileAt(scene, level, Math.floor(row / size), Math.floor(column / size), size);
  const within = (row % size) * size + (column % size);
  const step = place === undefined ? 0 : arrayOf(scene.buffer, level.steps)[place * size * size + within];
  const side = (name, isQuery, number) => {
    const begin = number * level.cell;
    const end = Math.min(begin + level.cell, part.sides[isQuery ? 1 : 0]);
    const texts = Array.from({ length: Math.min(end - begin, OF_PIXEL) }, (_, i) => tokenAt(scene, part, isQuery, begin + i));
    const joint = texts.some((text) => text.startsWith(" ")) ? "" : " ";
    const positions = [begin, end - 1].map((position) => position.toLocaleString("en"));
    return [
      [level.cell > 1 ? `${name} positions` : `${name} position`, end - begin > 1 ? positions.join(" to ") : positions[0]],
      [level.cell > 1 ? `${name} tokens` : `${name} token`, cut(texts.map(shownToken).join(joint), OF_PIXEL)],
    ];
  };
  return [[part.measure, weightOf(part, step)], ...side("Query", true, row), ...side("Key", false, column)];
}
