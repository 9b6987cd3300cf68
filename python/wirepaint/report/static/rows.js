"use strict";
// Rows over time. Only those in sight are in the document, so that thousands stay fluid.

const ROW = 15;
const OUT_OF_SIGHT = 6; // rows drawn above and below what is in sight
const LETTERS = { html: "H", css: "C", js: "J", image: "I", font: "F", media: "M", data: "D", other: "O" };

/** A scrolled list that asks `draw(root, first, last)` for the rows in sight; y counts from row `first`. */
class Rows {
  constructor(box, draw) {
    this.box = box;
    this.draw = draw;
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
    const root = svg("svg", { height, width: "100%", class: "objects", "aria-hidden": "true" });
    root.style.top = `${from * this.height}px`;
    this.draw(root, from, until, height);
    this.space.replaceChildren(root);
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

/** The parts of a list of rows: backs over the whole width, names left of the plot, and the plot. */
function rowParts(root, pane, height) {
  const backs = svg("g");
  const names = svg("svg", { x: 0, y: 0, width: pane.gutter - 8, height, class: "clip" });
  root.append(backs, names);
  const area = pane.plot(root, height);
  drawGrid(area, pane, height);
  return { backs, names, area };
}

function rowBack(number, y, height, selected) {
  const back = svg("rect", { x: 0, y, width: "100%", height, class: selected ? "back selected" : "back" });
  back.dataset.row = number;
  return back;
}

/** One row for each request. */
function drawRequests(root, pane, objects, from, until, height) {
  const { backs, names, area } = rowParts(root, pane, height);
  objects.slice(from, until).forEach((object, n) => {
    const y = n * ROW;
    backs.append(rowBack(object.number, y, ROW, object.number === pane.selected));
    if (object.connection === pane.chosen?.connection) {
      names.append(svg("rect", { x: 0, y, width: "100%", height: ROW, class: "own" }));
      names.append(svg("rect", { x: 0, y, width: 3, height: ROW, class: "tab" }));
    }
    drawName(names, object, y, pane.gutter > 150);
    drawBar(area, object, y, pane);
  });
  drawCross(area, height);
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

function drawBar(area, object, y, pane) {
  const group = svg("g", { class: `bar ${pane.board.barClass(object, pane.visit)}` });
  const connection = pane.visit.connections.get(object.connection);
  span(group, pane, object.queued, object.sent, "queued", y + 6, 3);
  if (object.first_on_connection && connection) drawHandshake(group, pane, connection, y);
  span(group, pane, object.sent, object.first_byte, "wait", y + 3, 9);
  drawReceived(group, pane, object, y);
  area.append(group);
}

function drawHandshake(group, pane, connection, y) {
  span(group, pane, connection.opened, connection.connected, "connect", y + 4, 7);
  span(group, pane, connection.connected, connection.tls_done, "tls", y + 4, 7);
}

function drawReceived(group, pane, object, y) {
  span(group, pane, object.first_byte, object.last_byte, "receive", y + 2, 11);
  const path = arrivals(pane, object, y);
  if (path) group.append(svg("path", { d: path, class: "arrival" }));
}

/** The part of a path with a stroke for each arrival of bytes in sight. */
function arrivals(pane, object, y) {
  const { from, until } = pane.board.timeline;
  const seen = object.chunks.map(([time]) => time).filter((time) => time >= from && time <= until);
  return strokes(seen, (time) => pane.x(time), y + 2, 11);
}

/** A bar from one time to another. */
function span(group, pane, from, until, kind, y, height) {
  const d = stretch(pane, from, until, y, height);
  if (d) group.append(svg("path", { d, class: kind }));
}

/** One row for each connection: its handshake, and all that it carried. */
function drawConnections(root, pane, connections, from, until, height) {
  const { backs, names, area } = rowParts(root, pane, height);
  connections.slice(from, until).forEach((connection, n) => {
    const y = n * ROW;
    const chosen = connection.connection === pane.chosen?.connection;
    backs.append(rowBack(connection.connection, y, ROW, chosen));
    if (chosen) names.append(svg("rect", { x: 0, y, width: 3, height: ROW, class: "tab" }));
    const text = svg("text", { x: 8, y: y + 11.5, class: "name" }, `#${connection.connection} ${elided(connection.host ?? "?", pane.gutter > 150 ? 26 : 11)}`);
    if (pane.gutter > 150) text.append(svg("tspan", { dx: 6, class: "host" }, `${connection.objects ?? 0} · ${size(connection.bytes_received)}`));
    names.append(text);
    area.append(drawLane(pane, connection, y));
  });
  drawCross(area, height);
}

/** A connection's lane: one path for each kind of stretch, however many requests it carried. */
function drawLane(pane, connection, y) {
  const group = svg("g", { class: "bar by-phase" });
  const open = connection.closed ?? connection.last_byte ?? connection.tls_done ?? connection.connected;
  span(group, pane, connection.opened, open, "open", y + 7, 1);
  drawHandshake(group, pane, connection, y);
  const paths = new Map();
  const add = (colour, kind, path) => path && paths.set(`${colour}|${kind}`, (paths.get(`${colour}|${kind}`) ?? "") + path);
  for (const object of pane.visit.carried.get(connection.connection) ?? []) {
    const colour = pane.board.barClass(object, pane.visit);
    add(colour, "wait", stretch(pane, object.sent, object.first_byte, y + 5, 5));
    add(colour, "receive", stretch(pane, object.first_byte, object.last_byte, y + 2, 11));
    add(colour, "arrival", arrivals(pane, object, y));
  }
  for (const [kinds, d] of paths) {
    const [colour, kind] = kinds.split("|");
    group.append(svg("g", { class: colour }, svg("path", { d, class: kind })));
  }
  return group;
}

/** The part of a path that fills a stretch of time; empty where one end is unknown or all is out of sight. */
function stretch(pane, from, until, y, height) {
  const { timeline } = pane.board;
  if (from === null || until === null || until < timeline.from || from > timeline.until) return "";
  const left = Math.max(pane.x(from), -10);
  const width = Math.max(Math.min(pane.x(until), pane.width + 10) - left, 0.5);
  return `M${left.toFixed(1)},${y}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`;
}
