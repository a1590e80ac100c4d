// What lies below the pointer.
import { arrayOf } from "./scene.js";
import { offsetsOf } from "./actors.js";
import { ownerOf } from "./attention.js";
import { isTiled, pixelAt } from "./tiles.js";

/** How near the pointer has to be, in pixels. */
const NEAR_POINT = 7;
const NEAR_LINE = 5;
/** Lines of less opacity, of 255, are not seen. */
const SEEN = 10;
/** The width and height of a tile, in pixels, and how many tiles a cell may be in. */
const TILE = 32;
const MOST_TILES = 64;

/** The cells of a part by the tiles of the screen that their bounds lie in: few have to be looked at for a pixel. */
class Tiles {
  constructor(scene, part, screen, width, height) {
    this.columns = Math.max(1, Math.ceil(width / TILE));
    this.rows = Math.max(1, Math.ceil(height / TILE));
    const bounds = this.boundsOf(scene, part, screen);
    this.large = []; // cells that are in too many tiles
    this.ends = new Uint32Array(this.columns * this.rows + 1);
    for (let cell = 0; cell < part.polys.count; ++cell) {
      const at = 4 * cell;
      const columns = bounds[at + 1] - bounds[at] + 1;
      const rows = bounds[at + 3] - bounds[at + 2] + 1;
      if (columns > 0 && rows > 0 && columns * rows > MOST_TILES) {
        this.large.push(cell);
        bounds[at + 1] = bounds[at] - 1;
      }
      for (let row = bounds[at + 2]; row <= bounds[at + 3]; ++row) {
        for (let column = bounds[at]; column <= bounds[at + 1]; ++column) ++this.ends[row * this.columns + column + 1];
      }
    }
    for (let tile = 1; tile < this.ends.length; ++tile) this.ends[tile] += this.ends[tile - 1];
    this.cells = new Uint32Array(this.ends.at(-1));
    const next = this.ends.slice();
    for (let cell = 0; cell < part.polys.count; ++cell) {
      const at = 4 * cell;
      for (let row = bounds[at + 2]; row <= bounds[at + 3]; ++row) {
        for (let column = bounds[at]; column <= bounds[at + 1]; ++column) {
          this.cells[next[row * this.columns + column]++] = cell;
        }
      }
    }
  }

  /** The first and last column and row of tiles of each cell; the last before the first outside of the screen. */
  boundsOf(scene, part, screen) {
    const points = arrayOf(scene.buffer, part.polys.points);
    const offsets = offsetsOf(scene, part.polys);
    const bounds = new Int16Array(4 * part.polys.count);
    for (let cell = 0; cell < part.polys.count; ++cell) {
      let left = Infinity;
      let right = -Infinity;
      let top = Infinity;
      let bottom = -Infinity;
      const end = offsets(cell + 1);
      for (let i = offsets(cell); i < end; ++i) {
        const x = screen[3 * points[i]];
        const y = screen[3 * points[i] + 1];
        if (x < left) left = x;
        if (x > right) right = x;
        if (y < top) top = y;
        if (y > bottom) bottom = y;
      }
      bounds[4 * cell] = Math.min(this.columns, Math.max(0, Math.floor(left / TILE)));
      bounds[4 * cell + 1] = Math.max(-1, Math.min(this.columns - 1, Math.floor(right / TILE)));
      bounds[4 * cell + 2] = Math.min(this.rows, Math.max(0, Math.floor(top / TILE)));
      bounds[4 * cell + 3] = Math.max(-1, Math.min(this.rows - 1, Math.floor(bottom / TILE)));
    }
    return bounds;
  }

  /** Lists of the cells that can be at a pixel; none outside of the screen. */
  at(x, y) {
    const [column, row] = [Math.floor(x / TILE), Math.floor(y / TILE)];
    if (!(column >= 0 && column < this.columns && row >= 0 && row < this.rows)) return [];
    const tile = row * this.columns + column;
    return [this.cells.subarray(this.ends[tile], this.ends[tile + 1]), this.large];
  }
}

/** The camera as a function from the scene to the screen: pixels from the upper left corner, and depth. */
export class Projection {
  /** matrix: from the scene to clipping coordinates, by columns. */
  constructor(matrix, width, height) {
    Object.assign(this, { matrix, width, height });
  }

  /** Writes x, y and depth of a place into an array; depth is NaN behind the eye. */
  apply(x, y, z, result, at) {
    const m = this.matrix;
    const w = m[3] * x + m[7] * y + m[11] * z + m[15];
    result[at] = ((m[0] * x + m[4] * y + m[8] * z + m[12]) / w + 1) * 0.5 * this.width;
    result[at + 1] = (1 - (m[1] * x + m[5] * y + m[9] * z + m[13]) / w) * 0.5 * this.height;
    result[at + 2] = w > 0 ? (m[2] * x + m[6] * y + m[10] * z + m[14]) / w : NaN;
  }

  /** All points of a part on the screen; kept until the camera moves. */
  of(scene, part) {
    this.known ??= new Map();
    if (!this.known.has(part)) {
      const places = arrayOf(scene.buffer, part.points);
      const screen = new Float32Array(places.length);
      for (let i = 0; i < places.length; i += 3) {
        this.apply(places[i], places[i + 1], places[i + 2], screen, i);
      }
      this.known.set(part, screen);
    }
    return this.known.get(part);
  }

  /** The tiles of a part with surfaces; kept until the camera moves. */
  tilesOf(scene, part) {
    this.tiles ??= new Map();
    if (!this.tiles.has(part)) {
      this.tiles.set(part, new Tiles(scene, part, this.of(scene, part), this.width, this.height));
    }
    return this.tiles.get(part);
  }
}

/** The nearest of all points, or only one of them if it is near. */
function nearestPoint(screen, x, y, behind, only) {
  let best = null;
  let least = NEAR_POINT ** 2;
  const [begin, end] = only === undefined ? [0, screen.length] : [3 * only, 3 * only + 3];
  for (let i = begin; i < end; i += 3) {
    const distance = (screen[i] - x) ** 2 + (screen[i + 1] - y) ** 2;
    if (distance < least && !(screen[i + 2] > behind)) {
      least = distance;
      best = i / 3;
    }
  }
  return best;
}

function distanceToSegment(screen, a, b, x, y) {
  const [ax, ay, bx, by] = [screen[3 * a], screen[3 * a + 1], screen[3 * b], screen[3 * b + 1]];
  const length = (bx - ax) ** 2 + (by - ay) ** 2;
  const share = length > 0 ? ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length : 0;
  const t = Math.min(1, Math.max(0, share));
  return (ax + t * (bx - ax) - x) ** 2 + (ay + t * (by - ay) - y) ** 2;
}

function nearestLine(scene, part, screen, x, y, behind) {
  const points = arrayOf(scene.buffer, part.lines.points);
  const offsets = offsetsOf(scene, part.lines);
  const widths = arrayOf(scene.buffer, part.lines.widths);
  const colors = part.cellColors?.width === 4 ? arrayOf(scene.buffer, part.cellColors) : null;
  let best = null;
  let least = NEAR_LINE ** 2;
  for (let cell = 0; cell < part.lines.count; ++cell) {
    if (colors?.[4 * (part.lines.first + cell) + 3] < SEEN) continue;
    for (let i = offsets(cell) + 1; i < offsets(cell + 1); ++i) {
      if (screen[3 * points[i] + 2] > behind) continue;
      // Of lines that cross here, the widest, which is on top.
      const distance = distanceToSegment(screen, points[i - 1], points[i], x, y) - (widths ? widths[cell] : 0);
      if (distance < least) {
        least = distance;
        best = cell;
      }
    }
  }
  return best;
}

/** The nearest cell at a pixel, the corner of it that is closest there, and the depth. */
function frontCell(scene, part, projection, x, y) {
  const screen = projection.of(scene, part);
  const points = arrayOf(scene.buffer, part.polys.points);
  const offsets = offsetsOf(scene, part.polys);
  let best = null;
  for (const cells of projection.tilesOf(scene, part).at(x, y)) {
    for (const cell of cells) {
      const begin = offsets(cell);
      const end = offsets(cell + 1);
      for (let i = begin + 1; i + 1 < end; ++i) {
        const depth = depthInTriangle(screen, points[begin], points[i], points[i + 1], x, y);
        if (depth !== null && !(best && best.depth <= depth)) {
          best = { cell, depth, begin, end };
        }
      }
    }
  }
  if (best) {
    let least = Infinity;
    for (let i = best.begin; i < best.end; ++i) {
      const at = 3 * points[i];
      const distance = (screen[at] - x) ** 2 + (screen[at + 1] - y) ** 2;
      if (distance < least) {
        least = distance;
        best.point = points[i];
      }
    }
  }
  return best;
}

function depthInTriangle(screen, a, b, c, x, y) {
  const [ax, ay] = [screen[3 * a] - x, screen[3 * a + 1] - y];
  const [bx, by] = [screen[3 * b] - x, screen[3 * b + 1] - y];
  const [cx, cy] = [screen[3 * c] - x, screen[3 * c + 1] - y];
  const u = bx * cy - by * cx;
  const v = cx * ay - cy * ax;
  const w = ax * by - ay * bx;
  const isInside = (u >= 0 && v >= 0 && w >= 0) || (u <= 0 && v <= 0 && w <= 0);
  const sum = u + v + w;
  if (!isInside || sum === 0) return null;
  return (u * screen[3 * a + 2] + v * screen[3 * b + 2] + w * screen[3 * c + 2]) / sum;
}

/** The point of an image at a pixel. The image is flat, so three of its corners say where it is. */
function pixelOf(part, projection, x, y) {
  const corner = new Float32Array(9);
  const [left, bottom, z] = part.origin;
  projection.apply(left, bottom, z, corner, 0);
  projection.apply(left + part.spacing[0], bottom, z, corner, 3);
  projection.apply(left, bottom + part.spacing[1], z, corner, 6);
  const [ux, uy, vx, vy] = [corner[3] - corner[0], corner[4] - corner[1], corner[6] - corner[0], corner[7] - corner[1]];
  const area = ux * vy - uy * vx;
  const column = Math.round(((x - corner[0]) * vy - (y - corner[1]) * vx) / area);
  const row = Math.round(((y - corner[1]) * ux - (x - corner[0]) * uy) / area);
  const [columns, rows] = part.dimensions;
  if (!(column >= 0 && column < columns && row >= 0 && row < rows)) return null;
  return row * columns + column;
}

/** What is at a pixel: {part, point} or {part, cell}, or null. Points come before lines, and these before surfaces. */
export function pick(scene, projection, x, y) {
  let front = null;
  const hidesWhatIsBehind = !scene.isFlat;
  for (const part of scene.parts) {
    if (!part.polys?.count || !(part.isPicked || part.owners)) continue;
    const found = frontCell(scene, part, projection, x, y);
    if (found && !(front && front.depth <= found.depth)) front = { part, ...found };
  }
  // What lies on a surface is a little behind it here and there. Lines to residues begin within what is drawn of them.
  const owner = front?.part.owners ? ownerOf(scene, front.part, front.point) : null;
  const behind = front && hidesWhatIsBehind ? front.depth + (owner ? 0 : 0.02) : Infinity;
  if (owner && nearestPoint(projection.of(scene, owner.part), x, y, Infinity, owner.point) !== null) return owner;
  for (const part of scene.parts) {
    if ((part.kind !== "discs" && part.kind !== "dots") || !part.isPicked) continue;
    const point = nearestPoint(projection.of(scene, part), x, y, behind);
    if (point !== null) return { part, point };
  }
  for (const part of scene.parts) {
    if (!part.lines?.count || !part.isPicked) continue;
    const line = nearestLine(scene, part, projection.of(scene, part), x, y, behind);
    if (line !== null) return { part, cell: part.lines.first + line };
  }
  if (front?.part.owners) return owner;
  if (front) return { part: front.part, point: front.point, cell: front.part.polys.first + front.cell };
  for (const part of scene.parts) {
    const point = part.kind === "image" ? pixelOf(part, projection, x, y) : null;
    if (point !== null) return { part, point };
    const pixel = isTiled(part) ? pixelAt(part, projection, x, y) : null;
    if (pixel) return pixel;
  }
  return null;
}
