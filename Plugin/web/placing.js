// Where a box of text goes so that it covers neither what it is about nor, where there is room, the scene.
import { arrayOf } from "./scene.js";
import { offsetsOf } from "./actors.js";
import { isTiled } from "./tiles.js";

const TILE = 16;
/** Between a box and its item, in pixels. */
const GAP = 14;
const MARGIN = 4;

const overlap = (a, b) => {
  const width = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
  const height = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  return width > 0 && height > 0 ? width * height : 0;
};

/** The tiles of the screen where a scene shows something. */
export class Occupied {
  constructor(scene, projection, labels) {
    this.columns = Math.ceil(projection.width / TILE);
    this.rows = Math.ceil(projection.height / TILE);
    this.tiles = new Uint8Array(this.columns * this.rows);
    for (const part of scene.parts) {
      if (part.kind === "image") this.addImage(part, projection);
      else if (isTiled(part)) this.addPlane([0, -part.sides[1], 0], [part.sides[0], 0, 0], projection);
      else this.addMesh(scene, part, projection);
    }
    for (const box of labels) this.addBox(box);
  }

  add(x, y) {
    const [column, row] = [Math.floor(x / TILE), Math.floor(y / TILE)];
    if (column >= 0 && column < this.columns && row >= 0 && row < this.rows) this.tiles[row * this.columns + column] = 1;
  }

  addBox([left, top, right, bottom]) {
    for (let y = Math.max(0, top); y < Math.min(bottom, this.rows * TILE) + TILE; y += TILE) {
      for (let x = Math.max(0, left); x < Math.min(right, this.columns * TILE) + TILE; x += TILE) {
        this.add(Math.min(x, right), Math.min(y, bottom));
      }
    }
  }

  addImage(part, projection) {
    const [x, y, z] = part.origin;
    const end = [x + part.spacing[0] * part.dimensions[0], y + part.spacing[1] * part.dimensions[1], z];
    this.addPlane(part.origin, end, projection);
  }

  addPlane(low, high, projection) {
    const ends = new Float64Array(6);
    projection.apply(...low, ends, 0);
    projection.apply(...high, ends, 3);
    this.addBox([Math.min(ends[0], ends[3]), Math.min(ends[1], ends[4]), Math.max(ends[0], ends[3]), Math.max(ends[1], ends[4])]);
  }

  /** The points of a part, and the edges of its lines and faces. */
  addMesh(scene, part, projection) {
    const screen = projection.of(scene, part);
    for (let i = 0; i < screen.length; i += 3) this.add(screen[i], screen[i + 1]);
    for (const cells of [part.lines, part.polys]) {
      if (!cells?.count) continue;
      const points = arrayOf(scene.buffer, cells.points);
      const offsets = offsetsOf(scene, cells);
      for (let cell = 0; cell < cells.count; ++cell) {
        for (let i = offsets(cell) + 1; i < offsets(cell + 1); ++i) this.addEdge(screen, points[i - 1], points[i]);
      }
    }
  }

  addEdge(screen, a, b) {
    const [ax, ay, bx, by] = [screen[3 * a], screen[3 * a + 1], screen[3 * b], screen[3 * b + 1]];
    const steps = Math.min(200, Math.ceil(Math.hypot(bx - ax, by - ay) / TILE));
    for (let k = 1; k < steps; ++k) this.add(ax + ((bx - ax) * k) / steps, ay + ((by - ay) * k) / steps);
  }

  /** How many tiles are taken in a box. */
  within([left, top, right, bottom]) {
    let count = 0;
    for (let row = Math.max(0, Math.floor(top / TILE)); row < Math.min(this.rows, bottom / TILE); ++row) {
      for (let column = Math.max(0, Math.floor(left / TILE)); column < Math.min(this.columns, right / TILE); ++column) {
        count += this.tiles[row * this.columns + column];
      }
    }
    return count;
  }
}

/** The left and top of a box of a size beside an item's bounds [left, top, right, bottom]. */
export function placed({ width, height }, bounds, occupied, stage) {
  const clamp = (value, size, all) => Math.max(MARGIN, Math.min(value, all - size - MARGIN));
  const [left, top, right, bottom] = bounds;
  const [middle, center] = [(left + right) / 2, (top + bottom) / 2];
  const columns = [right + GAP, left - GAP - width, middle - width / 2, MARGIN, stage.width];
  const rows = [bottom + GAP, top - GAP - height, center - height / 2, MARGIN, stage.height];
  let best = null;
  for (const x of columns) {
    for (const y of rows) {
      const [boxLeft, boxTop] = [clamp(x, width, stage.width), clamp(y, height, stage.height)];
      const box = [boxLeft, boxTop, boxLeft + width, boxTop + height];
      const near = [left - GAP / 2, top - GAP / 2, right + GAP / 2, bottom + GAP / 2];
      const distance = Math.hypot(boxLeft + width / 2 - middle, boxTop + height / 2 - center);
      const cost = 1000 * overlap(box, near) + TILE * occupied.within(box) + distance;
      if (!best || cost < best.cost) best = { cost, left: boxLeft, top: boxTop };
    }
  }
  return best;
}
