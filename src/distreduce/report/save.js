// Find a row by its number, and save: the rows in colour as CSV, the map as SVG or PNG.

const KEY_WIDTH = 190; // of the legend beside a saved map
const MAX_KEY = 20; // classes in it

function say(text) {
  byId("found").textContent = text;
  byId("found").hidden = !text;
}

function clearChosen() {
  state.chosen = null;
  say("");
  draw();
}

function withRowSearch() {
  const field = byId("find-row");
  const find = () => {
    const wanted = field.value.trim();
    const i = wanted === "" ? -1 : rows.indexOf(Number(wanted));
    if (i < 0) return say(wanted && `Row ${wanted} is not on the map.`);
    say("");
    if (labels[i] < nPrototypes) return openFrom(null, labels[i], i);
    close();
    state.pointed = i;
    draw();
  };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") find(); });
  field.addEventListener("search", () => { if (!field.value) say(""); });
}

function download(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Text that a spreadsheet would take for a formula gets an apostrophe.
function csvCell(value) {
  const text = typeof value === "number" ? String(value) : String(value).replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function cellValue(colouring, i) {
  const code = colouring.codes[i];
  if (!isKnown(colouring, code)) return "";
  if (colouring.kind === "class") return colouring.labels[code];
  return colouring.kind === "date" ? numberText(code, "date") : Number.isInteger(code) ? code : Number(code.toPrecision(7));
}

function chosenCsv() {
  const shown = data.colourings.filter((each) => each.codes);
  const lines = [["row", "prototype", ...shown.map((each) => each.name)]];
  for (let i = 0; i < nSamples; i++) {
    const fading = state.chosen || state.selected >= 0 || state.highlighted >= 0;
    if (fading && isFaded(i)) continue;
    lines.push([rows[i], labels[i] < nPrototypes ? data.prototypes.number[labels[i]] : "", ...shown.map((each) => cellValue(each, i))]);
  }
  const [head, ...body] = lines;
  body.sort((a, b) => a[0] - b[0]);
  say(`Saved ${body.length.toLocaleString("en")} rows by their numbers in the table; fractions have seven digits.`);
  return [head, ...body].map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

// The part of a canvas context that the map uses, written as SVG.
class SvgContext {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], path: "", dash: "", moves: "", kept: [], globalAlpha: 1, lineWidth: 1, fillStyle: "", strokeStyle: "", font: "" });
  }
  beginPath() { this.path = ""; }
  closePath() { this.path += "Z"; }
  moveTo(x, y) { this.path += `M${x.toFixed(2)} ${y.toFixed(2)}`; }
  lineTo(x, y) { this.path += `${this.path ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`; }
  arc(x, y, r) {
    const size = r.toFixed(2);
    this.moveTo(x - r, y);
    this.path += `a${size} ${size} 0 1 0 ${(2 * r).toFixed(2)} 0a${size} ${size} 0 1 0 ${(-2 * r).toFixed(2)} 0`;
  }
  setLineDash(lengths) { this.dash = lengths.length ? ` stroke-dasharray="${lengths.join(" ")}"` : ""; }
  save() { this.kept.push(this.moves); }
  restore() { this.moves = this.kept.pop(); }
  translate(x, y) { this.moves += `translate(${x} ${y})`; }
  rotate(angle) { this.moves += `rotate(${(180 * angle) / Math.PI})`; }
  fillRect(x, y, width, height) { this.parts.push(`<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${this.fillStyle}"/>`); }
  look(filled) {
    const line = `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="round"${this.dash}`;
    return `${filled ? `fill="${this.fillStyle}"` : line}${this.globalAlpha < 1 ? ` opacity="${this.globalAlpha.toFixed(3)}"` : ""}`;
  }
  fill(rule) { this.parts.push(`<path d="${this.path}"${rule ? ` fill-rule="${rule}"` : ""} ${this.look(true)}/>`); }
  stroke() { this.parts.push(`<path d="${this.path}" ${this.look(false)}/>`); }
  text(text, x, y, filled) {
    const [, bold, size] = this.font.match(/^(600 )?([\d.]+)px/);
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign] || "start";
    const signs = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
    this.parts.push(`<text x="${x.toFixed(2)}" y="${y.toFixed(2)}" font-family="system-ui, sans-serif" font-size="${size}"${bold ? ' font-weight="600"' : ""} ` +
      `text-anchor="${anchor}"${this.textBaseline === "middle" ? ' dominant-baseline="central"' : ""}${this.moves ? ` transform="${this.moves}"` : ""} ` +
      `${this.look(filled)}>${text.replace(/[&<>"]/g, (sign) => signs[sign])}</text>`);
  }
  fillText(text, x, y) { this.text(text, x, y, true); }
  strokeText(text, x, y) { this.text(text, x, y, false); }
  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">${this.parts.join("\n")}</svg>\n`;
  }
}

// The whole map with its legend, as the page shows it now.
function paintMap(context) {
  const f = frame();
  context.fillStyle = cssColour("card");
  context.fillRect(0, 0, view.width + KEY_WIDTH, view.height);
  const fading = state.chosen || state.selected >= 0 || state.highlighted >= 0;
  const [faint, codes] = [cssColour("faint"), current().codes];
  context.globalAlpha = 0.7;
  if (!(data.oneToOne && nPrototypes === nSamples))
    for (let i = 0; i < nSamples; i++) {
      const place = [f.ax * places.x[i] + f.bx, f.ay * places.y[i] + f.by];
      if (place[0] < 0 || place[1] < 0 || place[0] > view.width || place[1] > view.height) continue;
      outline(context, place, nSamples > 3000 ? 1.3 : 2, codes ? shapeOf(current(), codes[i]) : 0);
      context.fillStyle = fading && isFaded(i) ? faint : toCss([...colours.samples.subarray(3 * i, 3 * i + 3)]);
      context.fill();
    }
  context.globalAlpha = 1;
  paintPrototypes(context);
  paintKey(context, view.width + 14, 24);
}

function paintKey(context, x, y) {
  const each = current();
  context.textAlign = "left";
  context.textBaseline = "middle";
  const write = (text, top, font = "12px system-ui, sans-serif", left = x) => {
    context.font = font;
    context.fillStyle = cssColour("ink");
    context.fillText(shorten(text, 24), left, top);
  };
  if (each.kind === "none") return;
  write(each.name, y, "600 13px system-ui, sans-serif");
  if (each.kind === "class") {
    palette(each).slice(0, MAX_KEY).forEach((rgb, c) => {
      mark(context, [x + 6, y + 22 + 19 * c], 5.5, each.shapes[c], toCss(rgb), cssColour("soft"));
      write(each.labels[c], y + 22 + 19 * c, undefined, x + 18);
    });
    if (each.labels.length > MAX_KEY) write(`and ${each.labels.length - MAX_KEY} more`, y + 22 + 19 * MAX_KEY);
    return;
  }
  const step = (KEY_WIDTH - 34) / data.scale.length;
  data.scale.forEach((_, s) => {
    context.fillStyle = toCss(onScale({ shown: [0, data.scale.length - 1] }, s));
    context.fillRect(x + s * step, y + 14, step + 0.4, 12);
  });
  const [low, high] = [each.shown[0], each.shown.at(-1)].map((value) => numberText(value, each.kind));
  write(low, y + 38);
  context.textAlign = "right";
  write(high, y + 38, undefined, x + KEY_WIDTH - 34);
}

function mapSvg() {
  const context = new SvgContext(view.width + KEY_WIDTH, view.height);
  paintMap(context);
  return context.toString();
}

function mapPng(then) {
  const canvas = make("canvas", { width: 2 * (view.width + KEY_WIDTH), height: 2 * view.height });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  paintMap(context);
  canvas.toBlob(then, "image/png");
}

function withSaving() {
  const lasso = byId("lasso");
  lasso.addEventListener("click", () => {
    state.choosing = !state.choosing;
    lasso.setAttribute("aria-pressed", String(state.choosing));
    byId("map").classList.toggle("choosing", state.choosing);
    if (state.choosing) say("Draw around rows on the map.");
    else clearChosen();
  });
  byId("save-rows").addEventListener("click", () => download("rows.csv", new Blob([chosenCsv()], { type: "text/csv" })));
  byId("save-svg").addEventListener("click", () => download("map.svg", new Blob([mapSvg()], { type: "image/svg+xml" })));
  byId("save-png").addEventListener("click", () => mapPng((blob) => download("map.png", blob)));
}
