// Marks: discs, and other shapes of the same area if there are more classes than safe colours.

const SWATCH = 14;

const shapeOf = (colouring, code) => (colouring.kind === "class" && code !== MISSING ? colouring.shapes[code] : 0);
const prototypeShapes = (colouring) =>
  Array.from({ length: nPrototypes }, (_, k) => (colouring.kind === "class" ? colouring.shapes[mainClass(colouring, k)] || 0 : 0));
// How far a shape reaches from its middle, in radii of the disc.
const reaches = data.shapes.map((corners) => (corners ? Math.max(...corners.map(([a, b]) => Math.hypot(a, b))) : 1));

const INSIDE = 0.8; // the radius inside the rim of a mixed mark, as in plotting/palette.py

// One outline, or several around the same middle.
function outline(context, [x, y], radii, shape) {
  const corners = data.shapes[shape];
  context.beginPath();
  for (const radius of [radii].flat()) {
    const [a, b] = corners ? corners[0] : [1, 0];
    context.moveTo(x + radius * a, y - radius * b);
    if (!corners) context.arc(x, y, radius, 0, 2 * Math.PI);
    else for (const [c, d] of corners.slice(1)) context.lineTo(x + radius * c, y - radius * d);
    context.closePath();
  }
}

// Where several classes meet (`share` is that of the most frequent), a rim and a core; a dubious prototype has a dashed edge.
function mark(context, place, radius, shape, fill, edge, { share = 1, dubious = false } = {}) {
  outline(context, place, radius, shape);
  if (share < PURE) {
    context.fillStyle = cssColour("card");
    context.fill();
    outline(context, place, [1, INSIDE, INSIDE * Math.sqrt(share)].map((part) => part * radius), shape);
  }
  context.fillStyle = fill;
  context.fill("evenodd");
  outline(context, place, radius, shape);
  if (dubious) context.setLineDash([3.5, 2.5]);
  context.lineWidth = dubious ? 1.6 : Math.min(1.5, radius / 3);
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
function swatch(rgb, shape, edge = "soft", look = {}) {
  const size = SWATCH * view.ratio;
  const canvas = make("canvas", { class: "swatch-mark", width: size, height: size, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.scale(view.ratio, view.ratio);
  const radius = Math.min(5.5, (SWATCH / 2 - 1) / reaches[shape]);
  mark(context, [SWATCH / 2, SWATCH / 2 + (shape === 2 ? 1 : 0)], radius, shape, toCss(rgb), cssColour(edge), look);
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
