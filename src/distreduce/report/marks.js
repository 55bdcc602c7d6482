// Marks: discs, and other shapes of the same area if there are more classes than safe colours.

const SWATCH = 14;

const shapeOf = (colouring, code) => (colouring.kind === "class" && code !== MISSING ? colouring.shapes[code] : 0);
const prototypeShapes = (colouring) =>
  Array.from({ length: nPrototypes }, (_, k) => (colouring.kind === "class" ? colouring.shapes[mainClass(colouring, k)] : 0));
// How far a shape reaches from its middle, in radii of the disc.
const reaches = data.shapes.map((corners) => (corners ? Math.max(...corners.map(([a, b]) => Math.hypot(a, b))) : 1));

function outline(context, [x, y], radius, shape) {
  context.beginPath();
  if (!data.shapes[shape]) context.arc(x, y, radius, 0, 2 * Math.PI);
  else for (const [a, b] of data.shapes[shape]) context.lineTo(x + radius * a, y - radius * b);
  context.closePath();
}

function mark(context, place, radius, shape, fill, edge) {
  outline(context, place, radius, shape);
  context.fillStyle = fill;
  context.fill();
  context.lineWidth = Math.min(1.5, radius / 3);
  context.strokeStyle = edge;
  context.stroke();
}

// A dubious prototype: pale, with a dashed edge.
function markDubious(context, place, radius, shape, fill, edge) {
  const strength = context.globalAlpha;
  outline(context, place, radius, shape);
  context.globalAlpha = 0.4 * strength;
  context.fillStyle = fill;
  context.fill();
  context.globalAlpha = strength;
  context.setLineDash([3.5, 2.5]);
  context.lineWidth = 1.6;
  context.strokeStyle = edge;
  context.stroke();
  context.setLineDash([]);
}

function ring(context, place, radius, colour, thick) {
  outline(context, place, radius, 0);
  context.lineWidth = thick;
  context.strokeStyle = colour;
  context.stroke();
}

// The mark of a class beside its name, drawn as on the map.
function swatch(rgb, shape) {
  const size = SWATCH * view.ratio;
  const canvas = make("canvas", { class: "swatch-mark", width: size, height: size, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.scale(view.ratio, view.ratio);
  const radius = Math.min(5.5, (SWATCH / 2 - 1) / reaches[shape]);
  mark(context, [SWATCH / 2, SWATCH / 2 + (shape === 2 ? 1 : 0)], radius, shape, toCss(rgb), cssColour("soft"));
  return canvas;
}

function isInside([x, y], corners) {
  let inside = false;
  corners.forEach(([a, b], i) => {
    const [c, d] = corners[(i + 1) % corners.length];
    if (b > y !== d > y && x < a + ((c - a) * (y - b)) / (d - b)) inside = !inside;
  });
  return inside;
}

// Whether a mark covers a point beside its middle; small marks count as wide as `reach`.
function covers(dx, dy, radius, shape, reach) {
  if (Math.hypot(dx, dy) <= (data.shapes[shape] ? reach : Math.max(radius, reach))) return true;
  return Boolean(data.shapes[shape]) && isInside([dx / radius, -dy / radius], data.shapes[shape]);
}

// The share of each pixel that a shape covers: for a disc by its rim, for others by sixteen points per pixel.
function stamp(radius, shape) {
  const corners = data.shapes[shape];
  const reach = Math.ceil(radius * reaches[shape]);
  const cover = [];
  for (let dy = -reach; dy <= reach; dy++)
    for (let dx = -reach; dx <= reach; dx++) {
      const share = corners ? coverage(dx, dy, radius, corners) : Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(dx, dy)));
      if (share > 0) cover.push([dx, dy, share]);
    }
  return cover;
}

function coverage(dx, dy, radius, corners) {
  let hits = 0;
  for (let part = 0; part < 16; part++) {
    const [x, y] = [dx + (part % 4) / 4 - 0.375, dy + Math.floor(part / 4) / 4 - 0.375];
    if (isInside([x / radius, -y / radius], corners)) hits++;
  }
  return hits / 16;
}
