"use strict";
// What runs under the rows on the same axis: a sender's window, the sum in flight, the link, the processor.

const WINDOW = 130;
const STRIP = 52;

/** All plots of a pane, one under the other, in the pane's one drawing. */
function drawPlots(root, pane) {
  const { visit } = pane;
  const strips = [drawFlight, drawRate, drawQueue, ...(visit.cpu ? [drawCpu] : [])];
  const height = WINDOW + strips.length * STRIP;
  root.replaceChildren();
  root.setAttribute("height", height);
  const area = pane.plot(root, height);
  const series = visit.tcp[pane.connection.value];
  if (series) drawPhases(area, pane, series, WINDOW - 4);
  drawGrid(area, pane, height);
  drawWindow(root, area, pane, series);
  strips.forEach((draw, n) => {
    const strip = new Strip(root, area, pane, WINDOW + n * STRIP);
    draw(strip, pane, visit);
    strip.close();
  });
  drawCross(area, height);
}

function drawWindow(root, area, pane, series) {
  const bottom = WINDOW - 4;
  const top = pane.board.windowTop();
  const y = (value) => bottom - (Math.min(value, top * 1.02) / top) * (bottom - 16);
  for (const tick of niceTicks(0, top, 4)) {
    area.append(svg("line", { x1: 0, x2: pane.width, y1: y(tick), y2: y(tick), class: "grid" }));
    root.append(svg("text", { x: pane.gutter - 6, y: y(tick) + 4, class: "tick end" }, String(tick)));
  }
  root.append(svg("text", { x: 0, y: 12, class: "title" }, pane.roomy ? "Window, segments" : "Window"));
  if (series) drawSender(area, pane, series, (time) => pane.x(time), y, bottom);
  else area.append(svg("text", { x: 8, y: bottom / 2, class: "empty" }, "no sample of this connection's sender"));
  if (pane.roomy) drawLegend(root);
}

function drawPhases(area, pane, series, bottom) {
  for (const { name, from, until } of series.phases) {
    if (name === AVOIDANCE) continue;
    const width = pane.x(until) - pane.x(from);
    const kind = `phase phase-${name.replace(" ", "-")}`;
    area.append(svg("rect", { x: pane.x(from), y: 0, width: Math.max(width, 1), height: bottom, class: kind }));
    if (width > name.length * 6.5) area.append(svg("text", { x: pane.x(from) + 4, y: 11, class: "phase-name" }, name));
  }
}

/** Window, threshold, segments in flight and retransmissions of one sender. */
function drawSender(area, pane, series, x, y, bottom) {
  const connection = pane.visit.connections.get(series.connection);
  const until = Math.max(connection?.last_byte ?? 0, series.time[series.time.length - 1] ?? 0);
  const [time, cwnd, ssthresh, flight] = within(pane.board.timeline, series.time, series.cwnd, series.ssthresh, series.in_flight);
  const end = Math.min(until, pane.board.timeline.until);
  const first = flight.findIndex((value) => value !== null);
  if (first >= 0) area.append(svg("path", { d: `${steps(time, flight, x, y, end)}V${bottom}H${x(time[first])}Z`, class: "flight" }));
  area.append(svg("path", { d: steps(time, ssthresh, x, y, end), class: "ssthresh" }));
  area.append(svg("path", { d: steps(time, cwnd, x, y, end), class: "cwnd" }));
  const resent = series.resent.map((t) => `M${x(t).toFixed(1)},${bottom}l-3,-7h6z`).join("");
  if (resent) area.append(svg("path", { d: resent, class: "resent" }));
  area.append(svg("line", { x1: 0, x2: "100%", y1: bottom, y2: bottom, class: "base" }));
}

function drawLegend(root) {
  const entries = [
    ["cwnd", "congestion window", "M0,0h18"],
    ["ssthresh", "ssthresh", "M0,0h18"],
    ["flight", "in flight", "M0,-4h18v8h-18z"],
    ["resent", "retransmitted", "M9,4l-4,-9h8z"],
  ];
  entries.forEach(([kind, words, shape], n) => {
    root.append(svg("path", { d: shape, class: kind, transform: `translate(4,${34 + n * 17})` }));
    root.append(svg("text", { x: 28, y: 38 + n * 17, class: "legend" }, words));
  });
}

/** A low plot of one quantity: its title, the value at its top, and what is drawn in it. */
class Strip {
  constructor(root, area, pane, offset) {
    Object.assign(this, { root, area, pane, offset, bottom: offset + STRIP - 6 });
  }

  /** Sets the scale; `top` is the value at the upper edge, `label` says it. */
  scale(title, short, top, label) {
    this.y = (value) => this.bottom - (Math.min(value, top) / top) * (STRIP - 18);
    this.root.append(svg("text", { x: 0, y: this.offset + 13, class: "title" }, this.pane.roomy ? title : short));
    this.root.append(svg("text", { x: this.pane.gutter - 6, y: this.y(top) + (this.pane.roomy ? 8 : 22), class: "tick end" }, label));
  }

  note(words) {
    if (this.pane.roomy) this.root.append(svg("text", { x: 0, y: this.offset + 29, class: "legend" }, words));
  }

  line(times, values, kind, { filled = false } = {}) {
    const { pane, bottom } = this;
    const known = filled ? values.map((value) => value ?? 0) : values;
    const [time, value] = within(pane.board.timeline, times, known);
    const end = Math.min(pane.visit.end, pane.board.timeline.until);
    const path = steps(time, value, (t) => pane.x(t), this.y, end);
    if (!path) return;
    const closed = `V${bottom}H${pane.x(time[0]).toFixed(1)}Z`;
    this.area.append(svg("path", { d: filled ? path + closed : path, class: kind }));
  }

  close() {
    this.area.append(svg("line", { x1: 0, x2: "100%", y1: this.bottom, y2: this.bottom, class: "base" }));
  }
}

/** All senders' bytes in flight, against the bandwidth-delay product: more than it waits in the queue. */
function drawFlight(strip, pane, visit) {
  const { bdp } = visit;
  const known = bdp.filter((value) => value !== null);
  const top = pane.board.flightTop();
  strip.scale("In flight, all connections", "In flight", top, size(Math.round(top)));
  if (known.length) strip.note(`dashed: BDP, ${size(Math.round(known[known.length >> 1]))}`);
  strip.line(visit.flight.time, visit.flight.bytes, "flight", { filled: true });
  strip.line(visit.link.time, bdp, "limit");
}

function drawRate(strip, pane, { link }) {
  const top = pane.board.rateTop();
  strip.scale("Link to the client, Mbit/s", "Mbit/s", top, top.toFixed(top < 10 ? 1 : 0));
  if (link.capacity.some((value) => value !== null)) strip.note("dashed: what it could carry");
  strip.line(link.time, link.rate, "carried", { filled: true });
  strip.line(link.time, link.capacity, "limit");
}

function drawQueue(strip, pane, { link }) {
  const top = pane.board.queueTop();
  strip.scale("Queue to the client, packets", "Queue", top, String(top));
  strip.note("red: dropped");
  strip.line(link.time, link.queue, "queue", { filled: true });
  const lost = link.time.filter((_, n) => link.drops[n] > 0);
  if (lost.length) strip.area.append(svg("path", { d: strokes(lost, (t) => pane.x(t), strip.offset + 3, 9), class: "drops" }));
}

/** Cores that the browser kept busy. */
function drawCpu(strip, pane, { cpu }) {
  const top = Math.max(1, ...cpu.busy.map((value) => value ?? 0));
  strip.scale("Browser, cores busy", "CPU", top, top.toFixed(1));
  strip.line(cpu.time, cpu.busy, "busy", { filled: true });
}

/** The windows of all connections of a pane, small, on the pane's axis and one scale. */
function drawMultiples(box, pane) {
  const connections = pane.byBytes.filter((c) => pane.visit.tcp[c.connection]);
  const top = Math.max(12, ...connections.flatMap((c) => pane.visit.tcp[c.connection].cwnd)) * 1.05;
  const { from, until } = pane.board.timeline;
  box.replaceChildren(
    ...connections.map((c) => {
      const root = svg("svg", { viewBox: "0 0 220 90", "aria-hidden": "true" });
      const x = (time) => ((time - from) / (until - from)) * 220;
      drawSender(root, pane, pane.visit.tcp[c.connection], x, (value) => 89 - (Math.min(value, top) / top) * 86, 89);
      const name = `#${c.connection} ${c.host ?? "?"}`;
      const words = `up to ${Math.max(...pane.visit.tcp[c.connection].cwnd)} · ${size(c.bytes_received)}`;
      const button = html("button", { type: "button" }, html("b", {}, name), html("span", {}, words), root);
      button.setAttribute("aria-pressed", String(c === pane.chosen));
      button.addEventListener("click", () => pane.choose(c.connection));
      return button;
    }),
  );
}
