// What vtk.js draws of the parts of a scene.
import vtkActor from "@kitware/vtk.js/Rendering/Core/Actor.js";
import vtkDataArray from "@kitware/vtk.js/Common/Core/DataArray.js";
import vtkImageData from "@kitware/vtk.js/Common/DataModel/ImageData.js";
import vtkMapper from "@kitware/vtk.js/Rendering/Core/Mapper.js";
import vtkPolyData from "@kitware/vtk.js/Common/DataModel/PolyData.js";
import vtkSphereMapper from "@kitware/vtk.js/Rendering/Core/SphereMapper.js";
import vtkTexture from "@kitware/vtk.js/Rendering/Core/Texture.js";
import "@kitware/vtk.js/Rendering/OpenGL/Actor.js";
import "@kitware/vtk.js/Rendering/OpenGL/Camera.js";
import "@kitware/vtk.js/Rendering/OpenGL/PolyDataMapper.js";
import "@kitware/vtk.js/Rendering/OpenGL/Renderer.js";
import "@kitware/vtk.js/Rendering/OpenGL/SphereMapper.js";
import "@kitware/vtk.js/Rendering/OpenGL/Texture.js";

import { arrayOf } from "./scene.js";

const DIRECT_SCALARS = 2;
const SCALAR_MODES = { points: 1, cells: 2 };
const FLAT = 0;

/** A disc instead of the square that WebGL draws for a point. */
const ROUND = {
  shaderType: "Fragment",
  originalValue: "//VTK::Color::Impl",
  replaceFirst: true,
  replacementValue: "if (length(gl_PointCoord - vec2(0.5)) > 0.5) { discard; }\n//VTK::Color::Impl",
  replaceAll: false,
};

/** The white and the black rim of the discs in ParaView, and how far these lie before a surface through them. */
const RIM = {
  shaderType: "Fragment",
  originalValue: "//VTK::Picking::Impl",
  replaceFirst: true,
  replacementValue: `float rim = length(normalVCVSOutput.xy);
  if (rim > 0.62) { gl_FragData[0].rgb = rim > 0.82 ? vec3(0.0) : vec3(1.0); }
  gl_FragDepth = max(0.0, gl_FragDepth - 0.02);
  //VTK::Picking::Impl`,
  replaceAll: false,
};

/** Colors of four bytes: those of a part, with its opacity mixed with the background where it must be opaque. */
function rgba(values, width, mixedWith) {
  const count = values.length / width;
  const colors = new Uint8Array(4 * count);
  for (let i = 0; i < count; ++i) {
    const opacity = width === 4 ? values[width * i + 3] : 255;
    for (let c = 0; c < 3; ++c) {
      const value = values[width * i + c];
      colors[4 * i + c] = mixedWith
        ? Math.round((value * opacity + mixedWith[c] * (255 - opacity)) / 255)
        : value;
    }
    colors[4 * i + 3] = mixedWith ? 255 : opacity;
  }
  return colors;
}

/** The colors of the points, or cells, of a part; gray where `found` has zeros. */
function colorsOf(scene, part, theme, found, mixes) {
  const reference = part.pointColors ?? part.cellColors;
  const count = part.points.count;
  let colors;
  if (reference) {
    colors = rgba(arrayOf(scene.buffer, reference), reference.width, mixes ? theme.background : null);
  } else {
    const one = part.inherits ? theme.ink : part.color;
    colors = new Uint8Array(4 * count);
    for (let i = 0; i < count; ++i) colors.set([...one, 255], 4 * i);
  }
  if (found && !part.cellColors) {
    for (let i = 0; i < count; ++i) if (!found[i]) colors.set([...theme.faint, 255], 4 * i);
  }
  return colors;
}

function withScalars(data, mapper, colors, association) {
  const scalars = vtkDataArray.newInstance({ name: "Colors", numberOfComponents: 4, values: colors });
  (association === "cells" ? data.getCellData() : data.getPointData()).setScalars(scalars);
  mapper.setScalarVisibility(true);
  mapper.setColorMode(DIRECT_SCALARS);
  mapper.setScalarMode(SCALAR_MODES[association]);
}

function polyData(scene, part) {
  const data = vtkPolyData.newInstance();
  const places = arrayOf(scene.buffer, part.points);
  data.getPoints().setData(places instanceof Float32Array ? places : Float32Array.from(places), 3);
  return data;
}

/** The connectivity of cells as vtk.js has it: a size before each cell. order: of the cells. */
function connectivity(scene, cells, order) {
  const points = arrayOf(scene.buffer, cells.points);
  const offsets = offsetsOf(scene, cells);
  const result = new Uint32Array(points.length + cells.count);
  let at = 0;
  for (let k = 0; k < cells.count; ++k) {
    const cell = order ? order[k] : k;
    const begin = offsets(cell);
    const size = offsets(cell + 1) - begin;
    result[at++] = size;
    for (let i = 0; i < size; ++i) result[at++] = points[begin + i];
  }
  return result;
}

/** The function that says where the points of a cell begin. */
export function offsetsOf(scene, cells) {
  if (cells.size) return (cell) => cell * cells.size;
  const offsets = arrayOf(scene.buffer, cells.offsets);
  return (cell) => offsets[cell];
}

function setLight(property, light) {
  const isLit = light.diffuse > 0;
  property.setLighting(isLit);
  property.setAmbient(isLit ? light.ambient : 0);
  property.setDiffuse(isLit ? light.diffuse : 1);
  property.setSpecular(isLit ? light.specular : 0);
  property.setSpecularPower(Math.max(1, light.power));
}

function made(mapper, part) {
  const actor = vtkActor.newInstance();
  actor.setMapper(mapper);
  actor.getProperty().setOpacity(part.opacity ?? 1);
  return actor;
}

/** The indices of points with matches last, so that these lie on the others. */
function drawingOrder(count, found) {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  if (found) order.sort((a, b) => found[a] - found[b] || a - b);
  return order;
}

function discs(scene, part, theme, found) {
  const data = polyData(scene, part);
  const mapper = vtkSphereMapper.newInstance();
  mapper.setRadius(part.radius);
  if (part.radii) {
    const values = Float32Array.from(arrayOf(scene.buffer, part.radii));
    data.getPointData().addArray(vtkDataArray.newInstance({ name: "Radii", values }));
    mapper.setScaleArray("Radii");
  }
  withScalars(data, mapper, colorsOf(scene, part, theme, found, true), "points");
  if (part.hasRim) mapper.setViewSpecificProperties({ OpenGL: { ShaderReplacements: [RIM] } });
  mapper.setInputData(data);
  const actor = made(mapper, part);
  setLight(actor.getProperty(), part.light);
  return actor;
}

function dots(scene, part, theme, found) {
  const data = polyData(scene, part);
  const verts = new Uint32Array(2 * part.points.count);
  drawingOrder(part.points.count, found).forEach((point, i) => verts.set([1, point], 2 * i));
  data.getVerts().setData(verts);
  const mapper = vtkMapper.newInstance();
  mapper.setViewSpecificProperties({ OpenGL: { ShaderReplacements: [ROUND] } });
  withScalars(data, mapper, colorsOf(scene, part, theme, found, true), "points");
  mapper.setInputData(data);
  const actor = made(mapper, part);
  actor.getProperty().setLighting(false);
  actor.getProperty().setPointSize(part.size * theme.pixelRatio);
  return actor;
}

function surface(scene, part, theme) {
  const data = polyData(scene, part);
  data.getPolys().setData(connectivity(scene, part.polys));
  const mapper = vtkMapper.newInstance();
  const isCells = Boolean(part.cellColors);
  let colors = colorsOf(scene, part, theme, null, false);
  if (isCells) colors = colors.slice(4 * part.polys.first, 4 * (part.polys.first + part.polys.count));
  withScalars(data, mapper, colors, isCells ? "cells" : "points");
  const actor = made(mapper, part);
  setLight(actor.getProperty(), part.light);
  if (part.normals) {
    const values = Float32Array.from(arrayOf(scene.buffer, part.normals), (value) => value / 127);
    data.getPointData().setNormals(vtkDataArray.newInstance({ name: "Normals", numberOfComponents: 3, values }));
  } else {
    actor.getProperty().setInterpolation(FLAT);
  }
  if (part.showsEdges) {
    actor.getProperty().setEdgeVisibility(true);
    actor.getProperty().setEdgeColor(...part.edgeColor.map((c) => c / 255));
  }
  mapper.setInputData(data);
  return actor;
}

/** Lines of one width; cells: which of them, the last of which lie on the others. */
function linesOfWidth(scene, part, theme, width, cells) {
  const data = polyData(scene, part);
  const offsets = offsetsOf(scene, part.lines);
  const points = arrayOf(scene.buffer, part.lines.points);
  const size = cells.reduce((sum, cell) => sum + 1 + offsets(cell + 1) - offsets(cell), 0);
  const connected = new Uint32Array(size);
  let at = 0;
  for (const cell of cells) {
    const ends = [offsets(cell), offsets(cell + 1)];
    connected[at++] = ends[1] - ends[0];
    connected.set(points.subarray(...ends), at);
    at += ends[1] - ends[0];
  }
  data.getLines().setData(connected);
  const mapper = vtkMapper.newInstance();
  const all = colorsOf(scene, part, theme, null, true);
  if (part.cellColors) {
    const colors = new Uint8Array(4 * cells.length);
    cells.forEach((cell, i) => {
      const from = 4 * (part.lines.first + cell);
      colors.set(all.subarray(from, from + 4), 4 * i);
    });
    withScalars(data, mapper, colors, "cells");
  } else {
    withScalars(data, mapper, all, "points");
  }
  mapper.setInputData(data);
  const actor = made(mapper, part);
  actor.getProperty().setLighting(false);
  actor.getProperty().setLineWidth(width * theme.pixelRatio);
  return actor;
}

function lines(scene, part, theme) {
  const widths = arrayOf(scene.buffer, part.lines.widths);
  const groups = new Map();
  const order = Array.from({ length: part.lines.count }, (_, i) => i);
  if (widths) order.sort((a, b) => widths[a] - widths[b] || a - b);
  for (const cell of order) {
    const width = widths ? widths[cell] : part.lineWidth;
    if (!groups.has(width)) groups.set(width, []);
    groups.get(width).push(cell);
  }
  return [...groups].map(([width, cells]) => linesOfWidth(scene, part, theme, width, cells));
}

/** A flat image: a rectangle with a color per point. Squares lie around their points. */
function picture(scene, part) {
  const [columns, rows] = part.dimensions;
  const colors = rgba(arrayOf(scene.buffer, part.colors), part.colors.width, null);
  const image = vtkImageData.newInstance();
  image.setDimensions(columns, rows, 1);
  image.getPointData().setScalars(
    vtkDataArray.newInstance({ name: "Colors", numberOfComponents: 4, values: colors }),
  );
  const texture = vtkTexture.newInstance();
  texture.setInterpolate(false);
  texture.setEdgeClamp(true);
  texture.setInputData(image);

  // Without squares the picture ends at the middle of the outer points.
  const margin = part.hasSquares ? 0.5 : 0;
  const [left, bottom, right, top] = [
    -margin,
    -margin,
    columns - 1 + margin,
    rows - 1 + margin,
  ];
  const place = (x, y) => [
    part.origin[0] + x * part.spacing[0],
    part.origin[1] + y * part.spacing[1],
    part.origin[2],
  ];
  const texel = (x, y) => [(x + 0.5) / columns, (y + 0.5) / rows];
  const corners = [[left, bottom], [right, bottom], [right, top], [left, top]];
  const data = vtkPolyData.newInstance();
  data.getPoints().setData(Float32Array.from(corners.flatMap((corner) => place(...corner))), 3);
  data.getPolys().setData(Uint32Array.from([4, 0, 1, 2, 3]));
  data.getPointData().setTCoords(
    vtkDataArray.newInstance({
      name: "Texels",
      numberOfComponents: 2,
      values: Float32Array.from(corners.flatMap((corner) => texel(...corner))),
    }),
  );
  const mapper = vtkMapper.newInstance();
  mapper.setScalarVisibility(false);
  mapper.setInputData(data);
  const actor = made(mapper, part);
  actor.addTexture(texture);
  actor.getProperty().setLighting(false);
  return actor;
}

/** The actors of a part. found: which points match a search, or null. */
export function actorsOf(scene, part, theme, found) {
  if (part.kind === "image") return [picture(scene, part)];
  if (part.kind === "tiles") return []; // drawn over the scene
  if (part.kind === "discs") return [discs(scene, part, theme, found)];
  if (part.kind === "dots") return part.size > 0 ? [dots(scene, part, theme, found)] : [];
  const actors = [];
  if (part.polys?.count) actors.push(surface(scene, part, theme));
  if (part.lines?.count) actors.push(...lines(scene, part, theme));
  return actors;
}
