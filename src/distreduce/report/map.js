// The map: draws the samples into one image and the prototypes above them, and finds what lies under the pointer.

const LEAST_PADDING = 34;
const RING = 7; // how far the widest ring lies outside its mark
const CROWDED = 0.5; // largest radius of a typical mark, relative to the distance to the next, as in plotting/embedding.py
const LEAST_SHRINK = 0.6; // of the radius: smaller marks could not be told from samples, as in plotting/embedding.py
const MAX_ZOOM = 30;
const MOVE = 450; // milliseconds from the left-out to the fitted places
const state = {
  colouring: 0, zoom: 1, x: 0.5, y: 0.5, selected: -1, focused: -1, hovered: -1, highlighted: -1,
  fitted: false, // whether the map shows the places of the fit
  pointed: -1, // the sample of a criticism, or one that was searched
  choosing: false, // whether the pointer draws a lasso
  lasso: [], // its corners in pixels
  chosen: null, // a flag per sample: whether it lies inside
  newRow: null, // the place of a typed row
};
const view = { width: 0, height: 0, ratio: 1, radii: [], padding: LEAST_PADDING };
const layers = { samples: byId("samples"), prototypes: byId("prototypes") };
const current = () => data.colourings[state.colouring];
let colours = { samples: null, prototypes: [], shapes: [], shares: [] };

// A picture that is nearly a line needs no square: the map is as high as the picture at full width, within limits.
function fitHeight(map) {
  const [x0, x1, y0, y1] = data.box;
  map.style.height = "";
  if (data.line) return;
  const { width, height } = map.getBoundingClientRect();
  const wanted = (width - 2 * LEAST_PADDING) * ((y1 - y0) / (x1 - x0 || 1)) + 6 * LEAST_PADDING;
  if (wanted < height) map.style.height = `${Math.max(wanted, 0.45 * height)}px`;
}

function resize() {
  fitHeight(byId("map"));
  const box = byId("map").getBoundingClientRect();
  view.width = Math.max(box.width, 60);
  view.height = Math.max(box.height, 60);
  view.ratio = Math.min(window.devicePixelRatio || 1, 2); // a finer image would only cost time
  for (const layer of Object.values(layers)) {
    layer.width = Math.round(view.width * view.ratio);
    layer.height = Math.round(view.height * view.ratio);
  }
  const area = 0.055 * view.width * view.height; // that all discs share
  const smallest = data.oneToOne ? 2.5 : 3.5;
  const radii = data.prototypes.weight.map((w) => Math.sqrt((w * area) / Math.PI));
  view.radii = radii;
  const share = data.oneToOne ? 1 : Math.min(1, Math.max(LEAST_SHRINK, (CROWDED * middle(nextDistances())) / middle(radii)));
  view.radii = radii.map((radius) => Math.min(40, Math.max(smallest, share * radius)));
  view.padding = padding();
}

const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] || 1;

// The distance in pixels from each prototype to the next one, when all are in sight.
function nextDistances() {
  const zoom = state.zoom;
  state.zoom = 1;
  const all = data.prototypes.number.map((_, k) => placeOf(k));
  state.zoom = zoom;
  return all.map(([x, y], k) => all.reduce((least, [a, b], j) => (j === k ? least : Math.min(least, Math.hypot(a - x, b - y))), Infinity));
}

// Wide enough that no mark at the edge is cut off, with any shape and its ring.
function padding() {
  const shapes = data.colourings.flatMap((each) => (each.kind === "class" ? each.shapes : [0]));
  const reach = shapes.reduce((most, shape) => Math.max(most, reaches[shape]), 1);
  return view.radii.reduce((most, radius) => Math.max(most, radius * reach + RING), LEAST_PADDING);
}

// From steps of the box to pixels: equal scales on both axes, unless one dimension is drawn against the target.
function frame() {
  const [x0, x1, y0, y1] = data.box;
  const spare = [view.width, view.height].map((side) => Math.max(side - 2 * view.padding, 1));
  const size = [x1 - x0 || 1, y1 - y0 || 1];
  let scale = [spare[0], spare[1]];
  if (!data.line) {
    const unit = Math.min(spare[0] / size[0], spare[1] / size[1]);
    scale = [unit * size[0], unit * size[1]];
  }
  const [sx, sy] = scale.map((part) => part * state.zoom);
  return { ax: sx / STEPS, bx: view.width / 2 - state.x * sx, ay: -sy / STEPS, by: view.height / 2 + state.y * sy, sx, sy };
}

const placeOf = (k, f = frame()) => [f.ax * places.px[k] + f.bx, f.ay * places.py[k] + f.by];

function recolour() {
  colours = {
    samples: sampleColours(current()), prototypes: prototypeColours(current()),
    shapes: prototypeShapes(current()), shares: mainShares(current()),
  };
  draw();
}

// Any number of changes within one frame are drawn once.
let waiting = false;
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawSamples();
    drawPrototypes();
  });
}

// Show the places of the fit, or where samples would lie had they not been in it; they move there before one's eyes.
let moves = 0;
function showFitted(fitted) {
  const [from, to] = [places, fitted ? fittedPlaces : shownPlaces];
  state.fitted = fitted;
  labels = to.labels;
  const [own, began] = [++moves, performance.now()];
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || nSamples > 20000;
  const step = () => {
    if (own !== moves) return; // switched again
    const share = still ? 1 : Math.min(1, (performance.now() - began) / MOVE);
    places = share < 1 ? between(from, to, share * share * (3 - 2 * share)) : to;
    drawSamples();
    drawPrototypes();
    if (share < 1) requestAnimationFrame(step);
  };
  recolour();
  step();
}

const between = (a, b, share) => Object.fromEntries(["x", "y", "px", "py"].map((name) =>
  [name, Float32Array.from(a[name], (place, i) => place + (b[name][i] - place) * share)]));

const isDubious = (k) => Boolean(data.evidence && data.evidence.dubious[k]);

function isFaded(i) {
  if (state.chosen) return !state.chosen[i];
  if (state.selected >= 0) return labels[i] !== state.selected;
  return state.highlighted >= 0 && current().codes[i] !== state.highlighted;
}

// Samples are blended by hand into one image: 50,000 of them take one frame, where as many paths take ten.
function drawSamples() {
  const { width, height } = layers.samples;
  const context = layers.samples.getContext("2d");
  const image = context.createImageData(width, height);
  if (data.oneToOne && nPrototypes === nSamples) return context.putImageData(image, 0, 0);
  const [red0, green0, blue0] = fromHex(cssColour("card"));
  new Uint32Array(image.data.buffer).fill((255 << 24) | (blue0 << 16) | (green0 << 8) | red0);
  // The more samples, the smaller and fainter their dots.
  const crowd = nSamples > 20000 ? 0 : nSamples > 3000 ? 1 : 2;
  const radius = [1.2, 1.6, 2.1][crowd] * view.ratio * Math.min(1.5, Math.sqrt(state.zoom));
  const stamps = data.shapes.map((_, shape) => stamp(radius, shape));
  const codes = current().codes;
  const alpha = [0.4, 0.5, 0.6][crowd];
  const fading = Boolean(state.chosen) || state.selected >= 0 || state.highlighted >= 0;
  const faint = fromHex(cssColour("faint"));
  const f = frame();
  // Faded samples first, so that those of the selection lie above them.
  for (const pass of fading ? ["faded", "full"] : ["full"])
    for (let i = 0; i < nSamples; i++) {
      if (fading && isFaded(i) !== (pass === "faded")) continue;
      const x = Math.round((f.ax * places.x[i] + f.bx) * view.ratio);
      const y = Math.round((f.ay * places.y[i] + f.by) * view.ratio);
      if (x < -4 || y < -4 || x > width + 4 || y > height + 4) continue; // out of sight
      const dot = stamps[codes ? shapeOf(current(), codes[i]) : 0];
      const red = pass === "full" ? colours.samples[3 * i] : faint[0];
      const green = pass === "full" ? colours.samples[3 * i + 1] : faint[1];
      const blue = pass === "full" ? colours.samples[3 * i + 2] : faint[2];
      for (let s = 0; s < dot.length; s++) {
        const a = x + dot[s][0], b = y + dot[s][1];
        if (a < 0 || b < 0 || a >= width || b >= height) continue;
        const at = 4 * (b * width + a), share = dot[s][2] * (fading && pass === "full" ? 0.85 : alpha);
        image.data[at] += (red - image.data[at]) * share;
        image.data[at + 1] += (green - image.data[at + 1]) * share;
        image.data[at + 2] += (blue - image.data[at + 2]) * share;
      }
    }
  context.putImageData(image, 0, 0);
}

function drawPrototypes() {
  const context = layers.prototypes.getContext("2d");
  context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  paintPrototypes(context);
  if (state.lasso.length) paintLasso(context);
}

// What lies above the samples, on a canvas or as SVG.
function paintPrototypes(context) {
  const f = frame();
  const [card, ink] = [cssColour("card"), cssColour("ink")];
  const inside = state.chosen && new Set(labels.filter((_, i) => state.chosen[i]));
  for (let k = 0; k < nPrototypes; k++) {
    const dim = inside ? !inside.has(k) : state.selected >= 0 ? k !== state.selected
      : state.highlighted >= 0 && mainClass(current(), k) !== state.highlighted;
    context.globalAlpha = dim ? 0.42 : k === state.selected ? 0.95 : 0.85; // samples shine through
    const dubious = isDubious(k);
    const edge = dubious ? ink : dark ? "rgb(255 255 255 / .6)" : card;
    mark(context, placeOf(k, f), view.radii[k], colours.shapes[k], toCss(colours.prototypes[k]), edge, { share: colours.shares[k], dubious });
  }
  // Rings above all marks: under the pointer, selected, focused by the keyboard.
  context.globalAlpha = 1;
  for (const [k, colour, gap, thick] of [[state.hovered, ink, 1.5, 1.5], [state.selected, ink, 3, 3], [state.focused, cssColour("accent"), 5.5, 2.5]])
    if (k >= 0) ring(context, placeOf(k, f), view.radii[k] * reaches[colours.shapes[k]] + gap, colour, thick);
  if (state.pointed >= 0) pointOut(context, f);
  if (state.newRow) paintNewRow(context, f);
  if (current().kind === "class" && current().labels.length <= 30) nameClasses(context, f, card, ink);
  nameAxes(context);
}

function paintLasso(context) {
  context.beginPath();
  for (const corner of state.lasso) context.lineTo(...corner);
  context.closePath();
  context.lineWidth = 2;
  context.setLineDash([5, 4]);
  context.strokeStyle = cssColour("accent");
  context.stroke();
  context.setLineDash([]);
}

// Choose the samples inside the lasso, or none.
function choose() {
  const [f, corners] = [frame(), state.lasso];
  close();
  const flags = Uint8Array.from({ length: nSamples }, (_, i) =>
    Number(isInside([f.ax * places.x[i] + f.bx, f.ay * places.y[i] + f.by], corners)));
  const count = flags.reduce((sum, flag) => sum + flag, 0);
  [state.lasso, state.chosen] = [[], count ? flags : null];
  say(count ? `${count.toLocaleString("en")} of ${nSamples.toLocaleString("en")} rows chosen.` : "The lasso holds no row.");
  draw();
}

// The sample of a criticism, and the way to its nearest prototype.
function pointOut(context, f) {
  const place = [f.ax * places.x[state.pointed] + f.bx, f.ay * places.y[state.pointed] + f.by];
  context.beginPath();
  context.moveTo(...place);
  if (labels[state.pointed] < nPrototypes) context.lineTo(...placeOf(labels[state.pointed], f));
  context.lineWidth = 1.5;
  context.strokeStyle = cssColour("accent");
  context.stroke();
  ring(context, place, 6, cssColour("accent"), 3);
}

// Write the name of each class on its heaviest prototype: nobody can tell twenty colours apart.
function nameClasses(context, f, card, ink) {
  const [named, taken] = [new Set(), []];
  context.font = "600 13px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3.5;
  for (let k = 0; k < nPrototypes; k++) {
    const main = mainClass(current(), k);
    if (main < 0 || named.has(main)) continue;
    named.add(main);
    const [x, y] = placeOf(k, f);
    const text = shorten(current().labels[main], 24);
    const half = 4 * text.length; // about half its width in pixels
    if (taken.some(([a, b, other]) => Math.abs(a - x) < half + other && Math.abs(b - y) < 15)) continue; // no name over another
    taken.push([x, y, half]);
    context.strokeStyle = card;
    context.strokeText(text, x, y);
    context.fillStyle = ink;
    context.fillText(text, x, y);
  }
}

function nameAxes(context) {
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = cssColour("soft");
  context.textAlign = "right";
  context.textBaseline = "alphabetic";
  context.fillText(`${data.axes[0]} →`, view.width - 6, view.height - 7);
  if (!data.axes[1]) return;
  context.save();
  context.translate(13, 6);
  context.rotate(-Math.PI / 2);
  context.fillText(`${data.axes[1]} →`, 0, 0);
  context.restore();
}

// The prototype under a point (light ones lie above heavy ones), or else the nearest sample within a few pixels.
function under(x, y, reach) {
  const f = frame();
  for (let k = nPrototypes - 1; k >= 0; k--) {
    const [a, b] = placeOf(k, f);
    if (covers(x - a, y - b, view.radii[k] + 1, colours.shapes[k], reach)) return { prototype: k, sample: -1 };
  }
  let sample = -1, best = reach * reach;
  for (let i = 0; i < nSamples; i++) {
    const dx = f.ax * places.x[i] + f.bx - x, dy = f.ay * places.y[i] + f.by - y;
    const far = dx * dx + dy * dy;
    if (far < best) [best, sample] = [far, i];
  }
  return { prototype: -1, sample };
}

function zoomBy(factor, x = view.width / 2, y = view.height / 2) {
  const before = frame();
  // The point under the pointer stays where it is.
  const u = (x - before.bx) / before.sx, v = (before.by - y) / before.sy;
  state.zoom = Math.min(MAX_ZOOM, Math.max(1, state.zoom * factor));
  const after = frame();
  state.x = u - (x - view.width / 2) / after.sx;
  state.y = v + (y - view.height / 2) / after.sy;
  keepInside();
}

function keepInside() {
  if (state.zoom === 1) [state.x, state.y] = [0.5, 0.5];
  state.x = Math.min(1, Math.max(0, state.x));
  state.y = Math.min(1, Math.max(0, state.y));
  byId("map").classList.toggle("zoomed", state.zoom > 1);
  draw();
}

// The nearest prototype in a direction: distance across the direction counts more than distance along it.
function neighbour(k, dx, dy) {
  const f = frame();
  const [x, y] = placeOf(k, f);
  let best = k, least = Infinity;
  for (let j = 0; j < nPrototypes; j++) {
    const [a, b] = placeOf(j, f);
    const along = (a - x) * dx + (b - y) * dy, across = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
    if (j !== k && along > 0.5 && along + 2.5 * across < least) [best, least] = [j, along + 2.5 * across];
  }
  return best;
}
