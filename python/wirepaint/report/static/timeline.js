"use strict";
// Time on the waterfall: the stretch that is shown, shared by everything on a board, and drawing along it.

/** The shown stretch of time in ms, within 0 and `end`. */
class Timeline {
  constructor() {
    this.end = 1;
    this.whole();
  }

  whole() {
    [this.from, this.until] = [0, this.end];
    this.zoomed = false;
  }

  /** Sets the end of the longest visit; what is shown stays if the reader has chosen it. */
  fit(end) {
    this.end = Math.max(1, end);
    if (!this.zoomed) this.whole();
  }

  show(from, until) {
    const length = Math.min(Math.max(until - from, 1), this.end);
    this.from = Math.min(Math.max(from, 0), this.end - length);
    this.until = this.from + length;
    this.zoomed = length < this.end;
  }

  /** Shows `factor` times as much; the time `at` keeps its place. */
  scale(factor, at = (this.from + this.until) / 2) {
    const length = (this.until - this.from) * factor;
    const share = (at - this.from) / (this.until - this.from);
    this.show(at - share * length, at + (1 - share) * length);
  }

  /** Moves by a share of what is shown. */
  pan(share) {
    const by = (this.until - this.from) * share;
    this.show(this.from + by, this.until + by);
  }
}

/** An SVG path that holds each value until the next sample. */
function steps(times, values, x, y, until) {
  let path = "";
  let open = false;
  times.forEach((time, n) => {
    if (values[n] === null) {
      // Equal values add nothing to the path, so the last one has not been drawn to its end.
      if (open) path += `H${x(time).toFixed(1)}`;
      open = false;
      return;
    }
    if (open && values[n] === values[n - 1]) return;
    path += open ? `H${x(time).toFixed(1)}V${y(values[n]).toFixed(1)}` : `M${x(time).toFixed(1)},${y(values[n]).toFixed(1)}`;
    open = true;
  });
  return path && open ? `${path}H${x(until).toFixed(1)}` : path;
}

/** The samples of some lists that lie in the shown stretch, with the one before and after it. */
function within(timeline, times, ...lists) {
  const first = Math.max(lastAtMost(times, timeline.from), 0);
  const last = Math.min(lastAtMost(times, timeline.until) + 2, times.length);
  return [times, ...lists].map((list) => list.slice(first, last));
}

/** An SVG path of short vertical strokes at ascending times, at most one a pixel. */
function strokes(times, x, top, height) {
  let path = "";
  let last = null;
  for (const time of times) {
    const at = Math.round(x(time));
    if (at !== last) path += `M${at},${top}v${height}`;
    last = at;
  }
  return path;
}

/** Lines at round times and at the marks of a visit. */
function drawGrid(area, pane, height) {
  const { timeline } = pane.board;
  for (const tick of niceTicks(timeline.from, timeline.until, Math.max(pane.width / 80, 2))) {
    area.append(svg("line", { x1: pane.x(tick), x2: pane.x(tick), y1: 0, y2: height, class: "grid" }));
  }
  for (const { label, time } of pane.marks) {
    const kind = `mark mark-${label.toLowerCase()}`;
    area.append(svg("line", { x1: pane.x(time), x2: pane.x(time), y1: 0, y2: height, class: kind }));
  }
}

/** The axis over the rows: round times, and the names of the marks, stacked where they are near each other. */
function drawAxis(axis, pane, height) {
  const { timeline } = pane.board;
  axis.replaceChildren();
  axis.setAttribute("height", height);
  const area = svg("svg", { x: pane.gutter, y: 0, width: pane.width + 40, height });
  axis.append(area);
  for (const tick of niceTicks(timeline.from, timeline.until, Math.max(pane.width / 80, 2))) {
    area.append(svg("text", { x: pane.x(tick), y: height - 4, class: "tick" }, duration(tick)));
  }
  const free = [-Infinity, -Infinity, -Infinity, -Infinity];
  for (const { label, time } of [...pane.marks].sort((a, b) => a.time - b.time)) {
    if (time < timeline.from || time > timeline.until) continue;
    const x = pane.x(time);
    const level = Math.max(free.findIndex((right) => right < x), 0);
    free[level] = x + 8 * label.length + 4;
    const kind = `mark-${label.toLowerCase()}`;
    area.append(svg("line", { x1: x, x2: x, y1: 2 + 11 * level, y2: height, class: `mark ${kind}` }));
    area.append(svg("text", { x: x + 3, y: 11 + 11 * level, class: `label ${kind}` }, label));
  }
  drawCross(area, height);
}

/** The line of the crosshair, moved by the pane. */
function drawCross(area, height) {
  area.append(svg("line", { y1: 0, y2: height, visibility: "hidden", class: "cross" }));
}

/**
 * Lets a pointer work on a plot: dragging with a mouse chooses a stretch, two fingers zoom, one finger or a
 * sideways wheel moves, Ctrl and the wheel zoom. `hover` and `click` get the events that mean neither.
 */
function listen(area, pane, { hover = hideTip, click = () => {} } = {}) {
  const { board } = pane;
  const fingers = new Map(); // by pointer: {from, x}, where it came down and where it is
  let start = null;
  area.addEventListener("pointermove", (event) => {
    board.crosshair(pane.inPlot(event.clientX) ? pane.timeAt(event.clientX) : null);
    if (fingers.has(event.pointerId)) moveFinger(fingers, event, pane);
    else if (start !== null) board.brush(pane, start, event.clientX);
    else if (event.pointerType !== "touch") hover(event);
  });
  area.addEventListener("pointerleave", () => {
    board.crosshair(null);
    hideTip();
  });
  area.addEventListener("pointerdown", (event) => {
    const { clientX } = event;
    if (event.pointerType === "touch") fingers.set(event.pointerId, { from: clientX, x: clientX });
    else if (event.button === 0 && pane.inPlot(clientX)) {
      start = clientX;
      area.setPointerCapture(event.pointerId);
    }
  });
  area.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  area.addEventListener("pointerup", (event) => {
    const from = start ?? fingers.get(event.pointerId)?.from ?? event.clientX;
    const dragged = Math.abs(event.clientX - from) > 5;
    if (!dragged && fingers.size < 2) click(event);
    else if (start !== null) board.show(...[pane.timeAt(from), pane.timeAt(event.clientX)].sort((m, n) => m - n));
    start = null;
    fingers.delete(event.pointerId);
    board.brush(pane, null);
  });
  area.addEventListener("dblclick", () => board.show());
  area.addEventListener("wheel", (event) => wheel(event, pane), { passive: false });
}

const WHEEL = 60; // largest turn that one event counts for, in pixels of scrolling

function wheel(event, pane) {
  const { timeline } = pane.board;
  const [sideways, down] = event.shiftKey ? [event.deltaX || event.deltaY, 0] : [event.deltaX, event.deltaY];
  const turn = Math.max(-WHEEL, Math.min(WHEEL, event.deltaY));
  if (event.ctrlKey || event.metaKey) timeline.scale(Math.exp(turn / 120), pane.timeAt(event.clientX));
  else if (Math.abs(sideways) > Math.abs(down)) timeline.pan(sideways / pane.width);
  else return;
  event.preventDefault();
  pane.board.soon();
}

/** One finger moves the stretch, two stretch it. */
function moveFinger(fingers, event, pane) {
  const { timeline } = pane.board;
  const finger = fingers.get(event.pointerId);
  const other = [...fingers.values()].find((one) => one !== finger);
  if (other === undefined) timeline.pan((finger.x - event.clientX) / pane.width);
  else {
    const spread = Math.max(Math.abs(event.clientX - other.x), 10) / Math.max(Math.abs(finger.x - other.x), 10);
    timeline.scale(1 / spread, pane.timeAt((event.clientX + other.x) / 2));
  }
  finger.x = event.clientX;
  pane.board.soon();
}
