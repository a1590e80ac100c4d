// The head that the scenes of a corpus show: chosen in the list, at an item, in the table or by the address.
import { byId, element } from "./elements.js";
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
    this.names = new Map();
    for (const scene of scenes.filter(({ heads }) => heads)) {
      const own = { ...scene };
      const ofHead = ({ layer, head, ...other }) => [keyOf(layer, head), other.parts ? other : own];
      this.shown.set(scene, new Map(scene.heads.map(ofHead)));
      for (const { layer, head, parts } of scene.heads) {
        this.names.set(keyOf(layer, head), `${layer}.${head}`);
        if (!parts) this.first ??= keyOf(layer, head);
      }
    }
    this.list.replaceChildren(...[...this.names].map(([value, textContent]) => element("option", { value, textContent })));
    this.list.addEventListener("change", () => choose(this.list.value));
    byId("choosing").hidden = !this.names.size;
    this.choose(null);
  }

  /** Lets all scenes of heads show one, by its key; null or one that is not known: the first one. */
  choose(key) {
    this.chosen = this.names.has(key) ? key : null;
    const shown = this.chosen ?? this.first;
    if (!shown) return;
    this.list.value = shown;
    document.documentElement.dataset.head = shown;
    for (const [scene, heads] of this.shown) Object.assign(scene, heads.get(shown));
  }

  /** What the address asks for, or null. */
  asked(parameters) {
    return [...parameters.keys()].find((name) => ADDRESS.test(name) && this.names.has(name)) ?? null;
  }

  /** The key of the head that an item is, or null. */
  of(scene, { part, point, cell }) {
    const ofCell = cell !== undefined && part.cellArrays?.Layer;
    const { Layer: layer, Head: head } = (ofCell ? part.cellArrays : part.pointArrays) ?? {};
    if (!layer || !head || layer.texts || head.texts) return null;
    const at = (array) => arrayOf(scene.buffer, array)[(ofCell ? cell : point) * array.width];
    const key = keyOf(at(layer), at(head));
    return this.names.has(key) ? key : null;
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
