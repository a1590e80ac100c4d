// What the graphics processor evaluates: the same formulas as model.js, at each pixel.

const VERSION = "#version 300 es\n";

/** The transformer in GLSL. heads, tokens: their numbers. */
const transformer = (heads, tokens) => `
const int HEADS = ${heads};
const int TOKENS = ${tokens};
const vec3 U = ${Math.sqrt(3)} * vec3(${Math.SQRT1_2}, 0.0, ${-Math.SQRT1_2});
const vec3 V = ${Math.sqrt(3)} * vec3(${-1 / Math.sqrt(6)}, ${2 / Math.sqrt(6)}, ${-1 / Math.sqrt(6)});
uniform vec3 positions[2];
uniform float terms[HEADS * 11];
uniform mat3 values[HEADS];
uniform float weights[HEADS];
uniform float temperature;
uniform vec2 carried;
uniform vec3 unembedding[TOKENS];

/** Cosine and sine, in that order, to the last digits of a float: those of the language may be wrong in the fourth.
The polynomials are those of Cephes (S. L. Moshier) for single precision. */
vec2 circle(float angle) {
  float quarters = floor(angle * 0.636619772 + 0.5);
  float rest = (angle - quarters * 1.5703125) - quarters * 4.83826794897e-4;
  float q = rest * rest;
  float s = rest + rest * q * (-1.6666654611e-1 + q * (8.3321608736e-3 - q * 1.9515295891e-4));
  float c = 1.0 - 0.5 * q + q * q * (4.166664568298827e-2 + q * (-1.388731625493765e-3 + q * 2.443315711809948e-5));
  int turn = int(quarters) & 3;
  vec2 turned = (turn & 1) == 1 ? vec2(-s, c) : vec2(c, s);
  return turn > 1 ? -turned : turned;
}

float scoreOf(int head, vec2 c, vec2 s) {
  int at = head * 11;
  return terms[at] + terms[at + 1] * c.x + terms[at + 2] * s.x + terms[at + 3] * c.y + terms[at + 4] * s.y
    + terms[at + 5] * (c.y * c.y - s.y * s.y) + terms[at + 6] * 2.0 * s.y * c.y
    + terms[at + 7] * (c.x * c.y - s.x * s.y) + terms[at + 8] * (s.x * c.y + c.x * s.y)
    + terms[at + 9] * (c.x * c.y + s.x * s.y) + terms[at + 10] * (s.x * c.y - c.x * s.y);
}

float scoreOf(int head, vec2 theta) {
  vec2 one = circle(theta.x), two = circle(theta.y);
  return scoreOf(head, vec2(one.x, two.x), vec2(one.y, two.y));
}

float attentionOf(float score) {
  if (temperature == 0.0) return score > 0.0 ? 1.0 : 0.0;
  return 1.0 / (1.0 + exp(-score / temperature));
}

vec3 outputAt(vec2 theta) {
  vec2 one = circle(theta.x), two = circle(theta.y);
  vec2 c = vec2(one.x, two.x), s = vec2(one.y, two.y);
  vec3 first = one.x * U + one.y * V + positions[0];
  vec3 word = two.x * U + two.y * V;
  vec3 second = word + positions[1];
  vec3 sum = carried.x * word + carried.y * positions[1];
  for (int h = 0; h < HEADS; ++h) {
    float a = attentionOf(scoreOf(h, c, s));
    sum += weights[h] * (values[h] * (a * first + (1.0 - a) * second));
  }
  return sum;
}

/** The most probable token at an output, the first of equals, and its probability. */
int predictedAt(vec3 outcome, out float probability) {
  float logits[TOKENS];
  int best = 0;
  float largest = -3.4e38;
  for (int k = 0; k < TOKENS; ++k) {
    logits[k] = dot(unembedding[k], outcome);
    if (logits[k] > largest) {
      largest = logits[k];
      best = k;
    }
  }
  float sum = 0.0;
  for (int k = 0; k < TOKENS; ++k) sum += exp(logits[k] - largest);
  probability = 1.0 / sum;
  return best;
}
`;

/** Where a point of the torus is drawn. */
const PLACE = `
uniform mat3 camera;   // rows: rightward, upward, toward the viewer
uniform vec2 zoom;     // of the plane to that of the canvas
uniform vec3 shift;    // of the scene, before it is turned
uniform float shape;   // 0 the square, 1 the torus in space, 2 the outputs
uniform vec3 center;   // of the outputs
uniform vec3 extent;   // half the size of the outputs along each axis
uniform bool onSphere; // outputs are shown by their directions

vec3 placeOf(vec2 theta) {
  if (onSphere) return normalize(outputAt(theta));
  vec3 square = vec3(theta.x, 0.0, theta.y) / 3.14159265;
  float tube = 0.42;
  vec3 round = vec3((1.0 + tube * cos(theta.y)) * cos(theta.x), (1.0 + tube * cos(theta.y)) * sin(theta.x), tube * sin(theta.y)) / 1.3;
  vec3 moved = mix(square, round, clamp(shape, 0.0, 1.0));
  if (shape > 1.0) moved = mix(moved, (outputAt(theta) - center) / extent, shape - 1.0);
  return moved;
}

vec4 projected(vec3 place) {
  vec3 seen = camera * (place - shift);
  return vec4(seen.xy * zoom, -seen.z * 0.2, 1.0);
}
`;

const HEAD = `precision highp float;
precision highp int;
`;

/** Of the grid of a surface, whose points are angles; those of a sphere are its own. */
export const surfaceVertices = (heads, tokens) => `${VERSION}${HEAD}${transformer(heads, tokens)}${PLACE}
uniform bool isSphere;
in vec2 theta;
out vec2 angles;
out vec3 place;
void main() {
  angles = theta;
  if (isSphere) place = vec3(cos(theta.x) * cos(0.5 * theta.y), sin(theta.x) * cos(0.5 * theta.y), sin(0.5 * theta.y));
  else place = placeOf(theta);
  gl_Position = projected(place);
}
`;

/** Colors of pixels. kind: 0 the class, paler where it is less certain; 1 the attention of a head; 2 the sign of its
score; 3 the angles themselves, to find what is below the pointer. */
export const surfacePixels = (heads, tokens) => `${VERSION}${HEAD}${transformer(heads, tokens)}
uniform vec3 colors[TOKENS];
uniform int kind;
uniform int head;
uniform float largest; // magnitude of the score
uniform bool isLit;
uniform bool isSphere;
uniform mat3 camera;
uniform vec3 boundary;
in vec2 angles;
in vec3 place;
out vec4 color;

vec3 classColor(vec3 outcome) {
  float probability;
  int best = predictedAt(outcome, probability);
  float chance = 1.0 / float(TOKENS);
  float certainty = isSphere ? 1.0 : clamp((probability - chance) / (1.0 - chance), 0.0, 1.0);
  return mix(vec3(1.0), colors[best], certainty);
}

/** Blue below 0, white, red above. */
vec3 signed(float value) {
  vec3 dark = value < 0.0 ? vec3(0.031, 0.322, 0.612) : vec3(0.651, 0.059, 0.078);
  vec3 middle = value < 0.0 ? vec3(0.62, 0.788, 0.878) : vec3(0.988, 0.62, 0.49);
  float size = min(abs(value), 1.0);
  return size < 0.5 ? mix(vec3(1.0), middle, 2.0 * size) : mix(middle, dark, 2.0 * size - 1.0);
}

void main() {
  if (kind == 3) {
    vec2 turns = fract(angles / 6.283185307179586 + 0.5);
    vec2 coarse = floor(turns * 255.99609375), fine = fract(turns * 255.99609375);
    color = vec4(coarse.x / 255.0, fine.x, coarse.y / 255.0, fine.y);
    return;
  }
  vec3 shown;
  if (kind == 0) shown = classColor(isSphere ? place : outputAt(angles));
  else {
    float score = scoreOf(head, angles);
    if (kind == 1) shown = vec3(1.0 - attentionOf(score));
    else {
      shown = signed(score / largest);
      float line = abs(score) / max(fwidth(score), 1e-20);
      shown = mix(boundary, shown, smoothstep(1.0, 2.0, line));
    }
  }
  if (isLit) {
    vec3 normal = normalize(cross(dFdx(place), dFdy(place)));
    shown *= 0.6 + 0.4 * abs((camera * normal).z);
  }
  color = vec4(shown, 1.0);
}
`;

/** Of dots at points of the torus, or at directions; in front of the surface that they lie on. */
export const dotVertices = (heads, tokens) => `${VERSION}${HEAD}${transformer(heads, tokens)}${PLACE}
in vec3 dot_place;  // two angles; or a direction
in vec3 dot_color;
in vec2 dot_look;   // radius in pixels; 0 a disc, 1 a ring
uniform bool isDirection;
out vec3 paint;
out vec2 look;
void main() {
  paint = dot_color;
  look = dot_look;
  gl_Position = projected(isDirection ? normalize(dot_place) : placeOf(dot_place.xy));
  gl_Position.z -= 0.012;
  gl_PointSize = 2.0 * dot_look.x + 2.0;
}
`;

export const dotPixels = `${VERSION}${HEAD}
in vec3 paint;
in vec2 look;
out vec4 color;
void main() {
  float radius = look.x;
  float from = length(gl_PointCoord - 0.5) * (2.0 * radius + 2.0);
  float alpha = 1.0 - smoothstep(radius - 0.5, radius + 0.5, from);
  if (look.y > 0.5) {
    alpha *= smoothstep(radius - 5.5, radius - 4.5, from);
    float middle = smoothstep(radius - 4.2, radius - 3.4, from) * (1.0 - smoothstep(radius - 1.6, radius - 0.8, from));
    color = vec4(mix(vec3(0.0), vec3(1.0), middle), alpha);
  } else {
    // A white and a black line around the disc, so that it is seen on its own color too.
    float black = smoothstep(radius - 1.5, radius - 1.0, from);
    float white = smoothstep(radius - 3.0, radius - 2.5, from);
    color = vec4(mix(mix(paint, vec3(1.0), white), vec3(0.0), black), alpha);
  }
  color.rgb *= color.a;
}
`;

/** Numbers for tests: a row of points, each with its output and the probability of its class, or its attention. */
export const probePixels = (heads, tokens) => `${VERSION}${HEAD}${transformer(heads, tokens)}
uniform sampler2D points;
uniform int kind;
out vec4 color;
void main() {
  vec2 theta = texelFetch(points, ivec2(gl_FragCoord.xy), 0).xy;
  vec3 outcome = outputAt(theta);
  float probability;
  int best = predictedAt(outcome, probability);
  if (kind == 0) color = vec4(outcome, probability);
  else color = vec4(scoreOf(0, theta), attentionOf(scoreOf(0, theta)), scoreOf(HEADS - 1, theta), float(best));
}
`;

export const probeVertices = `${VERSION}
in vec2 theta;
void main() { gl_Position = vec4(theta, 0.0, 1.0); }
`;
