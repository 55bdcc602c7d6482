// Connects the parts: keyboard, colour switch, heat maps, size and theme.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function fillColourSwitch() {
  const choice = byId("colour-by");
  const option = (each, place) => make("option", { value: place }, each.kind === "none" ? "one colour" : each.name);
  const all = data.colourings.map(option);
  const [targets, columns] = [all.slice(0, data.nTargets), all.slice(data.nTargets)];
  if (targets.length) choice.append(make("optgroup", { label: "target" }, ...targets));
  const most = columns.length + data.nTargets < data.nColumns ? `, ${columns.length} of ${data.nColumns.toLocaleString("en")}` : "";
  if (columns.length) choice.append(make("optgroup", { label: `columns${most}` }, ...columns));
  withColumnSearch(choice, columns);
  choice.addEventListener("change", () => {
    state.colouring = Number(choice.value);
    state.highlighted = -1;
    drawLegend();
    recolour();
  });
}

// With many columns, a field keeps those whose names contain what is typed; Enter takes the first.
function withColumnSearch(choice, columns) {
  const field = byId("find-column");
  field.closest("label").hidden = columns.length <= 12;
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    const found = columns.filter((each) => each.textContent.toLowerCase().includes(wanted));
    choice.querySelector("optgroup:last-child").replaceChildren(...found);
    choice.value = String(state.colouring);
  });
  field.addEventListener("keydown", (event) => {
    const first = choice.querySelector("optgroup:last-child option");
    if (event.key !== "Enter" || !first) return;
    choice.value = first.value;
    choice.dispatchEvent(new Event("change"));
  });
}

function withKeyboard() {
  const map = byId("map");
  const focusOn = (k) => {
    state.focused = k;
    const box = map.getBoundingClientRect();
    let [x, y] = placeOf(k);
    // Outside the view: move there first, or the focus would be lost from sight.
    if (x < 0 || y < 0 || x > view.width || y > view.height) {
      [state.x, state.y] = [places.px[k] / STEPS, places.py[k] / STEPS];
      keepInside();
      [x, y] = placeOf(k);
    }
    prototypeTip(k, box.left + x, box.top + y);
    byId("live").textContent = `Prototype ${data.prototypes.number[k]}: ${essentials(k).map((pair) => pair.join(" ")).join(", ")}`;
    drawPrototypes();
  };
  map.addEventListener("focus", () => {
    if (map.matches(":focus-visible")) focusOn(Math.max(state.selected, state.focused, 0));
  });
  map.addEventListener("blur", () => {
    state.focused = -1;
    hideTip();
    drawPrototypes();
  });
  map.addEventListener("keydown", (event) => {
    const k = Math.max(state.focused, 0);
    // Leave the browser's own shortcuts alone.
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) focusOn(state.focused < 0 ? k : neighbour(k, ...ARROWS[event.key]));
    else if (event.key === "Enter" || event.key === " ") {
      opener = map;
      open(k, true);
    } else if (event.key === "+" || event.key === "=") zoomBy(1.4, ...placeOf(k));
    else if (event.key === "-") zoomBy(1 / 1.4, ...placeOf(k));
    else if (event.key === "0") zoomBy(0);
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    hideTip();
    if (state.chosen) clearChosen();
    close(true);
  });
}

function withHeatMaps() {
  for (const canvas of document.querySelectorAll("canvas.heat")) {
    canvas.addEventListener("pointermove", (event) => {
      const found = heatUnder(canvas, event);
      if (!found) hideTip();
      else showTip([[found.label, percent(found.share)]], `Prototype ${data.prototypes.number[found.k]}`, event.clientX, event.clientY, null);
    });
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("click", (event) => {
      const found = heatUnder(canvas, event);
      if (found) openFrom(null, found.k);
    });
  }
}

function openFrom(element, k, pointed = -1) {
  opener = element;
  open(k, Boolean(element), pointed);
  if (getComputedStyle(byId("panel")).position !== "fixed") byId("map").scrollIntoView({ block: "nearest" });
}

// The switch between left-out and fitted places; a page without left-out places has none.
function withPlaces() {
  const choice = byId("fitted-places");
  if (!choice) return;
  choice.checked = false; // browsers remember the state of a page that is loaded again
  choice.addEventListener("change", () => {
    showFitted(choice.checked);
    byId("fitted-note").hidden = !choice.checked;
    describeAxes();
    drawLegend();
    drawHeatMaps();
    byId("live").textContent = choice.checked ? "Fitted places" : "Left-out places";
  });
}

function withCriticisms() {
  for (const cell of document.querySelectorAll("td.thumb"))
    cell.append(image(data.details.worst[Number(cell.dataset.line)], "image of the row"));
  for (const button of document.querySelectorAll("button.points"))
    button.addEventListener("click", () => openFrom(button, Number(button.dataset.opens), Number(button.dataset.place)));
}

function refresh() {
  dark = isDark();
  resize();
  drawLegend();
  recolour();
  drawPanel();
  drawHeatMaps();
}

fillColourSwitch();
withPointer();
withKeyboard();
withHeatMaps();
withPlaces();
withCriticisms();
withRowSearch();
withSaving();
withNewRow();
byId("zoom-in").addEventListener("click", () => zoomBy(1.5));
byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.5));
byId("zoom-all").addEventListener("click", () => zoomBy(0));
for (const button of document.querySelectorAll("button.opens"))
  button.addEventListener("click", () => openFrom(button, Number(button.dataset.place)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
// Paper is light, whatever the screen is.
addEventListener("beforeprint", () => {
  document.documentElement.dataset.printing = "";
  refresh();
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.printing;
  refresh();
});
// The map's box can change without the window.
new ResizeObserver(() => {
  resize();
  draw();
  drawHeatMaps();
}).observe(byId("map"));
describeAxes();
refresh();
