// Heat maps of the targets: one column per prototype, one row per class or bin of the target.

function heatLayout(canvas) {
  const target = data.distributions[canvas.dataset.target];
  const each = (state.fitted && target.believed) || target;
  const width = Math.max(canvas.clientWidth, 60);
  const size = each.labels.length;
  // Rows share 260 pixels, each within limits; beyond 60 classes they may be thin.
  const cell = Math.min(24, Math.max(size > 60 ? 3 : 8, 260 / size));
  const left = Math.min(Math.max(...each.labels.map((label) => label.length)) * 6.6 + 16, 190, width * 0.34);
  return { each, width, size, cell, left, step: (width - left) / each.order.length, height: size * cell + 34 };
}

function drawHeatMap(canvas) {
  const { each, width, size, cell, left, step, height } = heatLayout(canvas);
  canvas.style.height = `${height}px`;
  canvas.width = width * view.ratio;
  canvas.height = height * view.ratio;
  const context = canvas.getContext("2d");
  context.scale(view.ratio, view.ratio);
  const [card, heat] = [fromHex(cssColour("card")), fromHex(cssColour("heat"))];
  // Cells overlap by 0.4 pixels, or thin lines would show between them.
  each.order.forEach((k, column) => {
    for (let c = 0; c < size; c++) {
      context.fillStyle = toCss(mix(card, heat, each.shares[k * size + c]));
      context.fillRect(left + column * step, (size - 1 - c) * cell, step + 0.4, cell + 0.4);
    }
  });
  context.strokeStyle = cssColour("line");
  context.strokeRect(left, 0.5, width - left - 1, size * cell);
  context.fillStyle = cssColour("soft");
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "middle";
  // Names and numbers: as many as fit without touching.
  const every = Math.ceil(12 / cell);
  for (let c = 0; c < size; c += every) context.fillText(fitted(context, each.labels[c], left - 10, Boolean(each.mean)), left - 6, (size - 0.5 - c) * cell);
  context.textAlign = "center";
  const thin = Math.ceil(30 / step);
  each.order.forEach((k, column) => column % thin || context.fillText(data.prototypes.number[k], left + (column + 0.5) * step, size * cell + 11));
  context.textAlign = "right";
  context.fillText("number of the prototype →", width - 2, size * cell + 26);
  // A frame around the selected prototype.
  const at = each.order.indexOf(state.selected);
  if (at < 0) return;
  context.strokeStyle = cssColour("ink");
  context.lineWidth = 2;
  context.strokeRect(left + at * step, 1, Math.max(step, 2), size * cell - 1);
}

// A name in the room that it has: a range keeps its lower end, other names their two ends.
function fitted(context, text, room, isRange = false) {
  if (context.measureText(text).width <= room) return text;
  if (isRange) return fitted(context, `${text.split(" to ")[0]} …`, room);
  let size = text.length;
  while (size > 2 && context.measureText(shorten(text, size)).width > room) size--;
  return shorten(text, size);
}

const drawHeatMaps = () => document.querySelectorAll("canvas.heat").forEach(drawHeatMap);

function heatUnder(canvas, event) {
  const { each, size, cell, left, step } = heatLayout(canvas);
  const box = canvas.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - left) / step);
  const c = size - 1 - Math.floor((event.clientY - box.top) / cell);
  if (column < 0 || column >= each.order.length || c < 0 || c >= size) return null;
  return { k: each.order[column], label: each.labels[c], share: each.shares[each.order[column] * size + c] };
}
