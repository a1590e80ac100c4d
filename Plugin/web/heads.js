// The head that the scenes of a recording or a corpus show: chosen in the list, at an item, in the table or by the
// address.
import { byId, element, page } from "./elements.js";
import { itemOf } from "./items.js";
import { arrayOf } from "./scene.js";

/** How the address names a head: by its layer and its number. */
const ADDRESS = /^\d+-\d+$/;

const keyOf = (layer, head) => `${layer}-${head}`;

export class Heads {
  /** choose: shows a head that is chosen in the list. */
  constructor(scenes, choose) {
    this.list = byId("head");
    this.shown = new Map(); // of each scene of heads, what it shows of each of them
    this.firsts = new Map(); // the head that a scene shows first
    this.names = new Map();
    for (const scene of scenes.filter(({ heads }) => heads)) {
      const own = { ...scene };
      const ofHead = ({ layer, head, ...other }) => [keyOf(layer, head), other.parts ? other : own];
      this.shown.set(scene, new Map(scene.heads.map(ofHead)));
      for (const { layer, head, parts } of scene.heads) {
        this.names.set(keyOf(layer, head), `${layer}.${head}`);
        if (!parts) this.firsts.set(scene, keyOf(layer, head));
      }
    }
    this.list.addEventListener("change", () => choose(this.list.value));
    this.choose(null);
  }

  /** Lets all scenes that have a head show it, by its key; the others, or all without one, show their first. */
  choose(key) {
    this.chosen = this.names.has(key) ? key : null;
    for (const [scene, heads] of this.shown) Object.assign(scene, heads.get(this.keyOf(scene)));
  }

  /** The key of the head that a scene shows, or marks. */
  keyOf(scene) {
    const heads = this.shown.get(scene) ?? this.names;
    return heads.has(this.chosen) ? this.chosen : (this.firsts.get(scene) ?? this.firsts.values().next().value);
  }

  /** Lists the heads of a scene; of one that has heads as items, those of all scenes. */
  offer(scene, sets) {
    const heads = this.shown.get(scene) ?? (this.hasItems(scene, sets) ? this.names : new Map());
    if (heads !== this.offered) {
      const option = (value) => element("option", { value, textContent: this.names.get(value) });
      this.list.replaceChildren(...[...heads.keys()].map(option));
      this.offered = heads;
    }
    byId("choosing").hidden = !heads.size;
    delete page.dataset.head;
    if (heads.size) this.list.value = page.dataset.head = this.keyOf(scene);
  }

  /** What the address asks for, or null. */
  asked(parameters) {
    return [...parameters.keys()].find((name) => ADDRESS.test(name) && this.names.has(name)) ?? null;
  }

  /** Whether items of a scene are heads. */
  hasItems(scene, sets) {
    return sets.some((set) => set.arrays.Layer && this.of(scene, itemOf(set, 0)));
  }

  /** The key of the head that an item is, one of several in its scene, or null. */
  of(scene, { part, point, cell }) {
    const ofCell = cell !== undefined && part.cellArrays?.Layer;
    const { Layer: layer, Head: head } = (ofCell ? part.cellArrays : part.pointArrays) ?? {};
    if (scene.heads || !layer || !head || layer.texts || head.texts) return null;
    const numbers = [layer, head].map((array) => arrayOf(scene.buffer, array));
    part.hasHeads ??= numbers.some((values) => values.some((value) => value !== values[0]));
    const key = keyOf(...numbers.map((values) => values[ofCell ? cell : point]));
    return part.hasHeads && this.names.has(key) ? key : null;
  }

  /** The number of the item of a set that is the chosen head; -1 if there is none. */
  find(scene, set) {
    if (!this.chosen || !set.arrays.Layer) return -1;
    for (let number = 0; number < set.count; ++number) {
      if (this.of(scene, itemOf(set, number)) === this.chosen) return number;
    }
    return -1;
  }
}
