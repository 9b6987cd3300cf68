"use strict";
// One visit on the board: its rows, what runs under them, and the details of the chosen request.

const AXIS = 62;

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
    this.plots = part("plots");
    this.readout = part("readout");
    this.facts = part("facts");
    this.details = part("details");
    this.multiples = part("multiples");
    this.selected = null;
    const look = () => [board.view, board.search.value, this.entry.id, this.selected, this.connection.value, this.gutter, this.width].join(" ");
    this.rows = new Rows(this.scroll, (...sight) => this.drawRows(...sight), look);
    this.scenario.addEventListener("change", () => this.load());
    this.role.addEventListener("change", () => this.load());
    this.connection.addEventListener("change", () => board.follow(this));
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    this.multiples.addEventListener("toggle", () => this.renderMultiples());
    listen(this.axis, this);
    listen(this.plots, this);
    listen(this.scroll, this, { hover: (event) => this.hover(event), click: (event) => this.select(this.listed[this.rows.at(event.clientY)]) });
    for (const [scenario, name] of board.scenarios) this.scenario.append(html("option", { value: scenario }, name));
  }

  /** Shows the chosen visit of the board's page. */
  async load() {
    const entries = this.board.entries(this.scenario.value);
    const wanted = this.role.value;
    const name = (e) => `${e.user_agent} ${e.role}`;
    this.role.replaceChildren(...entries.map((e) => html("option", { value: name(e) }, this.board.label(e))));
    const entry = entries.find((e) => name(e) === wanted) ?? entries[0];
    this.element.classList.toggle("missing", !entry);
    this.selected = null;
    this.details.hidden = true;
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
    this.fillConnections();
    this.board.render();
    this.element.dataset.ready = entry.key;
  }

  /** The connections, those that received most first. */
  get byBytes() {
    return [...this.visit.connections.values()].sort((a, b) => (b.bytes_received ?? 0) - (a.bytes_received ?? 0));
  }

  fillConnections() {
    const chosen = this.visit.busiest(this.board.host);
    this.connection.replaceChildren(
      ...this.byBytes.map((c) => html("option", { value: c.connection }, `${c.host ?? "?"} · ${size(c.bytes_received)} · #${c.connection}`)),
    );
    if (chosen) this.connection.value = chosen.connection;
  }

  get chosen() {
    return this.visit?.connections.get(Number(this.connection.value)) ?? null;
  }

  get marks() {
    return this.visit.marks;
  }

  /** Whether there is room for words left of the plot. */
  get roomy() {
    return this.gutter > 150;
  }

  /** Reads all sizes, before anything is drawn: reading between changes would lay the page out each time. */
  measure() {
    this.gutter = this.element.clientWidth < 620 ? 104 : 236;
    this.width = Math.max(this.scroll.clientWidth - this.gutter - 34, 60);
    this.rows.measure();
  }

  x(time) {
    const { from, until } = this.board.timeline;
    return ((time - from) / (until - from)) * this.width;
  }

  get left() {
    return this.scroll.getBoundingClientRect().left + this.gutter;
  }

  inPlot(clientX) {
    return clientX > this.left;
  }

  timeAt(clientX) {
    const { from, until } = this.board.timeline;
    return from + ((clientX - this.left) / this.width) * (until - from);
  }

  /** A plot area right of the gutter that clips what leaves it. */
  plot(parent, height) {
    const area = svg("svg", { x: this.gutter, y: 0, width: this.width, height, class: "plot clip" });
    parent.append(area);
    return area;
  }

  render() {
    if (!this.visit) return;
    this.listed = this.board.view === "connections" ? this.matchingConnections() : this.board.matching(this.visit.objects);
    drawAxis(this.axis, this, AXIS);
    this.rows.render(this.listed.length, ROW);
    drawPlots(this.plots, this);
    this.renderFacts();
    this.renderMultiples();
  }

  matchingConnections() {
    const carried = new Set(this.board.matching(this.visit.objects).map((object) => object.connection));
    const all = [...this.visit.connections.values()];
    return this.board.search.value ? all.filter((c) => carried.has(c.connection)) : all;
  }

  drawRows(root, from, until, height, fresh) {
    const draw = this.board.view === "connections" ? drawConnections : drawRequests;
    draw(root, this, this.listed.slice(from, until), height, fresh);
  }

  renderMultiples() {
    if (this.multiples.open && this.visit) drawMultiples(this.multiples.querySelector(".multiples-grid"), this);
  }

  renderFacts() {
    const c = this.chosen;
    if (!c) return;
    const facts = [
      c.host, c.protocol, c.encrypted ? "TLS" : "plain", c.congestion, `initial window ${c.initial_window ?? "?"}`,
      `${c.objects ?? 0} ${c.objects === 1 ? "object" : "objects"}`, size(c.bytes_received), `smallest RTT ${duration(c.min_rtt)}`,
      `${c.retransmitted_segments ?? 0} segments retransmitted`,
      c.group_hosts && `its group spans ${c.group_hosts} host${c.group_hosts > 1 ? "s" : ""}`,
    ];
    this.facts.textContent = facts.filter(Boolean).join(" · ");
  }

  /** Moves the line of the crosshair, and says the values there. */
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
    const { flight, link } = this.visit;
    const series = this.visit.tcp[this.connection.value];
    const n = series ? lastAtMost(series.time, time) : -1;
    if (n >= 0) {
      parts.push(`window ${series.cwnd[n]}`, `ssthresh ${series.ssthresh[n] ?? "∞"}`, `in flight ${series.in_flight[n] ?? "?"}`);
      const phase = series.phases.find((p) => p.from <= time && time <= p.until);
      if (phase) parts.push(phase.name);
    }
    const k = lastAtMost(flight.time, time);
    if (k >= 0) parts.push(`all connections ${size(flight.bytes[k])} in flight`);
    const q = lastAtMost(link.time, time);
    if (q >= 0 && link.rate[q] !== null) parts.push(`link ${link.rate[q].toFixed(1)} Mbit/s`);
    if (q >= 0) parts.push(`queue ${link.queue[q]} packets`);
    return parts.join(" · ");
  }

  hover(event) {
    const row = this.visit && this.listed[this.rows.at(event.clientY)];
    if (row && "url" in row) showTip(tipOf(row, this.visit), event.clientX, event.clientY);
    else hideTip();
  }

  /** Chooses a row: a request with its connection, or a connection. The other pane chooses the same request. */
  select(row) {
    if (!row) return;
    if (!("url" in row)) return this.choose(row.connection);
    this.show(row);
    for (const other of this.board.shown) if (other !== this) other.show(other.visit.objects.find((o) => o.url === row.url));
    if (this.visit.connections.has(row.connection)) this.choose(row.connection);
    else this.board.render();
  }

  /** Shows the details of a request; of none if it is undefined. */
  show(object) {
    this.selected = object?.number ?? null;
    this.details.hidden = true;
    if (object) fillDetails(this.details, object, this.visit);
  }

  /** Shows the window of a connection, in the other pane that of one to the same host. */
  choose(connection) {
    this.connection.value = connection;
    this.board.follow(this);
  }

  key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") {
      hideTip();
      this.details.hidden = true;
    }
    if (this.board.key(event) || !(event.key in moves) || !this.visit || !this.listed.length) return;
    event.preventDefault();
    const connections = this.board.view === "connections";
    const now = this.listed.findIndex((row) => (connections ? row === this.chosen : row.number === this.selected));
    const next = Math.min(Math.max(now + moves[event.key], 0), this.listed.length - 1);
    this.select(this.listed[next]);
    this.rows.reveal(next);
  }
}
