// The data of a page: arrays in one compressed block, described by JSON.

const TYPES = {
  i1: Int8Array,
  u1: Uint8Array,
  i2: Int16Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
};

function bytesOf(base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The bytes of all arrays. */
export async function inflated(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** The array that a reference {type, at, count, width, differences} describes; it is decoded once. */
export function arrayOf(buffer, reference) {
  if (!reference) return null;
  if (!reference.values) {
    const values = new TYPES[reference.type](buffer, reference.at, reference.count * reference.width);
    if (reference.differences) {
      for (let i = 1; i < values.length; ++i) values[i] += values[i - 1];
    }
    reference.values = values;
  }
  return reference.values;
}

const isReal = ({ type }) => type === "f4" || type === "f8";

/** The value of an item in an array of numbers or texts, or one component of it, for a person to read. */
export function written(buffer, array, item, component) {
  const values = arrayOf(buffer, array);
  if (array.texts) return array.texts[values[item]];
  const at = item * array.width;
  const shown = component === undefined ? values.subarray(at, at + array.width) : [values[at + component]];
  const digits = (value) => String(isReal(array) ? Number(value.toPrecision(4)) : value);
  return Array.from(shown, digits).join(", ").replaceAll("-", "\u2212");
}

/** A component of an item with all its digits: as few as read back as the same number. */
export function exact(buffer, array, item, component) {
  const values = arrayOf(buffer, array);
  if (array.texts) return array.texts[values[item]];
  const value = values[item * array.width + component];
  for (let digits = 6; array.type === "f4" && digits < 9; ++digits) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

/** What a search looks at of an item: its text, or the numbers of its tokens. */
export function searched(buffer, part, item) {
  return part.search
    .map((name) => {
      const array = part.pointArrays[name];
      const values = arrayOf(buffer, array);
      return array.texts ? array.texts[values[item]] : String(values[item]);
    })
    .join(" ");
}

/** Which points of a part have a text, in upper or lower case; null without a text or with no tokens. */
export function matches(buffer, part, text) {
  if (!text || !part.search?.length) return null;
  const sought = text.toLowerCase();
  const found = new Uint8Array(part.points.count);
  const known = new Map();
  for (let i = 0; i < found.length; ++i) {
    const whole = searched(buffer, part, i);
    if (!known.has(whole)) known.set(whole, whole.toLowerCase().includes(sought) ? 1 : 0);
    found[i] = known.get(whole);
  }
  return found;
}
