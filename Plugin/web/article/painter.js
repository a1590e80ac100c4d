// Draws the transformer with WebGL: one context for all canvases of the page, each of which gets a copy.

import { dotPixels, dotVertices, probePixels, probeVertices, surfacePixels, surfaceVertices } from "./shaders.js";

/** Squares on a side of a surface: at rest, and while it moves on a slow machine. */
const [FINE, COARSE] = [128, 56];
/** How colors of pixels are chosen: the kinds of the shader. */
export const KINDS = { class: 0, attention: 1, score: 2, angles: 3 };

export class Painter {
  constructor(heads, tokens) {
    this.canvas = document.createElement("canvas");
    const options = { antialias: false, preserveDrawingBuffer: true, premultipliedAlpha: true };
    const gl = this.canvas.getContext("webgl2", options);
    if (!gl) throw new Error("this browser has no WebGL 2");
    this.gl = gl;
    this.heads = heads;
    this.surface = this.program(surfaceVertices(heads, tokens), surfacePixels(heads, tokens), ["theta"]);
    this.dots = this.program(dotVertices(heads, tokens), dotPixels, ["dot_place", "dot_color", "dot_look"]);
    this.sizes = [heads, tokens];
    this.grids = new Map();
    this.buffer = gl.createBuffer();
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  program(vertices, pixels, inputs) {
    const { gl } = this;
    const made = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, vertices], [gl.FRAGMENT_SHADER, pixels]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    }
    inputs.forEach((name, i) => gl.bindAttribLocation(made, i, name));
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    const places = new Map();
    return { made, at: (name) => places.get(name) ?? places.set(name, gl.getUniformLocation(made, name)).get(name) };
  }

  /** A grid of squares over the torus. */
  grid(count) {
    if (!this.grids.has(count)) {
      const { gl } = this;
      const side = count + 1;
      const angles = new Float32Array(2 * side * side);
      for (let j = 0, at = 0; j < side; ++j) {
        for (let i = 0; i < side; ++i) {
          for (const number of [i, j]) angles[at++] = Math.PI * ((2 * number) / count - 1);
        }
      }
      const corners = new Uint32Array(6 * count * count);
      for (let j = 0, at = 0; j < count; ++j) {
        for (let i = 0; i < count; ++i) {
          const first = j * side + i;
          for (const step of [0, 1, side, side, 1, side + 1]) corners[at++] = first + step;
        }
      }
      const [points, triangles] = [gl.createBuffer(), gl.createBuffer()];
      gl.bindBuffer(gl.ARRAY_BUFFER, points);
      gl.bufferData(gl.ARRAY_BUFFER, angles, gl.STATIC_DRAW);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, triangles);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, corners, gl.STATIC_DRAW);
      this.grids.set(count, { points, triangles, count: corners.length });
    }
    return this.grids.get(count);
  }

  /** What a program needs to know of the transformer. */
  setModel({ at }, evaluator) {
    const { gl } = this;
    const { model, settings } = evaluator;
    gl.uniform3fv(at("positions"), model.positions.flat());
    gl.uniform1fv(at("terms"), evaluator.terms.flatMap((terms) => Array.from(terms)));
    // By columns.
    const columns = (m) => [m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]];
    gl.uniformMatrix3fv(at("values"), false, model.heads.flatMap(({ ov }) => columns(ov)));
    gl.uniform1fv(at("weights"), settings.weights);
    gl.uniform1f(at("temperature"), settings.temperature);
    gl.uniform2fv(at("carried"), evaluator.carried);
    gl.uniform3fv(at("unembedding"), model.unembedding.flat());
  }

  setPlace({ at }, { camera, zoom, shift = [0, 0, 0], shape = 0, center = [0, 0, 0], extent = [1, 1, 1], onSphere = false }) {
    const { gl } = this;
    const [right, up, toward] = camera;
    gl.uniformMatrix3fv(at("camera"), false, [0, 1, 2].flatMap((i) => [right[i], up[i], toward[i]]));
    gl.uniform2fv(at("zoom"), zoom);
    gl.uniform3fv(at("shift"), shift);
    gl.uniform1f(at("shape"), shape);
    gl.uniform3fv(at("center"), center);
    gl.uniform3fv(at("extent"), extent);
    gl.uniform1i(at("onSphere"), onSphere ? 1 : 0);
  }

  /** Grows to a size; the part that is drawn is at the lower left. */
  begin(width, height) {
    const { gl, canvas } = this;
    if (canvas.width < width) canvas.width = width;
    if (canvas.height < height) canvas.height = height;
    gl.viewport(0, 0, width, height);
    gl.disable(gl.BLEND);
    // All of the canvas: a copy that is made larger mixes in what is beside it.
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(0, 0, width, height);
  }

  /** A surface. look: place as above; kind, head, largest, isLit, isSphere and boundary as in the shader. */
  drawSurface(evaluator, look) {
    const { gl } = this;
    gl.useProgram(this.surface.made);
    const { at } = this.surface;
    this.setModel(this.surface, evaluator);
    this.setPlace(this.surface, look);
    gl.uniform3fv(at("colors"), evaluator.model.colors.flat().map((value) => value / 255));
    gl.uniform1i(at("kind"), KINDS[look.kind ?? "class"]);
    gl.uniform1i(at("head"), look.head ?? 0);
    gl.uniform1f(at("largest"), look.largest ?? 1);
    gl.uniform1i(at("isLit"), look.isLit ? 1 : 0);
    gl.uniform1i(at("isSphere"), look.isSphere ? 1 : 0);
    gl.uniform3fv(at("boundary"), look.boundary ?? [0.835, 0.369, 0]);
    const grid = this.grid(look.isFlat ? 1 : look.isCoarse ? COARSE : FINE);
    gl.bindBuffer(gl.ARRAY_BUFFER, grid.points);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, grid.triangles);
    gl.disableVertexAttribArray(1);
    gl.disableVertexAttribArray(2);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.drawElements(gl.TRIANGLES, grid.count, gl.UNSIGNED_INT, 0);
  }

  /** Dots: [{place, color, radius, isRing}]. isDirection: places are directions rather than angles. */
  drawDots(evaluator, look, dots, isDirection = false) {
    if (!dots.length) return;
    const { gl } = this;
    gl.useProgram(this.dots.made);
    this.setModel(this.dots, evaluator);
    this.setPlace(this.dots, look);
    gl.uniform1i(this.dots.at("isDirection"), isDirection ? 1 : 0);
    const numbers = dots.flatMap(({ place, color, radius, isRing }) => [
      place[0], place[1], place[2] ?? 0, ...color.map((value) => value / 255), radius, isRing ? 1 : 0,
    ]);
    gl.enable(gl.BLEND);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STREAM_DRAW);
    [[3, 0], [3, 12], [2, 24]].forEach(([size, offset], i) => {
      gl.enableVertexAttribArray(i);
      gl.vertexAttribPointer(i, size, gl.FLOAT, false, 32, offset);
    });
    gl.drawArrays(gl.POINTS, 0, dots.length);
    gl.disable(gl.BLEND);
  }

  /** Copies what was drawn to an area of a canvas. */
  copy(context, width, height, area) {
    context.drawImage(this.canvas, 0, this.canvas.height - height, width, height, area.x, area.y, area.width, area.height);
  }

  /** The angles of the nearest point of a surface at a pixel, counted from the upper left; null beside it. */
  pick(evaluator, look, width, height, x, y) {
    const { gl } = this;
    const at = [Math.floor(x), height - 1 - Math.floor(y)];
    // Several samples of a pixel would be averaged, which of angles makes no sense.
    this.target ??= this.plainTarget(1, 1, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, true);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target.frame);
    gl.viewport(-at[0], -at[1], width, height);
    gl.disable(gl.SCISSOR_TEST);
    gl.disable(gl.BLEND);
    gl.clearColor(1, 1, 1, 1); // no angle is written so
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    this.drawSurface(evaluator, { ...look, kind: "angles", isLit: false });
    const bytes = new Uint8Array(4);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    if (bytes.every((value) => value === 255)) return null;
    return [0, 2].map((i) => 2 * Math.PI * ((bytes[i] + bytes[i + 1] / 255) / 255.99609375 - 0.5));
  }

  plainTarget(width, height, internal, format, type, hasDepth) {
    const { gl } = this;
    const [frame, texture] = [gl.createFramebuffer(), gl.createTexture()];
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, internal, width, height, 0, format, type, null);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    if (hasDepth) {
      const depth = gl.createRenderbuffer();
      gl.bindRenderbuffer(gl.RENDERBUFFER, depth);
      gl.renderbufferStorage(gl.RENDERBUFFER, gl.DEPTH_COMPONENT24, width, height);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.RENDERBUFFER, depth);
    }
    return { frame, texture };
  }

  /** What the shader computes at points, four numbers each: output and probability, or (kind 1) score and attention
  of the first head, score of the last, and class. */
  probe(evaluator, points, kind = 0) {
    const { gl } = this;
    if (!gl.getExtension("EXT_color_buffer_float")) throw new Error("this browser draws no floating-point numbers");
    const program = (this.probing ??= this.program(probeVertices, probePixels(...this.sizes), ["theta"]));
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RG32F, points.length, 1, 0, gl.RG, gl.FLOAT, new Float32Array(points.flat()));
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    const target = this.plainTarget(points.length, 1, gl.RGBA32F, gl.RGBA, gl.FLOAT, false);
    gl.viewport(0, 0, points.length, 1);
    gl.disable(gl.SCISSOR_TEST);
    gl.disable(gl.BLEND);
    gl.useProgram(program.made);
    this.setModel(program, evaluator);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.uniform1i(program.at("points"), 0);
    gl.uniform1i(program.at("kind"), kind);
    const whole = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, whole);
    gl.bufferData(gl.ARRAY_BUFFER, Float32Array.of(-1, -1, 3, -1, -1, 3), gl.STATIC_DRAW);
    gl.disableVertexAttribArray(1);
    gl.disableVertexAttribArray(2);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    const numbers = new Float32Array(4 * points.length);
    gl.readPixels(0, 0, points.length, 1, gl.RGBA, gl.FLOAT, numbers);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.deleteFramebuffer(target.frame);
    for (const made of [texture, target.texture]) gl.deleteTexture(made);
    gl.deleteBuffer(whole);
    return numbers;
  }

  /** Waits until all is drawn, for measurements. */
  finish() {
    const { gl } = this;
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  }
}
