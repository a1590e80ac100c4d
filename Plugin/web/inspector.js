// The box with the data of an item: of the one below the pointer, of one that was tapped, or of one that the keys
// stepped to. A mark in the scene shows which item it is.
import { describe, itemOf, outlineOf, setsOf, titleOf } from "./items.js";
import { byId, element, page } from "./elements.js";
import { Occupied, placed } from "./placing.js";
import { isTiled, pixelFrom } from "./tiles.js";

/** A tap moves less, in pixels. */
const SLOP = 10;

export class Inspector {
  /** tapped: called after a tap on an item. */
  constructor(viewer, tapped) {
    this.viewer = viewer;
    this.tapped = tapped;
    this.box = byId("box");
    this.mark = byId("mark");
    this.sets = [];
    const { stage } = viewer;
    // Before the scene turns by them.
    const listen = (name, react) => stage.addEventListener(name, react, { capture: true });
    listen("pointermove", (event) => this.request(event));
    listen("pointerdown", (event) => this.press(event));
    listen("pointerup", (event) => this.release(event));
    listen("pointercancel", () => { this.pressed = null; });
    stage.addEventListener("pointerleave", () => this.leave("pointer"));
    stage.addEventListener("focus", () => {
      if (stage.matches(":focus-visible") && this.by !== "tap") this.step(0);
    });
    stage.addEventListener("blur", () => this.leave("keys"));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") this.hide(); });
    viewer.onDrawn = () => this.follow();
  }

  /** The items of the scene that is shown. */
  begin(scene) {
    this.sets = setsOf(scene);
    this.set = 0;
    this.number = 0;
    this.hide();
  }

  at(event) {
    const { left, top } = this.viewer.stage.getBoundingClientRect();
    const { clientLeft, clientTop } = this.viewer.stage;
    return this.viewer.at(event.clientX - left - clientLeft, event.clientY - top - clientTop);
  }

  request(event) {
    if (event.pointerType !== "mouse" || event.buttons || (this.item && this.by !== "pointer")) return;
    const isWaiting = this.event;
    this.event = this.last = event;
    if (isWaiting) return;
    requestAnimationFrame(() => {
      const last = this.event;
      this.event = null;
      if (!this.item || this.by === "pointer") this.show(this.at(last), "pointer");
    });
  }

  press(event) {
    const isFirst = event.isPrimary && !event.button;
    this.pressed = isFirst ? [event.clientX, event.clientY] : null;
    if (this.by === "pointer") this.hide();
  }

  /** Shows what was tapped; it stays until a tap elsewhere. */
  release(event) {
    const began = this.pressed;
    this.pressed = null;
    if (!began || !event.isPrimary || Math.hypot(event.clientX - began[0], event.clientY - began[1]) > SLOP) return;
    this.show(this.at(event), "tap");
    if (!this.item) return;
    this.announce(this.item.part.name);
    this.tapped();
  }

  leave(by) {
    if (this.by === by) this.hide();
  }

  /** The number of the next item, of those that a search found; direction: 0 stays. */
  next(set, from, direction) {
    const found = set.kind === "Point" ? this.viewer.found.get(set.part) : null;
    const isWanted = found?.some((value) => value) ? (number) => found[number] : () => true;
    const move = direction || 1;
    let number = direction ? from + direction : from;
    for (let tries = 0; tries < set.count; ++tries, number += move) {
      number = (number + set.count) % set.count;
      if (isWanted(number)) return number;
    }
    return from;
  }

  /** Steps to another item: right and up in an image, else to the one before or after. */
  step(right, up = 0) {
    const set = this.sets[this.set];
    if (!set) return;
    if (isTiled(set.part)) {
      this.number = pixelFrom(set.part, this.item, right, up);
    } else if (set.part.kind === "image" && up) {
      const number = this.number + up * set.part.dimensions[0];
      if (number >= 0 && number < set.count) this.number = number;
    } else {
      this.number = this.next(set, this.number, right - up);
    }
    this.reach(set);
  }

  /** Steps to the first or last item. */
  end(isLast) {
    const set = this.sets[this.set];
    if (!set) return;
    this.number = isLast ? this.next(set, 0, -1) : this.next(set, 0, 0);
    this.reach(set);
  }

  /** Steps to the items of another kind. */
  change(direction) {
    if (!this.sets.length) return;
    this.set = (this.set + direction + this.sets.length) % this.sets.length;
    this.number = 0;
    this.step(0);
  }

  reach(set) {
    const item = itemOf(set, this.number);
    const isSeen = ([x, y]) => x >= 0 && y >= 0 && x <= this.viewer.stage.clientWidth && y <= this.viewer.stage.clientHeight;
    if (!outlineOf(this.viewer.scene, this.viewer.shownProjection, item).corners.some(isSeen)) this.viewer.reveal(item);
    this.show(item, "keys");
    this.announce(`${titleOf(set)}, number ${(this.number + 1).toLocaleString("en")}`);
  }

  /** Shows the item of a row of the table, which stays until a tap elsewhere. */
  choose(set, number) {
    Object.assign(this, { set, number });
    this.reach(this.sets[set]);
    this.by = "tap";
  }

  announce(title) {
    byId("announced").textContent = `${title}. ${page.dataset.item}`;
  }

  show(item, by) {
    const rows = item ? describe(this.viewer.scene, item) : [];
    if (!rows.length) {
      this.hide();
      return;
    }
    Object.assign(this, { item, by });
    const list = rows.flatMap(([name, value]) => [
      element("dt", { textContent: name }),
      element("dd", { textContent: value }),
    ]);
    this.box.replaceChildren(element("strong", { textContent: item.part.name }), element("dl", {}, ...list));
    this.box.hidden = false;
    this.box.classList.remove("wide");
    this.box.classList.toggle("wide", this.box.scrollHeight > this.box.clientHeight);
    page.dataset.item = rows.map((row) => row.join(": ")).join("; ");
    this.follow();
  }

  hide() {
    this.item = this.by = null;
    this.box.hidden = true;
    this.mark.width = 0;
    byId("announced").textContent = "";
    delete page.dataset.item;
  }

  /** Puts the mark and the box where the item is now. */
  follow() {
    if (!this.item) return;
    const { part, level } = this.item;
    if (this.by === "pointer" && isTiled(part) && level !== part.view.level) {
      this.show(this.at(this.last), "pointer"); // the finer or coarser pixel that is there now
      return;
    }
    const { scene, shownProjection: projection, labels } = this.viewer;
    const outline = outlineOf(scene, projection, this.item);
    const [xs, ys] = [0, 1].map((axis) => outline.corners.map((corner) => corner[axis]));
    const around = outline.radius ?? 0;
    const bounds = [Math.min(...xs) - around, Math.min(...ys) - around, Math.max(...xs) + around, Math.max(...ys) + around];
    projection.occupied ??= new Occupied(scene, projection, labels.boxes);
    const size = { width: this.box.offsetWidth, height: this.box.offsetHeight };
    const { left, top } = placed(size, bounds, projection.occupied, projection);
    Object.assign(this.box.style, { left: `${left}px`, top: `${top}px` });
    this.draw(outline, projection, [left, top, left + size.width, top + size.height]);
  }

  /** Draws the mark: the outline in two colors, so that it is seen on any, and a line to the box. */
  draw({ corners, radius, isClosed }, { width, height }, box) {
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.mark, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const context = this.mark.getContext("2d");
    context.scale(ratio, ratio);
    context.lineJoin = "round";
    const [x, y] = [0, 1].map((axis) => corners.reduce((sum, corner) => sum + corner[axis], 0) / corners.length);
    const end = [Math.min(Math.max(x, box[0]), box[2]), Math.min(Math.max(y, box[1]), box[3])];
    const length = Math.hypot(end[0] - x, end[1] - y) || 1;
    const begin = radius ? [x + ((end[0] - x) * radius) / length, y + ((end[1] - y) * radius) / length] : [x, y];
    const paths = [new Path2D(), new Path2D()];
    if (radius) paths[0].arc(x, y, radius, 0, 2 * Math.PI);
    else corners.forEach((corner, i) => (i ? paths[0].lineTo(...corner) : paths[0].moveTo(...corner)));
    if (isClosed) paths[0].closePath();
    paths[1].moveTo(...begin);
    paths[1].lineTo(...end);
    const style = getComputedStyle(page);
    for (const [color, wide] of [["--page", 3], ["--accent", 0]]) {
      context.strokeStyle = style.getPropertyValue(color);
      paths.forEach((path, i) => {
        context.lineWidth = wide + (i ? 1 : 3);
        context.stroke(path);
      });
    }
  }
}
