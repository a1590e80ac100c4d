// The attention of a residue as the colors of a structure. The residue is chosen at an item of any scene, or by the
// address; without one the colors are the mean over all.
import { arrayOf } from "./scene.js";

/** The part of a scene whose points are residues with attention; undefined without one. */
export const residuesOf = (scene) => scene.parts.find(({ attention }) => attention);

/** The position in the sequence of the token that an item is, or of its query; null if it is none. */
export function positionOf(scene, { part, point, cell }) {
  const arrays = (cell !== undefined ? part.cellArrays : part.pointArrays) ?? {};
  const array = arrays.Position ?? arrays.Query;
  if (!array || array.texts) return null;
  const position = arrayOf(scene.buffer, array)[cell ?? point];
  return position >= 0 ? position : null;
}

/** What the points of the residues have from the query: {name, values}, NaN where nothing is known. */
export function attentionOf(scene, part) {
  const { positions, rows, matrix, highest, query } = part.attention;
  const count = positions.length;
  const row = positions.indexOf(query ?? -1);
  const from = row < 0 ? count : row;
  const levels = arrayOf(scene.buffer, matrix);
  const of = arrayOf(scene.buffer, rows);
  const value = (i) => (of[i] < 0 ? NaN : (levels[from * count + of[i]] / 65535) * highest[from]);
  const at = of.indexOf(row);
  const token = row < 0 || at < 0 ? "" : part.pointArrays.Token.texts[arrayOf(scene.buffer, part.pointArrays.Token)[at]];
  return { at, highest: highest[from], name: row < 0 ? "Mean attention" : `Attention of ${token || query}`, value };
}

/** Gives the residues of a scene, and what is drawn of them, the colors of a query; null: of the mean. */
export function paint(scene, query) {
  const part = residuesOf(scene);
  if (!part) return [];
  part.attention.query = query;
  const { at, highest, name, value } = attentionOf(scene, part);
  const colors = arrayOf(scene.buffer, part.attention.colors);
  const last = colors.length / 3 - 1;
  const colorOf = (i) => {
    if (i === at && at >= 0) return part.attention.mark;
    const share = i < 0 ? NaN : value(i) / (highest || 1);
    if (Number.isNaN(share)) return part.attention.none;
    const level = Math.round(share * last);
    return colors.subarray(3 * level, 3 * level + 3);
  };
  const owned = scene.parts.filter((other) => other === part || other.owners);
  for (const other of owned) {
    const owners = other.owners ? arrayOf(scene.buffer, other.owners) : null;
    const values = new Uint8Array(3 * other.points.count);
    for (let i = 0; i < other.points.count; ++i) values.set(colorOf(owners ? owners[i] : i), 3 * i);
    other.pointColors = { type: "u1", width: 3, count: other.points.count, values };
  }
  const legend = scene.legends.find(({ isAttention }) => isAttention);
  if (legend) Object.assign(legend, { title: name, range: [0, highest] });
  return owned;
}

/** The residue that a point of another part belongs to, as pick() returns items; null if it is none. */
export function ownerOf(scene, part, point) {
  const owner = arrayOf(scene.buffer, part.owners)[point];
  return owner < 0 ? null : { part: residuesOf(scene), point: owner };
}
