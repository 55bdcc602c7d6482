// The form of a new row: its fields, its mark on the map, and what map and predictor say of it.

const SHOWN_PROTOTYPES = 3;
const SHOWN_COLUMNS = 5;
const PAUSE = 200; // milliseconds without a key before columns are compared
const DAY = 86400000; // milliseconds
const form = { inputs: [], from: -1, serial: 0, columns: document.createElement("div") };

// The control of a column; the codes are those of the recipe: numbers, days, 0 and 1, or the index of a level.
function makeControl(field) {
  if (field.kind === "category" || field.kind === "boolean") {
    const levels = field.kind === "boolean" ? [[1, "true"], [0, "false"]] : field.levels.map((level, c) => [c, level]);
    if (field.kind === "category") levels.push([field.levels.length, field.other ? "another level" : "none of these"]);
    return make("select", {}, make("option", { value: "" }, "missing"), ...levels.map(([code, text]) => make("option", { value: code }, text)));
  }
  if (field.kind === "date") return make("input", { type: field.whole ? "date" : "datetime-local" });
  return make("input", { type: "number", step: "any", autocomplete: "off" });
}

function setCode(control, field, code) {
  if (code === null) control.value = "";
  else if (field.kind === "date") control.value = new Date(code * DAY).toISOString().slice(0, field.whole ? 10 : 16);
  else if (field.kind === "number") {
    // Six digits of the range: large numbers that hardly differ need more.
    const more = Math.log10(Math.max(-field.low, field.high) / (field.high - field.low));
    control.value = String(Number(code.toPrecision(Math.min(17, 6 + Math.max(0, Math.ceil(more) || 0)))));
  }
  else control.value = String(code);
}

// The code of a control; null if it is empty, NaN if it cannot be read.
function getCode(control, field) {
  if (control.validity.badInput) return NaN;
  if (control.value === "") return null;
  if (field.kind === "date") return Date.parse(`${control.value}${field.whole ? "T00:00" : ""}Z`) / DAY;
  return Number(control.value);
}

// Years are not written as 2,024.
const codeText = (field, code) => (field.kind === "date" ? numberText(code * DAY, "date")
  : Math.abs(code) < 1e4 ? numberText(code).replace(",", "") : numberText(code));

function hint(field, code) {
  const fate = field.kind !== "category" ? "filled in as at the fit" : field.flag ? "a level of its own" : "none of the levels";
  const filled = data.newRow.missing === "impute" ? `empty: ${fate}` : "must not be empty";
  if (Number.isNaN(code)) return ["not a number", true];
  if (code === null) return [filled, data.newRow.missing !== "impute"];
  if (field.kind === "category") return code === field.levels.length ? ["a level that the fit did not know", true] : ["", false];
  if (field.kind === "boolean") return ["", false];
  const range = `${codeText(field, field.low)} to ${codeText(field, field.high)}`;
  return code < field.low || code > field.high ? [`beyond the fit: ${range}`, true] : [range, false];
}

function fillForm(k) {
  form.from = k;
  data.newRow.fields.forEach((field, at) => setCode(form.inputs[at].control, field, data.newRow.medoids[k][at]));
  byId("new-from").textContent = `Begun with the medoid of prototype ${data.prototypes.number[k]}.`;
  readForm();
}

// Begin with a prototype's medoid, from its panel.
function tryChanges(k) {
  byId("new-row-box").open = true;
  fillForm(k);
  close();
  byId("new-row").scrollIntoView({ block: "start" });
}

async function readForm() {
  const codes = data.newRow.fields.map((field, at) => getCode(form.inputs[at].control, field));
  const troubles = [];
  data.newRow.fields.forEach((field, at) => {
    const [text, strange] = hint(field, codes[at]);
    form.inputs[at].hint.textContent = text;
    form.inputs[at].hint.classList.toggle("strange", strange);
    if (Number.isNaN(codes[at]) || (codes[at] === null && data.newRow.missing !== "impute")) troubles.push(field.name);
  });
  const own = ++form.serial;
  const box = byId("new-result");
  if (troubles.length) {
    state.newRow = null;
    box.replaceChildren(make("p", { class: "warning" }, `Give a value for ${troubles.join(", ")}.`));
    return draw();
  }
  if (typeof DecompressionStream === "undefined") {
    box.replaceChildren(make("p", { class: "warning" }, "This browser is too old to unpack the map (it lacks DecompressionStream)."));
    return undefined;
  }
  const formulas = await loadFormulas();
  const found = evaluate(formulas, codes);
  if (own !== form.serial) return undefined; // the form has changed meanwhile
  form.result = found;
  placeNewRow(found);
  // The list of columns stays until the next one is known: on a phone the fields below must not jump.
  box.replaceChildren(...describeNewRow(found), form.columns);
  setTimeout(() => { if (own === form.serial) form.columns.replaceChildren(...describeColumns(compareColumns(formulas, codes, found))); }, PAUSE);
  return draw();
}

// What each column does to this row: how prediction and place change if it alone has its typical value.
function compareColumns(formulas, codes, found) {
  const [x0, x1, y0, y1] = data.box;
  const changes = data.newRow.fields.flatMap((field, at) => {
    if (codes[at] === field.typical) return [];
    const other = evaluate(formulas, codes.map((code, j) => (j === at ? field.typical : code)), false);
    const moved = Math.sqrt(squaredDistance(other.place, found.place)) / (Math.hypot(x1 - x0, y1 - y0) || 1);
    // Half the sum of the changes of all probabilities, or the change of the first mean in units of its range.
    const size = found.probabilities ? found.probabilities.reduce((sum, p, c) => sum + Math.abs(p - other.probabilities[c]) / 2, 0)
      : found.numbers ? Math.abs(other.numbers[0].mean - found.numbers[0].mean) / (data.colourings[0].high - data.colourings[0].low || 1) : moved;
    return [{ field, other, moved, size }];
  });
  form.changes = changes.sort((a, b) => b.size - a.size).filter((each) => each.size > 0.001);
  return form.changes;
}

function describeColumns(changes) {
  if (!changes.length) return [];
  const { probabilities, numbers } = form.result;
  const top = probabilities ? probabilities.indexOf(Math.max(...probabilities)) : -1;
  const value = (result) => (probabilities ? percent(result.probabilities[top]) : numberText(result.numbers[0].mean));
  const name = probabilities ? `“${shorten(data.newRow.predictor.classes[top], 28)}”` : numbers && data.distributions[0] ? data.distributions[0].name : "";
  const text = ({ field, other, moved }) => `if ${typicalText(field)}: ${probabilities || numbers ? `${shorten(name, 30)} ${value(form.result)} → ${value(other)}, ` : ""}moves ${percent(moved)} of the map`;
  return [make("h4", {}, "Columns that matter most here"), make("p", { class: "note" }, "Each column alone at its typical value, the others as typed:"),
    make("ul", { class: "apart" }, ...changes.slice(0, SHOWN_COLUMNS).map((each) => make("li", {}, make("b", { title: each.field.name }, shorten(each.field.name, 40)), ` ${text(each)}`)))];
}

const typicalText = (field) => (field.kind === "category" ? shorten(field.levels[field.typical], 30)
  : field.kind === "boolean" ? String(field.typical === 1) : codeText(field, field.typical));

// Its place in steps of the map's box; a place beyond the box is drawn at its edge.
function placeNewRow({ place, prototypes }) {
  const [x0, x1, y0, y1] = data.box;
  const at = data.newRow.axes[0].map((_, a) => place.reduce((sum, part, j) => sum + part * data.newRow.axes[j][a], 0));
  const steps = [(at[0] - x0) / (x1 - x0 || 1), data.line ? places.py[prototypes[0][0]] / STEPS : (at[1] - y0) / (y1 - y0 || 1)];
  const inside = steps.map((share) => Math.min(1.02, Math.max(-0.02, share)));
  state.newRow = { x: inside[0] * STEPS, y: inside[1] * STEPS, beyond: steps.some((share, a) => Math.abs(share - inside[a]) > 1e-9) };
}

function paintNewRow(context, f) {
  const [x, y] = [f.ax * state.newRow.x + f.bx, f.ay * state.newRow.y + f.by];
  const accent = cssColour("accent");
  context.beginPath();
  for (const [dx, dy] of [[0, -9], [9, 0], [0, 9], [-9, 0]]) context.lineTo(x + dx, y + dy);
  context.closePath();
  context.fillStyle = cssColour("card");
  context.fill();
  context.lineWidth = 3;
  context.strokeStyle = accent;
  context.stroke();
  context.font = "600 13px system-ui, sans-serif";
  context.textAlign = x > view.width - 80 ? "right" : "left";
  context.textBaseline = "middle";
  context.lineWidth = 3.5;
  context.strokeStyle = cssColour("card");
  const side = x > view.width - 80 ? x - 14 : x + 14;
  context.strokeText("new row", side, y);
  context.fillStyle = accent;
  context.fillText("new row", side, y);
}

function describeNewRow(found) {
  const parts = [];
  const limit = data.newRow.predictor ? data.newRow.predictor.novelty.limit : 0;
  if (found.novelty < limit) parts.push(make("p", { class: "warning" },
    `Unlike any row of the fit (novelty ${found.novelty.toFixed(3)}): place and prediction are extrapolations.`));
  if (state.newRow.beyond) parts.push(make("p", { class: "warning" }, "Its place lies beyond the edge of the map."));
  if (found.probabilities) parts.push(make("h4", {}, `Predicted ${data.distributions[0] ? data.distributions[0].name : "class"}`), probabilityBars(found.probabilities));
  (found.numbers || []).forEach((each, t) => parts.push(...describeNumber(each, t)));
  parts.push(make("h4", {}, "Nearest prototypes"), make("ul", { class: "nearest" }, ...found.prototypes.slice(0, SHOWN_PROTOTYPES).map(([k]) => {
    const texts = data.distributions.map((each, t) => `${each.name} ${data.evidence ? evidenceText(t, k) : believedText(t, k)}`);
    return make("li", {}, make("button", { type: "button", class: "opens", onclick: (event) => openFrom(event.target, k) }, `Prototype ${data.prototypes.number[k]}`),
      ` ${texts.join(", ")}${isDubious(k) ? " (dubious)" : ""}`);
  })));
  return parts;
}

function probabilityBars(shares) {
  const names = data.newRow.predictor.classes;
  const known = data.colourings[0] && data.colourings[0].kind === "class" ? data.colourings[0] : null;
  const colours = known ? palette(known) : [];
  const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]);
  const box = make("div", { class: "bars" });
  for (const c of order.slice(0, MAX_BARS)) {
    const at = known ? known.labels.indexOf(names[c]) : -1;
    box.append(make("span", { title: names[c] }, shorten(names[c], MAX_NAME)),
      make("span", { class: "bar" }, make("i", { style: `width:${100 * shares[c]}%;background:${toCss(at >= 0 ? colours[at] : GREY)}` })),
      make("span", { class: "share" }, percent(shares[c])));
  }
  const rest = order.slice(MAX_BARS).reduce((sum, c) => sum + shares[c], 0);
  if (rest > 0) box.append(make("span", {}, "others"), make("span"), make("span", { class: "share" }, percent(rest)));
  return box;
}

function describeNumber({ mean, quantiles: [from, , to] }, t) {
  const name = data.distributions[t] ? data.distributions[t].name : `target ${t + 1}`;
  const scale = data.colourings[t];
  const [low, high] = [Math.min(scale.low, from), Math.max(scale.high, to)];
  const at = (value) => (100 * (value - low)) / (high - low || 1);
  return [make("h4", {}, `Predicted ${name}`),
    make("div", { class: "shown" }, make("b", {}, numberText(mean)), make("small", {}, `90 % interval: ${numberText(from, "number", 3)} to ${numberText(to, "number", 3)}`)),
    make("div", { class: "spread" },
      make("div", { class: "strip" }, make("i", { style: `left:${at(from)}%;width:${at(to) - at(from)}%` }), make("b", { class: "mean", style: `left:${at(mean)}%` })),
      make("div", { class: "ends" }, make("span", {}, numberText(low)), make("span", {}, numberText(high))))];
}

function withNewRow() {
  if (!data.newRow) return;
  const box = byId("new-fields");
  for (const field of data.newRow.fields) {
    const [control, note] = [makeControl(field), make("small")];
    control.addEventListener("input", readForm);
    form.inputs.push({ control, hint: note });
    box.append(make("label", { title: field.name }, make("span", {}, shorten(field.name, 30) + (field.unit ? ` (${field.unit})` : "")), control, note));
  }
  byId("new-row-box").addEventListener("toggle", () => {
    if (byId("new-row-box").open && form.from < 0) fillForm(Math.max(state.selected, 0));
    if (!byId("new-row-box").open) state.newRow = null;
    draw();
  });
  byId("new-show").addEventListener("click", () => byId("map").scrollIntoView({ block: "center" }));
}
