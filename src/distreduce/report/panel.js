// Beside the map: the legend, the panel of a prototype, and the hint under the pointer.

const MAX_BARS = 8;

function image(place, title) {
  const { height, width } = data.details.images;
  const canvas = make("canvas", { width, height, role: "img", "aria-label": title });
  const context = canvas.getContext("2d");
  const content = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) content.data.set([...Array(3).fill(pixels[place * width * height + i]), 255], 4 * i);
  context.putImageData(content, 0, 0);
  return canvas;
}

const rowName = (place) => (data.details.names ? data.details.names[place] : `row ${data.details.rows[place]}`);

function targetText(t, k) {
  const each = data.distributions[t];
  if (!each.mean) return prototypeText(data.colourings[t], k);
  return numberText(each.mean[k]) + (each.spread && !data.oneToOne ? ` ± ${numberText(each.spread[k])}` : data.oneToOne ? "" : " on average");
}

function essentials(k) {
  const { weight, count } = data.prototypes;
  const list = [["weight", percent(weight[k])], ["samples", count[k].toLocaleString("en")]];
  data.distributions.forEach((each, t) => list.push([each.name, targetText(t, k)]));
  return list;
}

function showTip(lines, heading, x, y, picture) {
  const tip = byId("tip");
  tip.replaceChildren(make("b", {}, heading), ...lines.map(([name, text]) => make("div", {}, `${name}: ${text}`)));
  if (picture) tip.append(picture);
  tip.hidden = false;
  // Below the pointer, or above it where the window ends.
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}

const hideTip = () => { byId("tip").hidden = true; };

function prototypeTip(k, x, y) {
  const lines = essentials(k);
  if (state.colouring >= data.nTargets && current().kind !== "none") lines.push([current().name, prototypeText(current(), k)]);
  const medoid = data.details.nearest[k][0];
  showTip(lines, `Prototype ${data.prototypes.number[k]}`, x, y, pixels ? image(medoid, "medoid") : null);
}

function sampleTip(i, x, y) {
  const lines = data.colourings.slice(0, data.nTargets).map((each) => [each.name, sampleText(each, i)]);
  if (state.colouring >= data.nTargets && current().kind !== "none") lines.push([current().name, sampleText(current(), i)]);
  if (labels[i] < nPrototypes) lines.push(["belongs to", `prototype ${data.prototypes.number[labels[i]]}`]);
  showTip(lines, `Sample in row ${rows[i]}`, x, y, null);
}

function drawLegend() {
  const colouring = current();
  const legend = byId("legend");
  legend.replaceChildren(make("h3", {}, colouring.kind === "none" ? "No target: one colour" : colouring.name));
  if (colouring.kind === "class") legend.append(classButtons(colouring));
  else if (colouring.kind !== "none") legend.append(...scaleBar(colouring));
  if (colouring.codes && colouring.codes.includes(MISSING))
    legend.append(make("p", { class: "note" }, make("span", { class: "swatch", style: `background:${toCss(GREY)}` }), " not known"));
}

function classButtons(colouring) {
  const list = make("ul");
  palette(colouring).forEach((rgb, c) => {
    const pick = () => {
      state.highlighted = state.highlighted === c ? -1 : c;
      close();
      drawLegend();
      draw();
    };
    const button = make("button", { type: "button", "aria-pressed": String(state.highlighted === c), onclick: pick },
      swatch(rgb, colouring.shapes[c]), colouring.labels[c]);
    list.append(make("li", {}, button));
  });
  return list;
}

function scaleBar(colouring) {
  const stops = data.scale.map((_, s) => toCss(onScale({ shown: [0, data.scale.length - 1] }, s))).join(",");
  const [low, high] = colouring.shown.map((value) => numberText(value, colouring.kind));
  return [
    make("div", { class: "scale", style: `background:linear-gradient(to right,${stops})` }),
    make("div", { class: "ends" }, make("span", {}, (colouring.low < colouring.shown[0] ? "≤ " : "") + low),
      make("span", {}, (colouring.high > colouring.shown[1] ? "≥ " : "") + high)),
  ];
}

function bars(t, k) {
  const each = data.distributions[t];
  const size = each.labels.length;
  let parts = each.labels.map((label, c) => ({ label, c, share: each.shares[k * size + c] }));
  let rest = 0;
  // Classes: the most frequent ones, the rest in sum. Bins of numbers keep their order and are all shown.
  if (!each.mean) {
    parts = parts.filter((part) => part.share > 0).sort((a, b) => b.share - a.share);
    rest = parts.slice(MAX_BARS).reduce((sum, part) => sum + part.share, 0);
    parts = parts.slice(0, MAX_BARS);
  }
  const colouring = data.colourings[t];
  const colourOf = (c) => each.mean ? onScale({ shown: [0, size - 1] }, c) : palette(colouring)[c];
  const box = make("div", { class: "bars" });
  for (const { label, c, share } of parts)
    box.append(make("span", { title: label }, label),
      make("span", { class: "bar" }, ...(share > 0 ? [make("i", { style: `width:${100 * share}%;background:${toCss(colourOf(c))}` })] : [])),
      make("span", { class: "share" }, percent(share)));
  if (rest > 0) box.append(make("span", {}, "others"), make("span"), make("span", { class: "share" }, percent(rest)));
  return box;
}

function rowTable(near) {
  const { columns, cells, targets, leftOut } = data.details;
  const mark = (place) => (place === 0 ? { class: "medoid" } : {});
  const line = (name, texts) => make("tr", {}, make("th", { scope: "row", title: name }, name),
    ...texts.map((text, place) => make("td", { ...mark(place), title: text }, text)));
  const head = make("tr", {}, make("td"), ...near.map((at, place) =>
    make("th", { scope: "col", ...mark(place) }, ...(place === 0 ? ["medoid", make("br")] : []), rowName(at))));
  const body = make("tbody");
  data.distributions.forEach((each, t) => targets[t] && body.append(line(each.name, near.map((at) => targets[t][at]))));
  // A target that is also a column of the table is shown once.
  const shown = new Set(data.distributions.map((each) => each.name));
  (columns || []).forEach((name, c) => shown.has(name) || body.append(line(name, near.map((at) => cells[c][at]))));
  const table = make("table", {}, make("thead", {}, head), body);
  const parts = [make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Medoid and nearest samples" }, table)];
  if (leftOut) parts.push(make("p", { class: "note" }, `and ${leftOut} more columns`));
  return parts;
}

function drawPanel() {
  const panel = byId("panel");
  const k = state.selected;
  panel.classList.toggle("open", k >= 0);
  document.body.classList.toggle("reading-panel", k >= 0);
  if (k < 0) {
    panel.replaceChildren(make("p", { class: "note" }, "Nothing is selected. Select a mark on the map to see its weight, its targets, its medoid and its nearest samples on the map."));
    return;
  }
  const near = data.details.nearest[k];
  const list = make("dl", { class: "essentials" });
  for (const [name, text] of essentials(k)) list.append(make("dt", {}, name), make("dd", {}, text));
  const shut = make("button", { type: "button", id: "close", "aria-label": "Close", onclick: () => close(true) }, "✕");
  panel.replaceChildren(make("div", { class: "head" }, make("h3", {}, `Prototype ${data.prototypes.number[k]}`), shut), list);
  data.distributions.forEach((each, t) => each.shares && !data.oneToOne && panel.append(make("h4", {}, `${each.name}: share of its samples`), bars(t, k)));
  const heading = data.oneToOne ? "The sample and its nearest on the map" : "Its medoid and its nearest samples on the map";
  panel.append(make("h4", {}, heading));
  if (pixels) panel.append(make("div", { class: "images" }, ...near.map((at, place) => {
    const target = data.details.targets.map((texts) => texts[at]).join(", ");
    const caption = [place === 0 ? "medoid" : rowName(at), target].filter(Boolean).join(": ");
    return make("figure", {}, image(at, caption), make("figcaption", {}, caption));
  })));
  if (data.details.columns || (!pixels && data.details.targets.length)) panel.append(...rowTable(near));
  panel.scrollTop = 0;
}

function open(k, byKeyboard = false) {
  state.selected = k;
  state.focused = byKeyboard ? k : -1;
  hideTip();
  drawPanel();
  draw();
  drawHeatMaps();
  revealAbovePanel(k);
  if (byKeyboard) byId("panel").focus({ preventScroll: true });
  byId("live").textContent = `Opened prototype ${data.prototypes.number[k]}`;
}

// On a narrow screen the panel covers the lower half: keep the mark in sight above it.
function revealAbovePanel(k) {
  if (getComputedStyle(byId("panel")).position !== "fixed") return;
  const y = byId("map").getBoundingClientRect().top + placeOf(k)[1];
  const lowest = byId("panel").getBoundingClientRect().top - 60;
  if (y > lowest || y < 40) scrollBy({ top: y - lowest / 2 });
}

let opener = null;
function close(giveBack = false) {
  if (state.selected < 0) return;
  state.selected = -1;
  drawPanel();
  draw();
  drawHeatMaps();
  if (giveBack) (opener || byId("map")).focus({ preventScroll: true });
}
