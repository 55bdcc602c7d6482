// Beside the map: the legend, the panel of a prototype, and the hint under the pointer.

const MAX_BARS = 8;
const MAX_NAME = 14; // characters of a name in the panel

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

// What the fit believes, and what left-out samples show.
const believed = (t) => data.distributions[t].believed || data.distributions[t];

function believedText(t, k) {
  const each = believed(t);
  if (!each.mean) return classText(each.labels, each.shares, k);
  return numberText(each.mean[k]) + (data.oneToOne ? "" : each.spread ? ` ± ${numberText(each.spread[k])}` : " on average");
}

function evidenceText(t, k) {
  const each = data.distributions[t];
  if (!each.mean) return classText(each.labels, each.shares, k);
  return `${numberText(each.mean[k])} (${numberText(each.low[k], "number", 3)} to ${numberText(each.high[k], "number", 3)})`;
}

function essentials(k) {
  const { weight, count } = data.prototypes;
  const [size, all] = [["weight", percent(weight[k])], ["samples", count[k].toLocaleString("en")]];
  const beliefs = data.distributions.map((each, t) => [each.name, believedText(t, k)]);
  if (!data.evidence) return [size, all, ...beliefs];
  const evidence = data.distributions.map((each, t) => [each.name, evidenceText(t, k)]);
  return [["samples nearby", data.evidence.count[k].toLocaleString("en")], ...evidence,
    ...beliefs.map(([name, text]) => [beliefs.length > 1 ? `${name}, the fit believes` : "the fit believes", text]), size];
}

const title = (k) => `Prototype ${data.prototypes.number[k]}${isDubious(k) ? " (dubious)" : ""}`;

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
  showTip(lines, title(k), x, y, pixels ? image(medoid, "medoid") : null);
}

function sampleTip(i, x, y) {
  const lines = data.colourings.slice(0, data.nTargets).map((each) => [each.name, sampleText(each, i)]);
  if (state.colouring >= data.nTargets && current().kind !== "none") lines.push([current().name, sampleText(current(), i)]);
  if (labels[i] < nPrototypes) lines.push([state.fitted || !data.fittedPlaces ? "belongs to" : "nearest to", `prototype ${data.prototypes.number[labels[i]]}`]);
  showTip(lines, `Sample in row ${rows[i]}`, x, y, null);
}

function drawLegend() {
  const colouring = current();
  const legend = byId("legend");
  legend.replaceChildren(make("h3", {}, colouring.kind === "none" ? "No target: one colour" : colouring.name));
  if (colouring.kind === "class") {
    const list = classButtons(colouring);
    legend.append(list);
    const hidden = [...list.children].filter((each) => each.offsetTop + each.offsetHeight > list.offsetTop + list.clientHeight).length;
    if (hidden) legend.append(make("p", { class: "note" }, `${colouring.labels.length} classes, ${hidden} of them further down: scroll the list.`));
  }
  else if (colouring.kind !== "none") legend.append(...scaleBar(colouring));
  if (colouring.codes && colouring.codes.some((code) => !isKnown(colouring, code)))
    legend.append(make("p", { class: "note" }, make("span", { class: "swatch", style: `background:${toCss(GREY)}` }), " not known"));
  const explain = (look, text) => legend.append(make("p", { class: "note" }, swatch(GREY, 0, look.dubious ? "ink" : "card", look), ` ${text}`));
  if (mainShares(colouring).some((share) => share < PURE)) explain({ share: 0.4 }, "mixed: the smaller the core, the more samples of other classes");
  const count = data.evidence ? data.evidence.dubious.filter(Boolean).length : 0;
  if (count) explain({ dubious: true }, `dubious: ${count} of ${nPrototypes} prototypes`);
}

const ON_AXIS = 3; // columns that are named
const LEAST_CORRELATION = 0.3;
const MOST_ROWS = 5000; // that are looked at; samples come in random order

function correlate(along, colouring, value) {
  const [a, b] = [[], []];
  for (let i = 0; i < Math.min(nSamples, MOST_ROWS); i++)
    if (isKnown(colouring, colouring.codes[i])) { a.push(along[i]); b.push(value(colouring.codes[i])); }
  const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  const [ma, mb] = [mean(a), mean(b)];
  const product = (one, mo, two, mt) => one.reduce((sum, each, i) => sum + (each - mo) * (two[i] - mt), 0);
  return product(a, ma, b, mb) / Math.sqrt(product(a, ma, a, ma) * product(b, mb, b, mb)) || 0; // 0: constant, or huge
}

// The columns, each by its most telling class, that rise or fall along an axis.
function describeAxis(along) {
  const size = (found) => Math.abs(found[1]);
  const found = data.colourings.slice(data.nTargets).filter((each) => each.codes).map((each) => {
    const parts = each.kind !== "class" ? [[each.name, (code) => code]] : each.labels.map((label, c) => [`${each.name} = ${label}`, (code) => Number(code === c)]);
    return parts.map(([name, value]) => [name, correlate(along, each, value)]).reduce((best, each) => (size(each) > size(best) ? each : best));
  });
  const named = found.sort((a, b) => size(b) - size(a)).slice(0, ON_AXIS).filter((each) => size(each) >= LEAST_CORRELATION);
  return named.map(([name, r]) => `${shorten(name, 40)} ${r.toFixed(2).replace("-", "−")}`).join(", ") || "no single column";
}

function describeAxes() {
  if (data.colourings.length === data.nTargets || data.colourings[0].kind === "none") return;
  const { x, y } = state.fitted ? fittedPlaces : shownPlaces;
  const upwards = data.line ? "" : `; upwards ${describeAxis(y)}`;
  byId("axes").textContent = `Columns that go with the axes (correlation): to the right ${describeAxis(x)}${upwards}.`;
  byId("axes").hidden = false;
}

function classButtons(colouring) {
  const list = make("ul");
  palette(colouring).forEach((rgb, c) => {
    const pick = () => {
      state.highlighted = state.highlighted === c ? -1 : c;
      state.chosen = null;
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
  const { shown } = colouring;
  const texts = shown.map((value) => numberText(value, colouring.kind));
  const [low, high] = [(colouring.low < shown[0] ? "≤ " : "") + texts[0], (colouring.high > shown.at(-1) ? "≥ " : "") + texts.at(-1)];
  const parts = [
    make("div", { class: "scale", style: `background:linear-gradient(to right,${stops})` }),
    make("div", { class: "ends" }, ...[low, ...(shown.length === 5 ? [texts[2]] : []), high].map((text) => make("span", {}, text))),
  ];
  if (shown.length > 2) parts.push(make("p", { class: "note" }, "Skewed: each quarter of the values has a quarter of the colours."));
  return parts;
}

// Shares of the classes; where left-out samples speak, a tick on each bar is what the fit believes.
function bars(t, k) {
  const each = data.distributions[t];
  const size = each.labels.length;
  const belief = each.believed ? each.believed.shares : null;
  const all = each.labels.map((label, c) => ({ label, c, share: each.shares[k * size + c], tick: belief ? belief[k * size + c] : 0 }));
  const found = all.filter((part) => part.share > 0 || part.tick > 0.005).sort((a, b) => b.share - a.share || b.tick - a.tick);
  const rest = found.slice(MAX_BARS).reduce((sum, part) => sum + part.share, 0);
  const colours = palette(data.colourings[t]);
  const box = make("div", { class: "bars" });
  for (const { label, c, share, tick } of found.slice(0, MAX_BARS))
    box.append(make("span", { title: label }, shorten(label, MAX_NAME)),
      make("span", { class: "bar" }, ...(share > 0 ? [make("i", { style: `width:${100 * share}%;background:${toCss(colours[c])}` })] : []),
        ...(tick > 0.005 ? [make("b", { style: `left:${100 * tick}%`, title: `the fit believes ${percent(tick)}` })] : [])),
      make("span", { class: "share" }, percent(share)));
  if (rest > 0) box.append(make("span", {}, "others"), make("span"), make("span", { class: "share" }, percent(rest)));
  return box;
}

// How a continuous target is spread: columns of bins, and below them the 5–95 % range, the mean and what the fit believes.
function histogram(t, k) {
  const each = data.distributions[t];
  const { low, high, shown } = data.colourings[t];
  const at = (value) => 100 * scaleShare([low, ...shown.slice(1, -1), high], value); // as the bins are
  const box = make("div", { class: "spread" });
  if (each.shares) {
    const own = [...each.shares.subarray(k * each.labels.length, (k + 1) * each.labels.length)];
    const most = Math.max(...own, 0.01);
    box.append(make("div", { class: "columns" }, ...own.map((share, c) => make("i", {
      title: `${each.labels[c]}: ${percent(share)}`,
      style: `height:${(100 * share) / most}%;background:${toCss(onScale({ shown: [0, own.length - 1] }, c))}`,
    }))));
  }
  const [from, to] = each.low ? [each.low[k], each.high[k]] : [each.mean[k] - each.spread[k], each.mean[k] + each.spread[k]];
  const strip = make("div", { class: "strip" },
    make("i", { style: `left:${at(from)}%;width:${at(to) - at(from)}%` }), make("b", { class: "mean", style: `left:${at(each.mean[k])}%` }));
  if (each.believed) strip.append(make("b", { class: "belief", style: `left:${at(each.believed.mean[k])}%` }));
  box.append(strip, make("div", { class: "ends" }, make("span", {}, numberText(low)), make("span", {}, numberText(high))));
  return box;
}

// What tells a prototype from the rest, in words.
function contrasts(k) {
  const found = data.apart[k] || [];
  if (!found.length) return [];
  return [make("h4", {}, "What tells its samples from all others"),
    make("ul", { class: "apart" }, ...found.map(([name, text]) => make("li", {}, make("b", { title: name }, shorten(name, 40)), ` ${text}`)))];
}

const drawTarget = (t, k) => data.distributions[t].mean ? histogram(t, k) : bars(t, k);

function qualityList(k) {
  const list = make("dl", { class: "quality" });
  const text = (name) => data.evidence[name][k] === null ? "–" : data.evidence[name][k].toFixed(2).replace("-", "−");
  for (const name of ["purity", "compactness", "separation"]) {
    const range = name === "purity" && data.evidence["purity low"] ? make("small", {}, ` ${text("purity low")} to ${text("purity high")}`) : "";
    list.append(make("div", {}, make("dt", {}, name), make("dd", {}, text(name), range)));
  }
  return list;
}

// What left-out samples show, first and in full; then in a line what the fit believes.
function evidenceParts(k) {
  const n = data.evidence.count[k];
  const parts = [];
  if (isDubious(k)) parts.push(make("p", { class: "warning" }, n ? "Do not rely on this prototype: left-out samples near it contradict what the fit believes." : "Do not rely on this prototype: no left-out sample is nearest to it."));
  const { least } = data.evidence;
  parts.push(make("p", { class: "note" }, n >= least ? `${n.toLocaleString("en")} samples are nearest to it when left out of the fit. They show:`
    : `Only ${n === 1 ? "1 sample is" : `${n} samples are`} nearest to it when left out of the fit. The ${least} nearest show:`));
  data.distributions.forEach((each, t) => parts.push(
    make("div", { class: "shown" }, make("span", {}, each.name), make("b", {}, evidenceText(t, k)), ...(each.mean ? [make("small", {}, "mean and 5 to 95 %")] : [])),
    drawTarget(t, k),
    make("p", { class: "belief-line" }, make("b", { class: each.mean ? "belief" : "tick", "aria-hidden": "true" }), ` the fit believes: ${believedText(t, k)}`)));
  return [...parts, qualityList(k)];
}

function rowTable(near) {
  const { columns, cells, targets, leftOut } = data.details;
  const mark = (place) => (place === 0 ? { class: "medoid" } : {});
  const line = (name, texts) => make("tr", {}, make("th", { scope: "row", title: name }, shorten(name, MAX_NAME)),
    ...texts.map((text, place) => make("td", { ...mark(place), title: text }, text)));
  const head = make("tr", {}, make("td"), ...near.map((at, place) =>
    make("th", { scope: "col", ...mark(place) }, ...(place === 0 ? ["medoid", make("br")] : []), rowName(at))));
  const body = make("tbody");
  data.distributions.forEach((each, t) => targets[t] && body.append(line(each.name, near.map((at) => targets[t][at]))));
  // A target that is also a column of the table is shown once.
  const shown = new Set(data.distributions.map((each) => each.name));
  (columns || []).forEach((name, c) => shown.has(name) || body.append(line(name, near.map((at) => cells[c][at]))));
  const table = make("table", {}, make("thead", {}, head), body);
  const parts = [make("p", { class: "note sideways", hidden: "" }, "Scroll the table sideways for more samples →"),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Medoid and similar samples" }, table)];
  if (leftOut) parts.push(make("p", { class: "note" }, `and ${leftOut} more columns`));
  return parts;
}

function drawPanel() {
  const panel = byId("panel");
  const k = state.selected;
  panel.classList.toggle("open", k >= 0);
  document.body.classList.toggle("reading-panel", k >= 0);
  if (k < 0) {
    panel.replaceChildren(make("p", { class: "note" }, `Nothing is selected. Select a mark on the map to see ${data.evidence ? "what left-out samples near it show, what the fit believes," : "its weight, its targets,"} what tells its samples from others, and its medoid.`));
    return;
  }
  const near = data.details.nearest[k];
  const list = make("dl", { class: "essentials" });
  const { weight, count } = data.prototypes;
  const facts = data.evidence ? [["weight", percent(weight[k])], ["samples as fitted", count[k].toLocaleString("en")]] : essentials(k);
  for (const [name, text] of facts) list.append(make("dt", {}, name), make("dd", {}, text));
  const shut = make("button", { type: "button", id: "close", "aria-label": "Close", onclick: () => close(true) }, "✕");
  const flag = isDubious(k) ? [make("span", { class: "flag" }, "dubious")] : [];
  panel.replaceChildren(make("div", { class: "head" }, make("h3", {}, `Prototype ${data.prototypes.number[k]}`), ...flag, shut));
  if (data.evidence) panel.append(...evidenceParts(k));
  panel.append(...contrasts(k), list);
  if (!data.evidence) data.distributions.forEach((each, t) => each.shares && !data.oneToOne && panel.append(make("h4", {}, `${each.name}: share of its samples`), drawTarget(t, k)));
  const heading = data.oneToOne ? "The sample and those most like it" : "Its medoid, and those of its samples most like it";
  panel.append(make("h4", {}, heading));
  if (pixels) panel.append(make("div", { class: "images" }, ...near.map((at, place) => {
    const target = data.details.targets.map((texts) => texts[at]).join(", ");
    const caption = [place === 0 ? "medoid" : rowName(at), target].filter(Boolean).join(": ");
    return make("figure", {}, image(at, caption), make("figcaption", {}, caption));
  })));
  if (data.details.columns || (!pixels && data.details.targets.length)) panel.append(...rowTable(near));
  if (data.newRow) panel.append(make("button", { type: "button", id: "try-changes", onclick: () => tryChanges(k) }, "Change this row and predict it"));
  const [sideways, box] = [panel.querySelector(".sideways"), panel.querySelector(".scroll")];
  if (box) sideways.hidden = box.scrollWidth <= box.clientWidth;
  panel.scrollTop = 0;
}

function open(k, byKeyboard = false, pointed = -1) {
  state.chosen = null;
  state.selected = k;
  state.pointed = pointed;
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
  state.selected = state.pointed = -1;
  drawPanel();
  draw();
  drawHeatMaps();
  if (giveBack) (opener || byId("map")).focus({ preventScroll: true });
}
