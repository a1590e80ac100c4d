// The items of a scene, which a person points at, steps to and reads: points, lines and faces with their data.
import { offsetsOf } from "./actors.js";
import { attentionOf } from "./attention.js";
import { shownToken } from "./labels.js";
import { arrayOf, exact, written } from "./scene.js";
import { cornersOf, describePixel, isTiled, middleOf } from "./tiles.js";

/** The radius of the mark around a point, in pixels, at least. */
const RADIUS = 9;

const isEmpty = (arrays) => Object.keys(arrays ?? {}).length === 0;

/** The sets of items of a scene, those that lie on top first: {part, kind, first, count, arrays}. */
export function setsOf(scene) {
  const sets = [];
  const add = (rank, part, kind, arrays, count, first = 0) => {
    if (count && !isEmpty(arrays)) sets.push({ rank, part, kind, first, count, arrays });
  };
  for (const part of scene.parts.filter(({ isPicked }) => isPicked)) {
    if (isTiled(part)) {
      const count = () => part.view.level.dimensions[0] * part.view.level.dimensions[1];
      sets.push({ rank: 3, part, kind: "Pixel", first: 0, get count() { return count(); }, arrays: {} });
    } else if (part.kind === "image") add(3, part, "Point", part.pointArrays, part.dimensions[0] * part.dimensions[1]);
    else if (part.kind !== "mesh") add(0, part, "Point", part.pointArrays, part.points.count);
    else if (isEmpty(part.cellArrays)) add(2, part, "Point", part.pointArrays, part.points.count);
    else {
      if (part.lines) add(1, part, "Line", part.cellArrays, part.lines.count, part.lines.first);
      if (part.polys) add(2, part, "Face", part.cellArrays, part.polys.count, part.polys.first);
    }
  }
  return sets.sort((a, b) => a.rank - b.rank);
}

/** The tables that a scene has beside its items. */
export function tablesOf(scene) {
  const set = ({ name, count, arrays }) => ({ part: { name }, kind: "Row", first: 0, count, arrays });
  return (scene.tables ?? []).map(set);
}

/** "Token Pairs: 25 points" */
export function titleOf({ part, kind, count }) {
  return `${part.name}: ${count.toLocaleString("en")} ${kind.toLowerCase()}${count === 1 ? "" : "s"}`;
}

/** The item with a number in its set, as pick() returns items. */
export function itemOf({ part, kind, first }, number) {
  if (kind === "Pixel") return { part, level: part.view.level, point: number };
  return kind === "Point" ? { part, point: number } : { part, cell: first + number };
}

/** The names and values of an item. */
export function describe(scene, item) {
  const { part, point, cell } = item;
  if (isTiled(part)) return describePixel(scene, item);
  const rows = [];
  const add = (arrays, item) => {
    for (const [name, array] of Object.entries(arrays ?? {})) {
      rows.push([name, shownToken(written(scene.buffer, array, item))]);
    }
  };
  if (cell !== undefined) add(part.cellArrays, cell);
  if (point !== undefined) add(part.pointArrays, point);
  if (part.attention) {
    const { name, value } = attentionOf(scene, part);
    if (!Number.isNaN(value(point))) rows.push([name, String(Number(value(point).toPrecision(3)))]);
  }
  return rows;
}

/** Where a point of a part is. */
export function placeOf(scene, part, point) {
  if (part.kind !== "image") return [...arrayOf(scene.buffer, part.points).subarray(3 * point, 3 * point + 3)];
  const [column, row] = [point % part.dimensions[0], Math.floor(point / part.dimensions[0])];
  const [x, y, z] = part.origin;
  return [x + column * part.spacing[0], y + row * part.spacing[1], z];
}

/** The columns of the table of a set: {name, isText, shown(number), exact(number)}. */
export function columnsOf(scene, set) {
  const columns = [{ name: set.kind, isText: false, shown: String, exact: String }];
  for (const [name, array] of Object.entries(set.arrays)) {
    for (let c = 0; c < array.width; ++c) {
      columns.push({
        name: array.width > 1 ? `${name}:${c}` : name,
        isText: Boolean(array.texts),
        shown: (number) => shownToken(written(scene.buffer, array, set.first + number, c)),
        exact: (number) => exact(scene.buffer, array, set.first + number, c),
      });
    }
  }
  const axes = set.kind !== "Point" ? "" : scene.isFlat ? "xy" : "xyz";
  [...axes].forEach((name, axis) => {
    const at = (number) => Math.fround(placeOf(scene, set.part, number)[axis]);
    columns.push({
      name,
      isText: false,
      shown: (number) => String(Number(at(number).toPrecision(4))).replace("-", "\u2212"),
      exact: (number) => String(at(number)),
    });
  });
  return columns;
}

/** An item on the screen: the corners of its outline, and the radius around its only corner if it is a point. */
export function outlineOf(scene, projection, item) {
  const { part, point, cell } = item;
  const at = (place) => {
    const shown = new Float64Array(3);
    projection.apply(...place, shown, 0);
    return [shown[0], shown[1]];
  };
  if (cell !== undefined && !(point !== undefined && isEmpty(part.cellArrays))) {
    const isFace = part.polys && cell >= part.polys.first && cell < part.polys.first + part.polys.count;
    const cells = isFace ? part.polys : part.lines;
    const offsets = offsetsOf(scene, cells);
    const points = arrayOf(scene.buffer, cells.points).subarray(offsets(cell - cells.first), offsets(cell - cells.first + 1));
    return { corners: [...points].map((corner) => at(placeOf(scene, part, corner))), isClosed: Boolean(isFace) };
  }
  if (isTiled(part)) {
    const corners = cornersOf(item).map(at);
    const isLarge = Math.abs(corners[1][0] - corners[0][0]) >= RADIUS;
    return isLarge ? { corners, isClosed: true } : { corners: [at(middleOf(item))], radius: RADIUS };
  }
  const place = placeOf(scene, part, point);
  if (part.kind === "image") {
    const [dx, dy] = part.spacing.map((step) => step / 2);
    const corner = ([x, y]) => at([place[0] + x * dx, place[1] + y * dy, place[2]]);
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(corner);
    if (Math.abs(corners[1][0] - corners[0][0]) >= RADIUS) return { corners, isClosed: true };
  }
  const middle = at(place);
  let radius = RADIUS;
  if (part.kind === "discs") {
    const size = part.radii ? arrayOf(scene.buffer, part.radii)[point] : part.radius;
    for (const axis of [0, 1, 2]) {
      const [x, y] = at(place.map((value, i) => value + (i === axis ? size : 0)));
      radius = Math.max(radius, Math.hypot(x - middle[0], y - middle[1]) + 2);
    }
  } else if (part.kind === "dots") radius = Math.max(radius, part.size / 2 + 3);
  return { corners: [middle], radius };
}
