"use strict";
// Rows over time. Only those in sight are in the document, so that thousands stay fluid.

const ROW = 15;
const OUT_OF_SIGHT = 3; // rows drawn above and below what is in sight
const LETTERS = { html: "H", css: "C", js: "J", image: "I", font: "F", media: "M", data: "D", other: "O" };

/**
 * A scrolled list that asks `draw(root, first, last, height, fresh)` for the rows in sight; y counts from row
 * `first`. The root stays while the same rows are in sight and `look()`, a text, is the same: then `fresh` is
 * false, and only the plot is to be drawn again. Text costs most of the time of a frame.
 */
class Rows {
  constructor(box, draw, look) {
    this.box = box;
    this.draw = draw;
    this.look = look;
    this.space = html("div", { class: "space" });
    this.count = 0;
    this.all = false; // on paper nothing scrolls
    box.addEventListener("scroll", () => this.moved());
    addEventListener("beforeprint", () => this.onPaper(true));
    addEventListener("afterprint", () => this.onPaper(false));
  }

  render(count, height) {
    [this.count, this.height] = [count, height];
    this.space.style.height = `${Math.max(count, 1) * height + 4}px`;
    if (!this.space.isConnected) this.box.replaceChildren(this.space);
    this.fill();
  }

  onPaper(all) {
    this.all = all;
    if (this.count) this.fill();
  }

  moved() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.measure();
      this.fill();
    });
  }

  measure() {
    this.sight = { scrollTop: this.box.scrollTop, clientHeight: this.box.clientHeight };
  }

  fill() {
    const { scrollTop, clientHeight } = this.sight;
    const from = this.all ? 0 : Math.max(Math.floor(scrollTop / this.height) - OUT_OF_SIGHT, 0);
    const inSight = Math.ceil((clientHeight || 400) / this.height) + 2 * OUT_OF_SIGHT;
    const until = this.all ? this.count : Math.min(from + inSight, this.count);
    const height = (until - from) * this.height + 4;
    const looks = `${from} ${until} ${this.look()}`;
    const fresh = looks !== this.looks;
    if (fresh) {
      this.looks = looks;
      this.root = svg("svg", { height, width: "100%", class: "objects", "aria-hidden": "true" });
      this.root.style.top = `${from * this.height}px`;
    }
    this.draw(this.root, from, until, height, fresh);
    if (fresh) this.space.replaceChildren(this.root);
  }

  /** The row at a height of the window; may be outside of the list. */
  at(clientY) {
    return Math.floor((clientY - this.space.getBoundingClientRect().top) / this.height);
  }

  /** Scrolls as little as needed for row `n` to be in sight. */
  reveal(n) {
    const { box, height } = this;
    if (n * height < box.scrollTop) box.scrollTop = n * height;
    else if ((n + 1) * height > box.scrollTop + box.clientHeight) box.scrollTop = (n + 1) * height - box.clientHeight + 4;
    this.measure();
    this.fill();
  }
}

/** The parts of a list of rows: backs over the whole width, and names left of the plot. */
function rowParts(root, pane, height) {
  const backs = svg("g");
  const names = svg("svg", { x: 0, y: 0, width: pane.gutter - 8, height, class: "clip" });
  root.append(backs, names);
  return { backs, names };
}

/** The plot of a list of rows, with its grid, in place of an earlier one. */
function rowPlot(root, pane, height) {
  root.querySelector(":scope > .plot")?.remove();
  const area = pane.plot(root, height);
  drawGrid(area, pane, height);
  return area;
}

function rowBack(number, y, height, selected) {
  const back = svg("rect", { x: 0, y, width: "100%", height, class: selected ? "back selected" : "back" });
  back.dataset.row = number;
  return back;
}

/** One row for each request. */
function drawRequests(root, pane, objects, height, fresh) {
  if (fresh) nameRequests(rowParts(root, pane, height), pane, objects);
  const area = rowPlot(root, pane, height);
  const bars = new Bars(pane);
  objects.forEach((object, n) => addRequest(bars, object, n * ROW, pane));
  bars.draw(area);
  drawCross(area, height);
}

function nameRequests({ backs, names }, pane, objects) {
  objects.forEach((object, n) => {
    const y = n * ROW;
    backs.append(rowBack(object.number, y, ROW, object.number === pane.selected));
    if (object.connection === pane.chosen?.connection) {
      names.append(svg("rect", { x: 0, y, width: "100%", height: ROW, class: "own" }));
      names.append(svg("rect", { x: 0, y, width: 3, height: ROW, class: "tab" }));
    }
    drawName(names, object, y, pane.roomy);
  });
}

function drawName(names, object, y, roomy) {
  names.append(svg("rect", { x: 6, y: y + 2, width: 11, height: 11, rx: 2, class: `type-${object.type ?? "other"} chip` }));
  names.append(svg("text", { x: 11.5, y: y + 11, class: "chip-letter" }, LETTERS[object.type] ?? "O"));
  if (object.blocking) names.append(svg("path", { d: `M20,${y + 2}v11M22.7,${y + 2}v11`, class: "blocks" }));
  const text = svg("text", { x: 27, y: y + 11.5, class: object.failed ? "name failed" : "name" });
  text.append(elided(shortName(object.url), roomy ? 22 : 14));
  if (roomy) text.append(svg("tspan", { dx: 6, class: "host" }, hostOf(object.url)));
  names.append(text);
}

const KINDS = ["open", "queued", "connect", "tls", "wait", "receive", "arrival"]; // later ones lie above

/** Bars of many rows as one path for each colour and kind: few elements are drawn fast. */
class Bars {
  constructor(pane) {
    this.pane = pane;
    this.paths = new Map();
  }

  add(colour, kind, path) {
    if (!path) return;
    if (!this.paths.has(colour)) this.paths.set(colour, Object.fromEntries(KINDS.map((one) => [one, ""])));
    this.paths.get(colour)[kind] += path;
  }

  /** A stretch of time in a row. */
  span(colour, kind, from, until, y, height) {
    this.add(colour, kind, stretch(this.pane, from, until, y, height));
  }

  handshake(connection, y) {
    this.span("by-phase", "connect", connection.opened, connection.connected, y + 4, 7);
    this.span("by-phase", "tls", connection.connected, connection.tls_done, y + 4, 7);
  }

  /** What was received of an object, with its arrivals. */
  received(colour, object, y) {
    this.span(colour, "receive", object.first_byte, object.last_byte, y + 2, 11);
    this.add(colour, "arrival", arrivals(this.pane, object, y));
  }

  draw(area) {
    for (const [colour, paths] of this.paths) {
      const group = svg("g", { class: `bar ${colour}` });
      for (const kind of KINDS) if (paths[kind]) group.append(svg("path", { d: paths[kind], class: kind }));
      area.append(group);
    }
  }
}

function addRequest(bars, object, y, pane) {
  const colour = pane.board.barClass(object, pane.visit);
  const connection = pane.visit.connections.get(object.connection);
  bars.span(colour, "queued", object.queued, object.sent, y + 6, 3);
  if (object.first_on_connection && connection) bars.handshake(connection, y);
  bars.span(colour, "wait", object.sent, object.first_byte, y + 3, 9);
  bars.received(colour, object, y);
}

/** The part of a path with a stroke for each arrival of bytes in sight. */
function arrivals(pane, object, y) {
  const { from, until } = pane.board.timeline;
  const times = object.arrivals;
  if (!times.length || times[0] > until || times[times.length - 1] < from) return "";
  const seen = times.filter((time) => time >= from && time <= until);
  return strokes(seen, (time) => pane.x(time), y + 2, 11);
}

/** One row for each connection: its handshake, and all that it carried. */
function drawConnections(root, pane, connections, height, fresh) {
  if (fresh) nameConnections(rowParts(root, pane, height), pane, connections);
  const area = rowPlot(root, pane, height);
  const bars = new Bars(pane);
  connections.forEach((connection, n) => addConnection(bars, pane, connection, n * ROW));
  bars.draw(area);
  drawCross(area, height);
}

function nameConnections({ backs, names }, pane, connections) {
  connections.forEach((connection, n) => {
    const y = n * ROW;
    const chosen = connection.connection === pane.chosen?.connection;
    backs.append(rowBack(connection.connection, y, ROW, chosen));
    if (chosen) names.append(svg("rect", { x: 0, y, width: 3, height: ROW, class: "tab" }));
    const text = svg("text", { x: 8, y: y + 11.5, class: "name" }, `#${connection.connection} ${elided(connection.host ?? "?", pane.roomy ? 26 : 11)}`);
    if (pane.roomy) text.append(svg("tspan", { dx: 6, class: "host" }, `${connection.objects ?? 0} · ${size(connection.bytes_received)}`));
    names.append(text);
  });
}

function addConnection(bars, pane, connection, y) {
  const open = connection.closed ?? connection.last_byte ?? connection.tls_done ?? connection.connected;
  bars.span("by-phase", "open", connection.opened, open, y + 7, 1);
  bars.handshake(connection, y);
  for (const object of pane.visit.carried.get(connection.connection) ?? []) {
    const colour = pane.board.barClass(object, pane.visit);
    bars.span(colour, "wait", object.sent, object.first_byte, y + 5, 5);
    bars.received(colour, object, y);
  }
}

/** The part of a path that fills a stretch of time; empty where one end is unknown or all is out of sight. */
function stretch(pane, from, until, y, height) {
  const { timeline } = pane.board;
  if (from === null || until === null || until < timeline.from || from > timeline.until) return "";
  const left = Math.max(pane.x(from), -10);
  const width = Math.max(Math.min(pane.x(until), pane.width + 10) - left, 0.5);
  return `M${left.toFixed(1)},${y}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`;
}
