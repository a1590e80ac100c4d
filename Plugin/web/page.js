// A page of scenes: drawn by vtk.js, to be turned, hovered and searched. attentionatlas.web writes the data into
// the page. Texts of tokens are only ever set as text, never as HTML.
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
import { Labels, shownToken } from "./labels.js";
import { Projection, pick } from "./picking.js";
import { inflated, matches, written } from "./scene.js";

const THEMES = {
  light: { ink: [0, 0, 0], faint: [212, 212, 212], text: "#000", faintText: "#999", found: "#000" },
  dark: { ink: [238, 238, 238], faint: [70, 72, 78], text: "#eee", faintText: "#888", found: "#fff" },
};
/** A turn and a step by an arrow key; a zoom by a key. */
const TURN = 5;
const STEP = 0.05;
const ZOOM = 1.2;

const began = performance.now();
const page = document.documentElement;
const byId = (id) => document.getElementById(id);

/** What the page did, for people in the line of the status and for programs in attributes. */
function report(status, details = {}) {
  Object.assign(page.dataset, { status, ...details });
}

function fail(error) {
  const message = error?.message ?? String(error);
  report("error", { error: message });
  byId("status").textContent = `This page cannot be drawn: ${message}`;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
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

  /** The colors of the page. */
  theme() {
    const name = page.dataset.theme;
    const background = getComputedStyle(page).getPropertyValue("--page").trim();
    const channels = [1, 3, 5].map((at) => parseInt(background.slice(at, at + 2), 16));
    return { ...THEMES[name], background: channels, pixelRatio: window.devicePixelRatio || 1 };
  }

  /** Shows a scene, by its number. */
  show(number) {
    this.number = number;
    this.scene = this.scenes[number];
    this.found = this.search(this.text ?? "");
    this.build();
    this.setStyle();
    this.resize(false);
    this.reset();
  }

  build() {
    this.renderer.removeAllViewProps();
    this.shownTheme = this.theme();
    this.renderer.setBackground(this.shownTheme.background.map((c) => c / 255));
    for (const part of this.scene.parts) {
      for (const actor of actorsOf(this.scene, part, this.shownTheme, this.found.get(part) ?? null)) {
        this.renderer.addActor(actor);
      }
    }
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
    const { left, top, right, bottom } = this.stage.getBoundingClientRect();
    page.dataset.margins = [left, top, window.innerWidth - right, window.innerHeight - bottom].join(" ");
    const ratio = window.devicePixelRatio || 1;
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
      camera.setParallelScale(Math.max(given.extent[1], (given.extent[0] * height) / width));
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
    this.found = this.search(text);
    this.build();
    this.render();
  }

  /** What is at a place of the stage, in pixels from its upper left corner. */
  at(x, y) {
    return this.scene && this.shownProjection ? pick(this.scene, this.shownProjection, x, y) : null;
  }
}

/** The names and values of what was picked. */
function describe(scene, { part, point, cell }) {
  const rows = [];
  const add = (arrays, item) => {
    for (const [name, array] of Object.entries(arrays ?? {})) {
      rows.push([name, shownToken(written(scene.buffer, array, item))]);
    }
  };
  if (cell !== undefined) add(part.cellArrays, cell);
  if (point !== undefined) add(part.pointArrays, point);
  return rows;
}

class Tooltip {
  constructor(viewer) {
    this.viewer = viewer;
    this.box = byId("tooltip");
    const { stage } = viewer;
    stage.addEventListener("pointermove", (event) => this.request(event));
    stage.addEventListener("pointerleave", () => this.hide());
    stage.addEventListener("pointerdown", () => this.hide());
  }

  request(event) {
    this.event = event;
    if (event.buttons || this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      const { stage } = this.viewer;
      const { left, top } = stage.getBoundingClientRect();
      const [x, y] = [this.event.clientX - left - stage.clientLeft, this.event.clientY - top - stage.clientTop];
      if (!this.event.buttons) this.show(x, y);
    });
  }

  show(x, y) {
    const picked = this.viewer.at(x, y);
    const rows = picked ? describe(this.viewer.scene, picked) : [];
    if (!rows.length) {
      this.hide();
      return;
    }
    const list = rows.flatMap(([name, value]) => [
      element("dt", { textContent: name }),
      element("dd", { textContent: value }),
    ]);
    this.box.replaceChildren(element("strong", { textContent: picked.part.name }), element("dl", {}, ...list));
    this.box.hidden = false;
    const { clientWidth, clientHeight } = this.viewer.stage;
    const left = x + 14 + this.box.offsetWidth > clientWidth ? x - 10 - this.box.offsetWidth : x + 14;
    const top = Math.min(y + 10, clientHeight - this.box.offsetHeight - 2);
    this.box.style.left = `${Math.max(0, left)}px`;
    this.box.style.top = `${Math.max(0, top)}px`;
    page.dataset.hover = rows.map((row) => row.join(": ")).join("; ");
  }

  hide() {
    this.box.hidden = true;
    delete page.dataset.hover;
  }
}

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
    this.tabs = viewer.scenes.map((scene, number) => this.tab(scene, number));
    byId("tabs").append(...this.tabs);
    byId("tabs").hidden = viewer.scenes.length < 2;
    byId("reset").addEventListener("click", () => viewer.reset());
    byId("closer").addEventListener("click", () => viewer.zoom(ZOOM));
    byId("farther").addEventListener("click", () => viewer.zoom(1 / ZOOM));
    byId("theme").addEventListener("click", () => this.changeTheme());
    byId("search").addEventListener("input", (event) => viewer.highlight(event.target.value));
    viewer.stage.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => this.follow());
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

  changeTheme() {
    page.dataset.theme = page.dataset.theme === "dark" ? "light" : "dark";
    byId("theme").textContent = page.dataset.theme === "dark" ? "Light" : "Dark";
    this.viewer.build();
    this.viewer.render();
  }

  key(event) {
    const { viewer } = this;
    const actions = {
      ArrowLeft: () => viewer.move(-1, 0),
      ArrowRight: () => viewer.move(1, 0),
      ArrowUp: () => viewer.move(0, 1),
      ArrowDown: () => viewer.move(0, -1),
      "+": () => viewer.zoom(ZOOM),
      "=": () => viewer.zoom(ZOOM),
      "-": () => viewer.zoom(1 / ZOOM),
      0: () => viewer.reset(),
      Home: () => viewer.reset(),
      "/": () => byId("search").focus(),
    };
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
    byId("panel").setAttribute("aria-labelledby", `tab-${number}`);
    byId("scene-title").textContent = scene.title;
    byId("caption").textContent = scene.caption;
    byId("legends").replaceChildren(...scene.legends.map(legendOf));
    const canSearch = scene.parts.some((part) => part.search?.length);
    byId("searching").hidden = !canSearch;
    viewer.stage.setAttribute("aria-label", `${scene.title}. ${scene.caption}`);
    byId("keys").textContent = scene.isFlat
      ? "Drag to move, scroll to zoom. Keys: arrows move, + and \u2212 zoom, 0 resets, / searches."
      : "Drag to turn, shift and drag to move, scroll to zoom. Keys: arrows turn, + and \u2212 zoom, 0 resets, / searches.";
    viewer.show(number);
    this.count(scene, number);
  }

  count(scene, number) {
    const sum = (of) => scene.parts.reduce((total, part) => total + (of(part) ?? 0), 0);
    const points = sum((part) => (part.kind === "image" ? part.dimensions[0] * part.dimensions[1] : part.points.count));
    const cells = sum((part) => (part.lines?.count ?? 0) + (part.polys?.count ?? 0));
    byId("status").textContent = counted(points, "point") + (cells ? `, ${cells.toLocaleString("en")} lines and faces` : "");
    const milliseconds = String(Math.round(performance.now() - began));
    report("ready", { scene: String(number), points: String(points), cells: String(cells), milliseconds });
  }

  /** What the address asks for: #scene=2&search=the. */
  follow() {
    const asked = new URLSearchParams(window.location.hash.slice(1));
    const number = Number(asked.get("scene") ?? this.viewer.number ?? 0);
    const text = asked.get("search") ?? this.viewer.text ?? "";
    byId("search").value = text;
    this.viewer.text = text;
    this.choose(Number.isInteger(number) && this.viewer.scenes[number] ? number : 0);
    if (asked.has("hover")) {
      const [x, y] = asked.get("hover").split(",").map(Number);
      const { clientWidth, clientHeight } = this.viewer.stage;
      this.tooltip.show(x * clientWidth, y * clientHeight);
    }
  }
}

async function main() {
  window.addEventListener("error", (event) => fail(event.error ?? event.message));
  window.addEventListener("unhandledrejection", (event) => fail(event.reason));
  document.addEventListener("securitypolicyviolation", (event) => fail(`blocked: ${event.violatedDirective}`));
  const scenes = JSON.parse(byId("scenes").textContent);
  const buffer = await inflated(byId("data").textContent);
  byId("data").textContent = "";
  const viewer = new Viewer(scenes, buffer);
  const controls = new Controls(viewer);
  controls.tooltip = new Tooltip(viewer);
  controls.follow();
}

main().catch(fail);
