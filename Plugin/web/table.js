// The data of a scene as a table, by pages, and all of it as a file.
import { byId, element } from "./elements.js";
import { columnsOf, setsOf, tablesOf, titleOf } from "./items.js";

/** Rows of a page. */
const ROWS = 100;

/** A text as a cell of CSV. A spreadsheet takes one that begins with these characters as a formula, unless an apostrophe
comes first. */
const quoted = (text) => `"${text.replace(/^[=+\-@\t\r\n]/, "'$&").replaceAll('"', '""')}"`;

export class Table {
  /** choose: shows an item in the scene, by the number of its set and its own. find: the number of the item of a
  set that is marked, or -1. */
  constructor(choose, find) {
    this.show = choose;
    this.find = find;
    this.opener = byId("table");
    this.opener.addEventListener("click", () => this.open(byId("rows").hidden));
    byId("kind").addEventListener("change", (event) => this.choose(Number(event.target.value)));
    byId("previous").addEventListener("click", () => this.turn(this.from - ROWS));
    byId("next").addEventListener("click", () => this.turn(this.from + ROWS));
    byId("csv").addEventListener("click", () => this.download());
  }

  /** The table of the scene that is shown. */
  begin(scene) {
    const kept = this.scene === scene ? byId("kind").selectedIndex : 0;
    this.scene = scene;
    const hasData = ({ arrays }) => Object.keys(arrays).length > 0;
    this.sets = [...setsOf(scene).filter(hasData), ...tablesOf(scene)];
    this.opener.hidden = !this.sets.length;
    const option = (set, value) => element("option", { textContent: titleOf(set), value });
    byId("kind").replaceChildren(...this.sets.map(option));
    byId("kind").selectedIndex = kept < this.sets.length ? kept : 0;
    this.open(!byId("rows").hidden && this.sets.length > 0);
  }

  open(isOpen) {
    byId("rows").hidden = !isOpen;
    this.opener.setAttribute("aria-expanded", isOpen);
    if (isOpen) this.choose(Number(byId("kind").value));
  }

  choose(number) {
    this.set = this.sets[number];
    this.columns = columnsOf(this.scene, this.set);
    byId("table-caption").textContent = `${this.scene.title}. ${titleOf(this.set)}`;
    const heads = this.columns.map(({ name }) => element("th", { scope: "col", textContent: name }));
    byId("heads").replaceChildren(...heads);
    this.mark();
  }

  /** Turns to the page with the marked item, if there is one. */
  mark() {
    if (byId("rows").hidden) return;
    this.marked = this.find(this.scene, this.set);
    this.turn(this.marked < 0 ? 0 : this.marked - (this.marked % ROWS));
  }

  /** Shows the page that begins with a row. */
  turn(from) {
    this.from = from;
    const end = Math.min(from + ROWS, this.set.count);
    const rows = Array.from({ length: end - from }, (_, i) => {
      const cells = this.columns.map(({ shown, isText }, column) => {
        const className = isText ? "text" : "";
        if (column) return element("td", { textContent: shown(from + i), className });
        if (this.set.kind === "Row") return element("th", { scope: "row", textContent: shown(from + i), className });
        const button = element("button", { type: "button", textContent: shown(from + i), title: "Show in the scene" });
        button.addEventListener("click", () => this.show(this.sets.indexOf(this.set), from + i));
        return element("th", { scope: "row", className }, button);
      });
      const row = element("tr", {}, ...cells);
      if (from + i === this.marked) row.setAttribute("aria-current", "true");
      return row;
    });
    byId("cells").replaceChildren(...rows);
    byId("sheet").scrollTop = 0;
    const written = [from + 1, end, this.set.count].map((value) => value.toLocaleString("en"));
    byId("shown-rows").textContent = `${written[0]} to ${written[1]} of ${written[2]}`;
    this.limit("previous", from === 0, "next");
    this.limit("next", end === this.set.count, "previous");
  }

  /** Enables a button; if it has the focus when it no longer can be used, the other one gets it. */
  limit(name, isUsed, other) {
    const hasFocus = document.activeElement === byId(name);
    if (isUsed && hasFocus) {
      byId(other).disabled = false;
      byId(other).focus();
    }
    byId(name).disabled = isUsed;
  }

  /** All rows, with all digits, as CSV. */
  download() {
    const lines = [this.columns.map(({ name }) => quoted(name)).join(",")];
    for (let number = 0; number < this.set.count; ++number) {
      lines.push(this.columns.map(({ exact, isText }) => (isText ? quoted(exact(number)) : exact(number))).join(","));
    }
    const address = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
    const name = titleOf(this.set).split(":")[0].replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();
    element("a", { href: address, download: `${name || "data"}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  }
}
