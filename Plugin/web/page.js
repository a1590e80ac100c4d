// A page of scenes: drawn by vtk.js, to be turned, inspected, searched and read as tables. attentionatlas.web
// writes the data into the page.
import vtkOpenGLRenderWindow from "@kitware/vtk.js/Rendering/OpenGL/RenderWindow.js";
import vtkInteractorStyleManipulator from "@kitware/vtk.js/Interaction/Style/InteractorStyleManipulator.js";
import vtkGestureCameraManipulator from "@kitware/vtk.js/Interaction/Manipulators/GestureCameraManipulator.js";
import vtkPan from "@kitware/vtk.js/Interaction/Manipulators/MouseCameraTrackballPanManipulator.js";
import vtkRotate from "@kitware/vtk.js/Interaction/Manipulators/MouseCameraTrackballRotateManipulator.js";
import vtkZoom from "@kitware/vtk.js/Interaction/Manipulators/MouseCameraTrackballZoomToMouseManipulator.js";
import vtkRenderWindow from "@kitware/vtk.js/Rendering/Core/RenderWindow.js";
import vtkRenderWindowInteractor from "@kitware/vtk.js/Rendering/Core/RenderWindowInteractor.js";
import vtkRenderer from "@kitware/vtk.js/Rendering/Core/Renderer.js";

import { actorsOf } from "./actors.js";
import { paint, positionOf, residuesOf } from "./attention.js";
import { byId, element, offerThemes, page } from "./elements.js";
import { Heads } from "./heads.js";
import { Inspector } from "./inspector.js";
import { Labels } from "./labels.js";
import { Projection, pick } from "./picking.js";
import { inflated, matches } from "./scene.js";
import { Table } from "./table.js";
import { drawTiles, isTiled, middleOf, roomOf } from "./tiles.js";

/** A turn and a step by an arrow key; a zoom by a key. */
const TURN = 5;
const STEP = 0.05;
const ZOOM = 1.2;
/** A search waits until no letter has been typed for so long, in milliseconds. */
const PAUSE = 200;
/** The address keeps the place on a map once it has not changed for so long. */
const REST = 250;

const began = performance.now();

/** What the page did, for people in the line of the status and for programs in attributes. */
function report(status, details = {}) {
  Object.assign(page.dataset, { status, ...details });
}

function fail(error) {
  const message = error?.message ?? String(error);
  report("error", { error: message });
  byId("status").textContent = `This page cannot be drawn: ${message}`;
}

const counted = (count, name) => `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;

class Viewer {
  constructor(scenes, buffer) {
    this.scenes = scenes;
    for (const scene of scenes) scene.buffer = buffer;
    this.stage = byId("stage");
    this.labels = new Labels(byId("labels"));
    this.found = new Map();
    this.renderer = vtkRenderer.newInstance();
    this.window = vtkRenderWindow.newInstance();
    this.window.addRenderer(this.renderer);
    this.canvas = vtkOpenGLRenderWindow.newInstance();
    this.canvas.setContainer(byId("canvas"));
    this.window.addView(this.canvas);
    this.interactor = vtkRenderWindowInteractor.newInstance();
    this.interactor.setView(this.canvas);
    this.interactor.initialize();
    this.interactor.bindEvents(this.stage);
    this.interactor.onRenderEvent(() => this.drawn());
    new ResizeObserver(() => this.resize()).observe(this.stage);
  }

  /** The colors of the page, which its style has. */
  theme() {
    const style = getComputedStyle(page);
    const text = (name) => style.getPropertyValue(name).trim();
    const color = (name) => [1, 3, 5].map((at) => parseInt(text(name).slice(at, at + 2), 16));
    return {
      background: color("--page"),
      ink: color("--drawn"),
      faint: color("--faint"),
      text: text("--drawn"),
      faintText: text("--faint-text"),
      pixelRatio: window.devicePixelRatio || 1,
    };
  }

  /** Shows a scene, by its number. */
  show(number) {
    this.number = number;
    this.scene = this.scenes[number];
    paint(this.scene, this.query ?? null);
    this.found = this.search(this.text ?? "");
    this.build();
    this.setStyle();
    this.resize(false);
    this.reset();
  }

  build() {
    this.renderer.removeAllViewProps();
    this.actors = new Map();
    this.shownTheme = this.theme();
    this.renderer.setBackground(this.shownTheme.background.map((c) => c / 255));
    for (const part of this.scene.parts) this.buildPart(part);
  }

  buildPart(part) {
    for (const actor of this.actors.get(part) ?? []) this.renderer.removeActor(actor);
    const made = actorsOf(this.scene, part, this.shownTheme, this.found.get(part) ?? null);
    for (const actor of made) this.renderer.addActor(actor);
    this.actors.set(part, made);
    page.dataset.built = Number(page.dataset.built ?? 0) + 1;
  }

  setStyle() {
    const style = vtkInteractorStyleManipulator.newInstance();
    const main = this.scene.isFlat ? vtkPan : vtkRotate;
    style.addMouseManipulator(main.newInstance({ button: 1 }));
    style.addMouseManipulator(vtkPan.newInstance({ button: 1, shift: true }));
    style.addMouseManipulator(vtkPan.newInstance({ button: 2 }));
    style.addMouseManipulator(vtkPan.newInstance({ button: 3 }));
    const zoom = vtkZoom.newInstance({ scrollEnabled: true, dragEnabled: false });
    style.addMouseManipulator(zoom);
    style.addGestureManipulator(vtkGestureCameraManipulator.newInstance({ rotateEnabled: false }));
    style.setCenterOfRotation(this.scene.camera.focalPoint);
    style.setRotationFactor(1);
    style.onInteractionEvent(() => { this.isWhole = false; });
    this.interactor.setInteractorStyle(style);
  }

  resize(draws = true) {
    const { clientWidth: width, clientHeight: height } = this.stage;
    if (!width || !height || !this.scene) return;
    const ratio = window.devicePixelRatio || 1;
    // The stage can end within a pixel; what is drawn is not stretched to there.
    for (const name of ["canvas", "labels", "mark"]) {
      Object.assign(byId(name).style, { width: `${width}px`, height: `${height}px` });
    }
    this.canvas.setSize(Math.round(width * ratio), Math.round(height * ratio));
    if (draws && this.isWhole) this.reset();
    else if (draws) this.render();
  }

  /** The camera of the scene, so that all of what it shows is on the screen. */
  reset() {
    const given = this.scene.camera;
    const camera = this.renderer.getActiveCamera();
    camera.setParallelProjection(given.isParallel);
    camera.setFocalPoint(...given.focalPoint);
    camera.setPosition(...given.position);
    camera.setViewUp(...given.viewUp);
    camera.setViewAngle(given.viewAngle);
    const { clientWidth: width, clientHeight: height } = this.stage;
    if (given.extent) {
      // Half of what has to be seen, rightward and upward.
      const [across, up] = roomOf(this.scene);
      const [right, top] = [Math.max(width - 2 * across, width / 2), Math.max(height - 2 * up, height / 2)];
      camera.setParallelScale(height * Math.max(given.extent[1] / top, given.extent[0] / right));
    } else {
      camera.setParallelScale(given.parallelScale * Math.max(1, height / width));
      if (!given.isParallel && height > width) camera.dolly(width / height);
    }
    this.isWhole = true;
    this.render();
  }

  render() {
    if (!this.scene) return;
    this.renderer.resetCameraClippingRange();
    this.interactor.render();
  }

  projection() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const matrix = this.renderer.getActiveCamera().getCompositeProjectionMatrix(width / height, -1, 1);
    const columns = new Float64Array(16);
    for (let i = 0; i < 16; ++i) columns[i] = matrix[(i % 4) * 4 + Math.floor(i / 4)];
    return new Projection(columns, width, height);
  }

  /** After each rendering: labels, and what the page says of itself. */
  drawn() {
    if (!this.scene) return;
    this.shownProjection = this.projection();
    const count = this.labels.draw(this.scene, this.shownProjection, this.shownTheme, this.found);
    page.dataset.labels = count;
    for (const part of this.scene.parts.filter(isTiled)) {
      drawTiles(this.labels.context, this.scene, part, this.shownProjection, this.shownTheme);
    }
    this.onDrawn?.();
    this.onPlaced?.();
  }

  /** The place on a map: the query and the key in the middle of the stage, and how many tokens it is high. */
  place() {
    const camera = this.renderer.getActiveCamera();
    const [x, y] = camera.getFocalPoint();
    return [-y, x, 2 * camera.getParallelScale()].map((value) => Number(value.toFixed(3)));
  }

  /** Shows a place on a map. */
  lookAt(query, key, tokens) {
    this.isWhole = false;
    const camera = this.renderer.getActiveCamera();
    camera.setFocalPoint(key, -query, 0);
    camera.setPosition(key, -query, 1);
    camera.setParallelScale(tokens / 2);
    this.render();
  }

  /** Moves to an item that is outside of the stage. */
  reveal(item) {
    if (!isTiled(item.part)) {
      this.reset();
      return;
    }
    const [x, y] = middleOf(item);
    this.lookAt(-y, x, this.place()[2]);
  }

  zoom(factor) {
    this.isWhole = false;
    const camera = this.renderer.getActiveCamera();
    if (camera.getParallelProjection()) camera.setParallelScale(camera.getParallelScale() / factor);
    else camera.dolly(factor);
    this.render();
  }

  /** Turns, or moves a flat scene, by steps rightward and upward. */
  move(right, up) {
    this.isWhole = false;
    const camera = this.renderer.getActiveCamera();
    if (this.scene.isFlat) {
      const step = STEP * 2 * camera.getParallelScale();
      const [x, y] = [right * step, up * step];
      const shift = ([a, b, c]) => [a + x, b + y, c];
      const [focal, position] = [camera.getFocalPoint(), camera.getPosition()].map(shift);
      camera.setFocalPoint(...focal);
      camera.setPosition(...position);
    } else {
      camera.azimuth(-right * TURN);
      camera.elevation(up * TURN);
      camera.orthogonalizeViewUp();
    }
    this.render();
  }

  /** Which points of each part have tokens with a text. */
  search(text) {
    const found = new Map();
    let [count, all] = [0, 0];
    for (const part of this.scene.parts) {
      const of = matches(this.scene.buffer, part, text);
      if (of) {
        found.set(part, of);
        all += of.length;
        count += of.reduce((sum, value) => sum + value, 0);
      }
    }
    this.text = text;
    const said = found.size ? `${count.toLocaleString("en")} of ${counted(all, "point")}` : "";
    byId("found").textContent = text && !found.size ? "nothing to search here" : said;
    page.dataset.found = text ? count : "";
    return found;
  }

  highlight(text) {
    const before = this.found;
    this.found = this.search(text);
    for (const part of this.scene.parts) if (before.has(part) || this.found.has(part)) this.buildPart(part);
    this.render();
  }

  /** Shows the attention of the token at a position of the sequence; null: the mean. */
  chooseQuery(query) {
    this.query = query;
    for (const part of paint(this.scene, query)) this.buildPart(part);
    this.render();
  }

  /** What is at a place of the stage, in pixels from its upper left corner. */
  at(x, y) {
    return this.scene && this.shownProjection ? pick(this.scene, this.shownProjection, x, y) : null;
  }
}

/** Parameters as the address has them. */
const addressOf = (parameters) => parameters.toString().replaceAll("%2C", ",").replace(/=(?=&|$)/g, "");

/** A key of colors: a name for each, or a ramp with its ends. */
function legendOf(legend) {
  const color = (values) => `rgb(${values.join(",")})`;
  if (legend.ramp) {
    const ramp = element("span", { className: "ramp" });
    ramp.style.background = `linear-gradient(to right, ${legend.ramp.map(color).join(",")})`;
    const ends = legend.range.map((value) => String(Number(value.toPrecision(3))).replace("-", "\u2212"));
    return element("div", { className: "legend" }, element("b", { textContent: legend.title }), ends[0], ramp, ends[1]);
  }
  const entries = legend.entries.map(([name, values]) => {
    const swatch = element("i");
    swatch.style.background = color(values);
    return element("span", { className: "entry" }, swatch, name);
  });
  return element("div", { className: "legend" }, element("b", { textContent: legend.title }), ...entries);
}

class Controls {
  constructor(viewer) {
    this.viewer = viewer;
    this.heads = new Heads(viewer.scenes, (key) => this.chooseHead(key));
    this.inspector = new Inspector(viewer, () => this.chooseItem());
    const show = (set, number) => {
      this.inspector.choose(set, number);
      this.chooseItem();
    };
    this.table = new Table(show, (scene, set) => this.heads.find(scene, set));
    this.tabs = viewer.scenes.map((scene, number) => this.tab(scene, number));
    byId("tabs").append(...this.tabs);
    byId("tabs").hidden = viewer.scenes.length < 2;
    byId("reset").addEventListener("click", () => viewer.reset());
    byId("closer").addEventListener("click", () => viewer.zoom(ZOOM));
    byId("farther").addEventListener("click", () => viewer.zoom(1 / ZOOM));
    offerThemes(byId("theme"), () => this.redraw());
    byId("search").addEventListener("input", () => this.search());
    viewer.stage.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => this.follow());
    viewer.onPlaced = () => {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.keepPlace(), REST);
    };
  }

  tab(scene, number) {
    const tab = element("button", { type: "button", textContent: scene.title, id: `tab-${number}` });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", "panel");
    tab.addEventListener("click", () => this.choose(number));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = (number + step + this.tabs.length) % this.tabs.length;
      this.choose(next);
      this.tabs[next].focus();
    });
    return tab;
  }

  /** Draws the scene in the colors of the page, after these have changed. */
  redraw() {
    this.viewer.build();
    this.viewer.render();
  }

  /** Searches once the typing pauses. */
  search() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.viewer.highlight(byId("search").value), PAUSE);
  }

  key(event) {
    const { viewer, inspector } = this;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const actions = {
      PageDown: () => inspector.change(1),
      PageUp: () => inspector.change(-1),
      Enter: () => this.chooseItem(),
      Home: () => inspector.end(false),
      End: () => inspector.end(true),
      Escape: () => {
        inspector.hide();
        (this.table.opener.hidden ? byId("reset") : this.table.opener).focus();
      },
      "+": () => viewer.zoom(ZOOM),
      "=": () => viewer.zoom(ZOOM),
      "-": () => viewer.zoom(1 / ZOOM),
      0: () => viewer.reset(),
      "/": () => byId("search").focus(),
    };
    for (const [name, step] of Object.entries(arrows)) {
      actions[name] = () => (event.shiftKey ? viewer.move(...step) : inspector.step(...step));
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  /** Shows a scene with its text. */
  choose(number) {
    const { viewer } = this;
    const scene = viewer.scenes[number];
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === number);
      tab.tabIndex = i === number ? 0 : -1;
    });
    byId("tabs").scrollLeft = this.tabs[number].offsetLeft - byId("tabs").offsetLeft - 8;
    byId("panel").setAttribute("aria-labelledby", `tab-${number}`);
    byId("scene-title").textContent = scene.title;
    byId("caption").textContent = scene.caption;
    const canSearch = scene.parts.some((part) => part.search?.length);
    byId("searching").hidden = !canSearch;
    viewer.stage.setAttribute("aria-label", `${scene.title}. ${scene.caption}`);
    this.inspector.begin(scene);
    this.heads.offer(scene, this.inspector.sets);
    const hasHeads = this.heads.hasItems(scene, this.inspector.sets);
    const [drag, shifted] = scene.isFlat ? ["Drag to move", "move"] : ["Drag to turn, shift and drag to move", "turn"];
    byId("keys").textContent =
      `${drag}, scroll or pinch to zoom, point at an item or tap it to read its data. Keys: arrows step through the ` +
      `items, Page Up and Page Down through their kinds, Escape leaves them; shift and arrows ${shifted}, + and \u2212 ` +
      `zoom, 0 resets, / searches.${hasHeads ? " A click on a head, or Enter, shows its texts and tables." : ""}` +
      (residuesOf(scene) ? " A click on a residue, or Enter, shows what it attends to; the same again shows the mean." : "");
    viewer.show(number);
    this.showLegends();
    this.table.begin(scene);
    this.count(scene, number);
    this.markHead();
  }

  /** Shows the head that the item in the box is, if it is one. */
  chooseItem() {
    const { inspector, viewer } = this;
    if (!inspector.item) return;
    const key = this.heads.of(viewer.scene, inspector.item);
    if (key) this.chooseHead(key);
    const position = viewer.scenes.some(residuesOf) ? positionOf(viewer.scene, inspector.item) : null;
    if (position !== null) this.chooseQuery(position === viewer.query ? null : position);
  }

  /** Shows the attention of a query in all scenes; the address keeps it. */
  chooseQuery(query) {
    const { inspector, viewer } = this;
    viewer.chooseQuery(query);
    this.showLegends();
    const kept = new URLSearchParams(window.location.hash.slice(1));
    kept.delete("query");
    if (query !== null) kept.set("query", query);
    window.location.hash = addressOf(kept);
    this.followed = window.location.hash;
    inspector.show(inspector.item, inspector.by);
    inspector.announce(inspector.item.part.name);
  }

  showLegends() {
    const { query, scene } = this.viewer;
    byId("legends").replaceChildren(...scene.legends.map(legendOf));
    delete page.dataset.query;
    if (typeof query === "number") page.dataset.query = query;
  }

  /** Shows a head in all scenes; the address keeps it. */
  chooseHead(key) {
    const { heads, viewer } = this;
    heads.choose(key);
    const rest = new URLSearchParams();
    if (viewer.number) rest.set("scene", viewer.number);
    if (viewer.text) rest.set("search", viewer.text);
    if (typeof viewer.query === "number") rest.set("query", viewer.query);
    window.location.hash = [key, rest.toString()].filter(Boolean).join("&");
    this.followed = window.location.hash;
    this.showHead();
    const item = page.dataset.item ? ` ${page.dataset.item}` : "";
    byId("announced").textContent = `Head ${heads.names.get(key)} is shown.${item}`;
  }

  /** Lets the address keep the place on a map, from which Back does not lead to the places before. */
  keepPlace() {
    const { viewer } = this;
    const hasTiles = viewer.scene.parts.some(isTiled);
    const kept = new URLSearchParams(window.location.hash.slice(1));
    if (!hasTiles && !kept.has("at")) return;
    kept.delete("at");
    kept.delete("scene");
    if (viewer.number) kept.set("scene", viewer.number);
    if (hasTiles && !viewer.isWhole) kept.set("at", viewer.place());
    const address = `#${addressOf(kept)}`;
    if (address === (window.location.hash || "#")) return;
    try {
      window.history.replaceState(null, "", address);
      this.followed = window.location.hash;
    } catch {
      // A page in a frame may have no address of its own.
    }
  }

  /** Shows the scene again if it is of the head, and else only where the head is in it. */
  showHead() {
    this.viewer.scenes.forEach(({ title }, number) => { this.tabs[number].textContent = title; });
    if (this.viewer.scene.heads) this.choose(this.viewer.number);
    else {
      this.heads.offer(this.viewer.scene, this.inspector.sets);
      this.markHead();
    }
  }

  /** Marks the chosen head in the scene and in the table. */
  markHead() {
    const { inspector, table, viewer } = this;
    const numbers = inspector.sets.map((set) => this.heads.find(viewer.scene, set));
    const set = numbers.findIndex((number) => number >= 0);
    if (set < 0) return;
    inspector.choose(set, numbers[set]);
    table.mark();
  }

  count(scene, number) {
    const sum = (of) => scene.parts.reduce((total, part) => total + (of(part) ?? 0), 0);
    const points = sum((part) => (part.dimensions ? part.dimensions[0] * part.dimensions[1] : part.points.count));
    const cells = sum((part) => (part.lines?.count ?? 0) + (part.polys?.count ?? 0));
    const kinds = new Map();
    for (const set of this.inspector.sets) {
      const isMap = set.part.kind === "image" && set.arrays.Query;
      const name = isMap ? "pair" : set.kind.toLowerCase();
      kinds.set(name, (kinds.get(name) ?? 0) + (isTiled(set.part) ? points : set.count));
    }
    byId("status").textContent = [...kinds].map(([name, all]) => counted(all, name)).join(", ");
    const milliseconds = String(Math.round(performance.now() - began));
    report("ready", { scene: String(number), points: String(points), cells: String(cells), milliseconds });
  }

  /** What the address asks for: #4-11&scene=2&search=the&query=3. */
  follow() {
    if (this.followed === window.location.hash) return;
    this.followed = window.location.hash;
    const asked = new URLSearchParams(window.location.hash.slice(1));
    this.heads.choose(this.heads.asked(asked));
    this.viewer.scenes.forEach(({ title }, i) => { this.tabs[i].textContent = title; });
    const number = Number(asked.get("scene") ?? this.viewer.number ?? 0);
    const text = asked.get("search") ?? this.viewer.text ?? "";
    byId("search").value = text;
    this.viewer.text = text;
    const query = asked.has("query") ? Number(asked.get("query")) : null;
    this.viewer.query = Number.isInteger(query) ? query : null;
    this.choose(Number.isInteger(number) && this.viewer.scenes[number] ? number : 0);
    const at = (asked.get("at") ?? "").split(",").map(Number);
    const isPlace = at.length === 3 && at.every(Number.isFinite) && at[2] > 0;
    if (isPlace && this.viewer.scene.parts.some(isTiled)) this.viewer.lookAt(...at);
  }
}

async function main() {
  window.addEventListener("error", (event) => fail(event.error ?? event.message));
  window.addEventListener("unhandledrejection", (event) => fail(event.reason));
  document.addEventListener("securitypolicyviolation", (event) => fail(`blocked: ${event.violatedDirective}`));
  const canvas = document.createElement("canvas");
  if (!(canvas.getContext("webgl2") ?? canvas.getContext("webgl"))) throw new Error("it needs WebGL, which this browser does not offer.");
  const scenes = JSON.parse(byId("scenes").textContent);
  const buffer = await inflated(byId("data").textContent);
  byId("data").textContent = "";
  const viewer = new Viewer(scenes, buffer);
  new Controls(viewer).follow();
}

main().catch(fail);
