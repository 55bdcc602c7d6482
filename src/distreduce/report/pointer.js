// Mouse, pen and fingers on the map: one drags, two pinch, a tap opens.

function withPointer() {
  const map = byId("map");
  const down = new Map(); // places of the pointers that touch the map
  let drag = null;
  const at = (event) => {
    const box = map.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const dragFrom = (place, moved) => { drag = { from: place, x: state.x, y: state.y, moved }; };
  map.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, at(event));
    dragFrom(at(event), down.size > 1); // two fingers never tap
    state.lasso = state.choosing && down.size === 1 ? [at(event)] : [];
  });
  map.addEventListener("pointermove", (event) => {
    if (!event.buttons) down.delete(event.pointerId); // released outside the window
    if (!down.has(event.pointerId)) {
      if (event.pointerType !== "touch") hover(under(...at(event), 6), event);
      return;
    }
    const before = [...down.values()];
    down.set(event.pointerId, at(event));
    if (down.size === 2) pinch(before, [...down.values()]);
    else if (down.size === 1 && state.choosing) {
      drag.moved ||= Math.hypot(at(event)[0] - drag.from[0], at(event)[1] - drag.from[1]) > 5;
      state.lasso.push(at(event));
      drawPrototypes();
    } else if (down.size === 1) dragTo(drag, at(event));
  });
  const lift = (event) => {
    if (!down.delete(event.pointerId)) return;
    if (state.lasso.length > 2 && drag.moved) choose();
    state.lasso = [];
    for (const place of down.values()) dragFrom(place, true); // the remaining finger goes on dragging
  };
  addEventListener("pointerup", lift);
  addEventListener("pointercancel", lift);
  map.addEventListener("pointerleave", () => hover({ prototype: -1, sample: -1 }, null));
  map.addEventListener("click", (event) => {
    if (!drag || !drag.moved) openAt(at(event), event.pointerType === "touch" ? 14 : 6);
  });
  map.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the page
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 300), ...at(event));
  }, { passive: false });
  // One finger scrolls the page; two fingers would scroll it too and disable the pinch.
  for (const kind of ["touchstart", "touchmove"])
    map.addEventListener(kind, (event) => { if (event.touches.length > 1) event.preventDefault(); }, { passive: false });
}

function dragTo(drag, [x, y]) {
  const [dx, dy] = [x - drag.from[0], y - drag.from[1]];
  drag.moved ||= Math.hypot(dx, dy) > 5; // a hand that trembles still clicks
  if (!drag.moved || state.zoom === 1) return;
  const f = frame();
  [state.x, state.y] = [drag.x - dx / f.sx, drag.y + dy / f.sy];
  keepInside();
}

// Zoom so that what was between the fingers stays between them.
function pinch(before, after) {
  const span = ([[a, b], [c, d]]) => Math.max(Math.hypot(a - c, b - d), 1);
  const middle = ([[a, b], [c, d]]) => [(a + c) / 2, (b + d) / 2];
  const [from, to] = [middle(before), middle(after)];
  const f = frame();
  state.x -= (to[0] - from[0]) / f.sx;
  state.y += (to[1] - from[1]) / f.sy;
  zoomBy(span(after) / span(before), ...to);
}

function openAt(place, reach) {
  const found = under(...place, reach);
  if (state.chosen) clearChosen();
  opener = byId("map");
  if (found.prototype >= 0) open(found.prototype);
  else if (found.sample >= 0 && labels[found.sample] < nPrototypes) open(labels[found.sample]);
  else close();
}

function hover(found, event) {
  byId("map").classList.toggle("over", found.prototype >= 0);
  if (found.prototype !== state.hovered) {
    state.hovered = found.prototype;
    drawPrototypes();
  }
  if (found.prototype >= 0) prototypeTip(found.prototype, event.clientX, event.clientY);
  else if (found.sample >= 0) sampleTip(found.sample, event.clientX, event.clientY);
  else hideTip();
}
