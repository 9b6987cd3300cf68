"use strict";
// The waterfall of a visit with the congestion window of one connection under it, on one time axis.
//
// A Board holds what both panes share (page, colours, zoom, crosshair); a Pane shows one visit.

const ROW = 15;
const AXIS = 62;
const WINDOW = 150;
const QUEUE = 46;
const LETTERS = { html: "H", css: "C", js: "J", image: "I", font: "F", media: "M", data: "D", other: "O" };

class Pane {
  constructor(board, element) {
    this.board = board;
    this.element = element;
    const part = (name) => element.querySelector(`[data-part="${name}"]`);
    this.scenario = part("scenario");
    this.role = part("visit");
    this.connection = part("connection");
    this.axis = part("axis");
    this.scroll = part("rows");
    this.window = part("window");
    this.readout = part("readout");
    this.facts = part("facts");
    this.selected = null;
    this.scenario.addEventListener("change", () => this.load());
    this.role.addEventListener("change", () => this.load());
    this.connection.addEventListener("change", () => board.follow(this));
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    for (const area of [this.axis, this.scroll, this.window]) this.listen(area);
    for (const name of board.scenarios) this.scenario.append(html("option", { value: name }, name));
  }

  /** Shows the chosen visit of the board's page. */
  async load() {
    const entries = this.board.entries(this.scenario.value);
    const wanted = this.role.value;
    const name = (e) => `${e.user_agent} ${e.role}`;
    this.role.replaceChildren(...entries.map((e) => html("option", { value: name(e) }, this.board.label(e))));
    const entry = entries.find((e) => name(e) === wanted) ?? entries[0];
    this.element.classList.toggle("missing", !entry);
    if (!entry) {
      this.visit = this.entry = null;
      this.element.dataset.ready = "missing";
      return;
    }
    this.role.value = name(entry);
    this.element.style.setProperty("--series", `var(--series-${entry.series})`);
    this.entry = entry;
    const visit = await this.board.visit(entry.id);
    if (this.entry !== entry) return; // another one was chosen meanwhile
    this.visit = visit;
    this.selected = null;
    this.fillConnections();
    this.board.render();
    this.element.dataset.ready = entry.key;
  }

  fillConnections() {
    const { connections } = this.visit;
    const chosen = this.visit.busiest(this.board.host);
    this.connection.replaceChildren(
      ...[...connections.values()]
        .sort((a, b) => (b.bytes_received ?? 0) - (a.bytes_received ?? 0))
        .map((c) => html("option", { value: c.connection }, `${c.host ?? "?"} · ${size(c.bytes_received)} · #${c.connection}`)),
    );
    if (chosen) this.connection.value = chosen.connection;
  }

  get chosen() {
    return this.visit?.connections.get(Number(this.connection.value)) ?? null;
  }

  get gutter() {
    return this.element.clientWidth < 620 ? 104 : 236;
  }

  get width() {
    return Math.max(this.scroll.clientWidth - this.gutter - 34, 60);
  }

  x(time) {
    const [from, until] = this.board.zoom;
    return ((time - from) / (until - from)) * this.width;
  }

  timeAt(clientX) {
    const [from, until] = this.board.zoom;
    const left = this.scroll.getBoundingClientRect().left + this.gutter;
    return from + ((clientX - left) / this.width) * (until - from);
  }

  render() {
    if (!this.visit) return;
    this.renderAxis();
    this.renderRows();
    this.renderWindow();
    this.renderFacts();
  }

  /** A plot area right of the gutter that clips what leaves it, and a line for the crosshair. */
  plot(parent, height) {
    const area = svg("svg", { x: this.gutter, y: 0, width: this.width, height, class: "plot clip" });
    parent.append(area);
    return area;
  }

  grid(area, height) {
    for (const tick of niceTicks(...this.board.zoom, this.width / 80)) {
      area.append(svg("line", { x1: this.x(tick), x2: this.x(tick), y1: 0, y2: height, class: "grid" }));
    }
    for (const { label, time } of this.visit.marks) {
      const kind = `mark mark-${label.toLowerCase()}`;
      area.append(svg("line", { x1: this.x(time), x2: this.x(time), y1: 0, y2: height, class: kind }));
    }
  }

  cross(area, height) {
    area.append(svg("line", { y1: 0, y2: height, visibility: "hidden", class: "cross" }));
  }

  renderAxis() {
    const axis = this.axis;
    axis.replaceChildren();
    axis.setAttribute("height", AXIS);
    const area = svg("svg", { x: this.gutter, y: 0, width: this.width + 40, height: AXIS });
    axis.append(area);
    const inside = (time) => time >= this.board.zoom[0] && time <= this.board.zoom[1];
    for (const tick of niceTicks(...this.board.zoom, this.width / 80)) {
      area.append(svg("text", { x: this.x(tick), y: AXIS - 4, class: "tick" }, duration(tick)));
    }
    const free = [-Infinity, -Infinity, -Infinity, -Infinity];
    for (const { label, time } of [...this.visit.marks].sort((a, b) => a.time - b.time)) {
      if (!inside(time)) continue;
      const x = this.x(time);
      const level = Math.max(free.findIndex((right) => right < x), 0);
      free[level] = x + 8 * label.length + 4;
      const kind = `mark-${label.toLowerCase()}`;
      area.append(svg("line", { x1: x, x2: x, y1: 2 + 11 * level, y2: AXIS, class: `mark ${kind}` }));
      area.append(svg("text", { x: x + 3, y: 11 + 11 * level, class: `label ${kind}` }, label));
    }
    this.cross(area, AXIS);
  }

  renderRows() {
    const { objects } = this.visit;
    const height = objects.length * ROW + 4;
    const root = svg("svg", { height, width: "100%", class: "objects", role: "img" });
    root.setAttribute("aria-label", `${objects.length} requests of ${this.visit.url} over time`);
    const names = svg("svg", { x: 0, y: 0, width: this.gutter - 8, height, class: "clip" });
    const backs = svg("g");
    root.append(backs, names);
    const area = this.plot(root, height);
    this.grid(area, height);
    for (const object of objects) {
      const y = object.number * ROW;
      const own = object.connection === this.chosen?.connection;
      const back = svg("rect", { x: 0, y, width: "100%", height: ROW, class: "back" });
      back.dataset.row = object.number;
      backs.append(back);
      this.renderName(names, object, y, own);
      this.renderBar(area, object, y);
    }
    this.cross(area, height);
    this.scroll.replaceChildren(root);
    this.markSelected();
  }

  renderName(names, object, y, own) {
    const letter = LETTERS[object.type] ?? "O";
    if (own) {
      names.append(svg("rect", { x: 0, y, width: "100%", height: ROW, class: "own" }));
      names.append(svg("rect", { x: 0, y, width: 3, height: ROW, class: "tab" }));
    }
    names.append(svg("rect", { x: 6, y: y + 2, width: 11, height: 11, rx: 2, class: `type-${object.type ?? "other"} chip` }));
    names.append(svg("text", { x: 11.5, y: y + 11, class: "chip-letter" }, letter));
    const text = svg("text", { x: 21, y: y + 11.5, class: object.failed ? "name failed" : "name" });
    text.append(elided(shortName(object.url), 22));
    if (this.gutter > 150) text.append(svg("tspan", { dx: 6, class: "host" }, hostOf(object.url)));
    names.append(text);
  }

  renderBar(area, object, y) {
    const group = svg("g", { class: `bar ${this.board.barClass(object, this.visit)}` });
    const rect = (from, until, kind, inset) => {
      if (from === null || until === null || until < from) return;
      const width = Math.max(this.x(until) - this.x(from), 0.5);
      group.append(svg("rect", { x: this.x(from), y: y + inset, width, height: ROW - 2 * inset, class: kind }));
    };
    rect(object.queued, object.sent, "queued", 6);
    const connection = this.visit.connections.get(object.connection);
    if (object.first_on_connection && connection) {
      rect(connection.opened, connection.connected, "connect", 4);
      rect(connection.connected, connection.tls_done, "tls", 4);
    }
    rect(object.sent, object.first_byte, "wait", 3);
    rect(object.first_byte, object.last_byte, "receive", 2);
    const path = object.chunks.map(([time]) => `M${this.x(time).toFixed(1)},${y + 2}v${ROW - 4}`).join("");
    if (path) group.append(svg("path", { d: path, class: "arrival" }));
    area.append(group);
  }

  renderWindow() {
    const root = this.window;
    const height = WINDOW + QUEUE + 8;
    root.replaceChildren();
    root.setAttribute("height", height);
    const area = this.plot(root, height);
    const series = this.visit.tcp[this.connection.value];
    const bottom = WINDOW - 4;
    const top = this.board.windowTop();
    const y = (value) => bottom - (Math.min(value, top * 1.02) / top) * (bottom - 16);
    if (series) this.renderPhases(area, series, bottom);
    this.grid(area, height);
    for (const tick of niceTicks(0, top, 4)) {
      area.append(svg("line", { x1: 0, x2: this.width, y1: y(tick), y2: y(tick), class: "grid" }));
      root.append(svg("text", { x: this.gutter - 6, y: y(tick) + 4, class: "tick end" }, String(tick)));
    }
    root.append(svg("text", { x: 0, y: 12, class: "title" }, this.gutter > 150 ? "Window, segments" : "Window"));
    if (series) this.renderSender(area, series, y, bottom);
    else area.append(svg("text", { x: 8, y: bottom / 2, class: "empty" }, "no sample of this connection's sender"));
    this.renderLegend(root);
    this.renderQueue(root, area, WINDOW + 4);
    this.cross(area, height);
  }

  renderPhases(area, series, bottom) {
    for (const { name, from, until } of series.phases) {
      if (name === AVOIDANCE) continue;
      const width = this.x(until) - this.x(from);
      const kind = `phase phase-${name.replace(" ", "-")}`;
      area.append(svg("rect", { x: this.x(from), y: 0, width: Math.max(width, 1), height: bottom, class: kind }));
      if (width > name.length * 6.5) area.append(svg("text", { x: this.x(from) + 4, y: 11, class: "phase-name" }, name));
    }
  }

  renderSender(area, series, y, bottom) {
    const until = Math.max(this.chosen?.last_byte ?? 0, series.time[series.time.length - 1] ?? 0);
    const x = (time) => this.x(time);
    const flight = steps(series.time, series.in_flight, x, y, until);
    if (flight) {
      const start = this.x(series.time[series.in_flight.findIndex((v) => v !== null)]);
      area.append(svg("path", { d: `${flight}V${bottom}H${start}Z`, class: "flight" }));
    }
    area.append(svg("path", { d: steps(series.time, series.ssthresh, x, y, until), class: "ssthresh" }));
    area.append(svg("path", { d: steps(series.time, series.cwnd, x, y, until), class: "cwnd" }));
    const resent = series.resent.map((t) => `M${this.x(t).toFixed(1)},${bottom}l-3,-7h6z`).join("");
    if (resent) area.append(svg("path", { d: resent, class: "resent" }));
    area.append(svg("line", { x1: 0, x2: this.width, y1: bottom, y2: bottom, class: "base" }));
  }

  renderLegend(root) {
    if (this.gutter < 150) return;
    const entries = [
      ["cwnd", "congestion window", "M0,0h18"],
      ["ssthresh", "ssthresh", "M0,0h18"],
      ["flight", "in flight", "M0,-4h18v8h-18z"],
      ["resent", "retransmitted", "M9,4l-4,-9h8z"],
    ];
    entries.forEach(([kind, words, shape], n) => {
      const at = `translate(4,${34 + n * 17})`;
      root.append(svg("path", { d: shape, class: kind, transform: at }));
      root.append(svg("text", { x: 28, y: 38 + n * 17, class: "legend" }, words));
    });
  }

  renderQueue(root, area, offset) {
    const { time, queue, drops } = this.visit.link;
    const top = this.board.queueTop();
    const bottom = offset + QUEUE - 2;
    const y = (value) => bottom - (value / top) * (QUEUE - 12);
    root.append(svg("text", { x: 0, y: offset + 12, class: "title" }, this.gutter > 150 ? "Queue to the client, packets" : "Queue"));
    root.append(svg("text", { x: this.gutter - 6, y: y(top) + 8, class: "tick end" }, String(top)));
    if (time.length) {
      const path = steps(time, queue, (t) => this.x(t), y, this.visit.end);
      area.append(svg("path", { d: `${path}V${bottom}H${this.x(time[0])}Z`, class: "queue" }));
      const lost = time.filter((_, n) => drops[n] > 0).map((t) => `M${this.x(t).toFixed(1)},${offset + 1}v9`).join("");
      if (lost) area.append(svg("path", { d: lost, class: "drops" }));
    }
    area.append(svg("line", { x1: 0, x2: this.width, y1: bottom, y2: bottom, class: "base" }));
  }

  renderFacts() {
    const c = this.chosen;
    if (!c) return;
    const facts = [
      c.host, c.protocol, c.encrypted ? "TLS" : "plain", c.congestion, `initial window ${c.initial_window ?? "?"}`,
      `${c.objects ?? 0} objects`, size(c.bytes_received), `smallest RTT ${duration(c.min_rtt)}`,
      `${c.retransmitted_segments ?? 0} segments retransmitted`,
      c.group_hosts && `its group spans ${c.group_hosts} host${c.group_hosts > 1 ? "s" : ""}`,
    ];
    this.facts.textContent = facts.filter(Boolean).join(" · ");
  }

  /** Values of the window at the crosshair. */
  crosshair(time) {
    if (!this.visit) return;
    const x = time === null ? 0 : this.x(time);
    for (const line of this.element.querySelectorAll(".cross")) {
      line.setAttribute("visibility", time === null ? "hidden" : "visible");
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    }
    this.readout.textContent = time === null ? "" : this.valuesAt(time);
  }

  valuesAt(time) {
    const parts = [`at ${duration(time)}`];
    const series = this.visit.tcp[this.connection.value];
    const n = series ? lastAtMost(series.time, time) : -1;
    if (n >= 0) {
      parts.push(`window ${series.cwnd[n]}`, `ssthresh ${series.ssthresh[n] ?? "∞"}`, `in flight ${series.in_flight[n] ?? "?"}`);
      const phase = series.phases.find((p) => p.from <= time && time <= p.until);
      if (phase) parts.push(phase.name);
    }
    const k = lastAtMost(this.visit.link.time, time);
    if (k >= 0) parts.push(`queue ${this.visit.link.queue[k]} packets`);
    return parts.join(" · ");
  }

  listen(area) {
    let from = null;
    area.addEventListener("pointermove", (event) => {
      const time = this.timeAt(event.clientX);
      this.board.crosshair(time >= this.board.zoom[0] ? time : null);
      if (from !== null) this.board.brush(this, from, event.clientX);
      else if (area === this.scroll) this.hover(event);
    });
    area.addEventListener("pointerleave", () => {
      this.board.crosshair(null);
      hideTip();
    });
    area.addEventListener("pointerdown", (event) => {
      const inPlot = event.clientX > this.scroll.getBoundingClientRect().left + this.gutter;
      if (event.button !== 0 || !inPlot || event.pointerType === "touch") return;
      from = event.clientX;
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointerup", (event) => {
      const start = from;
      from = null;
      this.board.brush(this, null);
      if (start !== null && Math.abs(event.clientX - start) > 5) {
        const [a, b] = [this.timeAt(start), this.timeAt(event.clientX)].sort((m, n) => m - n);
        this.board.setZoom(a, b);
      } else if (area === this.scroll) this.select(this.rowAt(event));
    });
    area.addEventListener("dblclick", () => this.board.setZoom());
  }

  rowAt(event) {
    const top = this.scroll.firstElementChild?.getBoundingClientRect().top ?? 0;
    return this.visit?.objects[Math.floor((event.clientY - top) / ROW)] ?? null;
  }

  hover(event) {
    const object = this.rowAt(event);
    if (object) showTip(this.describe(object), event.clientX, event.clientY);
    else hideTip();
  }

  describe(o) {
    const spent = (from, until) => (from === null || until === null ? "–" : duration(until - from));
    const line = (name, value) => html("div", {}, html("dt", {}, name), html("dd", {}, value));
    const c = this.visit.connections.get(o.connection);
    const connects = o.first_on_connection && c;
    return [
      html("p", { class: "tip-title" }, o.url),
      html("dl", {},
        line("answer", [o.failed ?? o.status, o.type, o.protocol].filter(Boolean).join(" · ")),
        line("size", `${size(o.encoded_bytes)} (decoded ${size(o.decoded_bytes)})`),
        line("priority", o.priority ?? "–"),
        line("caused by", o.initiator ? shortName(o.initiator) : "navigation"),
        line("connection", `#${o.connection ?? "?"}${connects ? ", opened for it" : ""}`),
        line("queued", `${spent(o.queued, o.sent)}, from ${duration(o.queued)}`),
        ...(connects ? [line("connect, TLS", `${spent(c.opened, c.connected)}, ${spent(c.connected, c.tls_done)}`)] : []),
        line("wait", spent(o.sent, o.first_byte)),
        line("receive", `${spent(o.first_byte, o.last_byte)} in ${o.chunks.length} arrivals`),
        line("done", duration(o.last_byte))),
    ];
  }

  /** Selects a row; its connection becomes the one whose window is shown. */
  select(object) {
    if (!object) return;
    this.selected = object.number;
    if (object.connection !== null && this.visit.connections.has(object.connection)) {
      this.connection.value = object.connection;
      this.board.follow(this);
    }
    this.markSelected();
  }

  markSelected() {
    this.scroll.querySelector(".back.selected")?.classList.remove("selected");
    const back = this.scroll.querySelector(`.back[data-row="${this.selected}"]`);
    back?.classList.add("selected");
  }

  key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") {
      hideTip();
      return;
    }
    if (!(event.key in moves) || !this.visit) return;
    event.preventDefault();
    const last = this.visit.objects.length - 1;
    const next = Math.min(Math.max((this.selected ?? -1) + moves[event.key], 0), last);
    this.select(this.visit.objects[next]);
    const back = this.scroll.querySelector(".back.selected");
    back.scrollIntoView({ block: "nearest" });
    const box = back.getBoundingClientRect();
    showTip(this.describe(this.visit.objects[next]), box.left + this.gutter, box.bottom);
  }
}

/** What both panes share. */
class Board {
  constructor(root) {
    this.root = root;
    this.index = JSON.parse(document.getElementById("visit-index").textContent);
    this.scenarios = [...new Set(this.index.map((entry) => entry.scenario))];
    this.cache = new Map();
    this.host = null;
    this.zoom = [0, 1];
    this.zoomed = false;
    const part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.page = part("page");
    this.colours = part("colours");
    this.layout = part("layout");
    for (const page of new Set(this.index.map((entry) => entry.page))) this.page.append(html("option", { value: page }, page));
    this.panes = [...root.querySelectorAll(".pane")].map((element) => new Pane(this, element));
    this.page.addEventListener("change", () => this.load());
    this.colours.addEventListener("change", () => this.render());
    this.layout.addEventListener("change", () => this.arrange());
    part("zoom-in").addEventListener("click", () => this.scale(0.5));
    part("zoom-out").addEventListener("click", () => this.scale(2));
    part("zoom-all").addEventListener("click", () => this.setZoom());
    new ResizeObserver(() => this.render()).observe(root);
  }

  async start() {
    const first = this.index.find((entry) => entry.network === this.index[0].network && entry.series !== this.index[0].series);
    this.panes[0].scenario.value = this.scenarios[0];
    this.panes[1].scenario.value = first?.scenario ?? this.scenarios[this.scenarios.length - 1];
    if (this.scenarios.length === 1) this.layout.value = "one";
    this.arrange();
    await this.load();
  }

  async load() {
    this.zoomed = false;
    await Promise.all(this.panes.map((pane) => pane.load()));
  }

  entries(scenario) {
    return this.index.filter((entry) => entry.scenario === scenario && entry.page === this.page.value);
  }

  /** A visit in words: "median (number 3)", with user and verdict where they tell something. */
  label(entry) {
    const several = new Set(this.index.map((e) => e.user_agent)).size > 1;
    const notes = [`number ${entry.visit}`, several && entry.user_agent, entry.verdict !== "valid" && entry.verdict];
    return `${entry.role} (${notes.filter(Boolean).join(", ")})`;
  }

  visit(id) {
    if (!this.cache.has(id)) {
      const packed = document.getElementById(id).textContent;
      this.cache.set(id, unpack(packed).then((raw) => new Visit(raw)));
    }
    return this.cache.get(id);
  }

  get shown() {
    return this.panes.filter((pane) => pane.visit && !pane.element.hidden);
  }

  render() {
    if (!this.zoomed) this.zoom = [0, Math.max(1, ...this.shown.map((pane) => pane.visit.end))];
    for (const pane of this.shown) pane.render();
  }

  arrange() {
    this.root.dataset.layout = this.layout.value;
    this.panes[1].element.hidden = this.layout.value === "one";
    this.render();
  }

  setZoom(from, until) {
    this.zoomed = from !== undefined;
    if (this.zoomed) this.zoom = [Math.max(from, 0), Math.max(until, from + 1)];
    this.render();
  }

  scale(factor) {
    const [from, until] = this.zoom;
    const middle = (from + until) / 2;
    const half = ((until - from) / 2) * factor;
    const end = Math.max(1, ...this.shown.map((pane) => pane.visit.end));
    if (2 * half >= end) this.setZoom();
    else this.setZoom(Math.max(middle - half, 0), Math.min(middle + half, end));
  }

  crosshair(time) {
    for (const pane of this.shown) pane.crosshair(time);
  }

  /** Draws the stretch of time that is being chosen. */
  brush(pane, from, until) {
    this.root.querySelectorAll(".brush").forEach((element) => element.remove());
    if (from === null || Math.abs(until - from) < 5) return;
    const [a, b] = [pane.timeAt(from), pane.timeAt(until)].sort((m, n) => m - n);
    for (const area of pane.element.querySelectorAll("svg.plot")) {
      area.append(svg("rect", { x: pane.x(a), width: pane.x(b) - pane.x(a), y: 0, height: "100%", class: "brush" }));
    }
  }

  /** The other pane shows the connection to the same host. */
  follow(leader) {
    this.host = leader.chosen?.host ?? null;
    for (const pane of this.shown) {
      const same = pane === leader ? null : pane.visit.busiest(this.host);
      if (same) pane.connection.value = same.connection;
    }
    this.render();
  }

  windowTop() {
    const tops = this.shown.map((pane) => {
      const series = pane.visit.tcp[pane.connection.value];
      return series ? Math.max(...series.cwnd, ...series.in_flight) : 0;
    });
    return Math.max(12, ...tops) * 1.08;
  }

  queueTop() {
    return Math.max(4, ...this.shown.flatMap((pane) => pane.visit.link.queue));
  }

  barClass(object, visit) {
    if (this.colours.value === "type") return `type-${object.type ?? "other"}`;
    if (this.colours.value === "connection") return `lane-${(visit.connections.get(object.connection)?.order ?? 9) % 10}`;
    return "by-phase";
  }
}
