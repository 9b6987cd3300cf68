"use strict";
// The waterfall: a board that holds what its parts share (page, view, colours, search, stretch of time).
//
// A Pane shows one visit, a Difference compares the two, a Timeline is the stretch of time.

class Board {
  constructor(root) {
    this.root = root;
    this.index = JSON.parse(document.getElementById("visit-index").textContent);
    this.scenarios = new Map(this.index.map((entry) => [entry.scenario, entry.name]));
    this.cache = new Map();
    this.host = null;
    this.timeline = new Timeline();
    const part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.page = part("page");
    this.views = part("view");
    this.colours = part("colours");
    this.layout = part("layout");
    this.search = part("search");
    this.found = part("found");
    for (const page of new Set(this.index.map((entry) => entry.page))) this.page.append(html("option", { value: page }, page));
    this.panes = [...root.querySelectorAll(".pane")].map((element) => new Pane(this, element));
    this.difference = new Difference(this, root.querySelector(".difference"));
    this.page.addEventListener("change", () => this.load());
    this.colours.addEventListener("change", () => this.render());
    this.layout.addEventListener("change", () => this.arrange());
    this.views.addEventListener("change", () => this.arrange());
    this.search.addEventListener("input", () => this.render());
    this.search.addEventListener("keydown", (event) => event.key === "Enter" && this.toFirst());
    part("zoom-in").addEventListener("click", () => this.scale(0.5));
    part("zoom-out").addEventListener("click", () => this.scale(2));
    part("zoom-lcp").addEventListener("click", () => this.toMark());
    part("zoom-all").addEventListener("click", () => this.show());
    new ResizeObserver(() => this.soon()).observe(root);
  }

  async start() {
    const first = this.index.find((entry) => entry.network === this.index[0].network && entry.series !== this.index[0].series);
    this.panes[0].scenario.value = this.index[0].scenario;
    this.panes[1].scenario.value = first?.scenario ?? [...this.scenarios.keys()].pop();
    if (this.scenarios.size === 1) this.layout.value = "one";
    this.arrange();
    await this.load();
  }

  async load() {
    this.timeline.zoomed = false;
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

  get view() {
    return this.views.value;
  }

  get shown() {
    return this.panes.filter((pane) => pane.visit && !pane.element.hidden);
  }

  render() {
    this.timeline.fit(Math.max(1, ...this.shown.map((pane) => pane.visit.end)));
    const all = this.shown.map((pane) => pane.visit.objects);
    this.found.textContent = this.search.value && all.map((objects) => `${this.matching(objects).length} of ${objects.length}`).join(", ");
    const parts = this.view === "difference" ? [this.difference] : this.shown;
    for (const part of parts) part.measure();
    for (const part of parts) part.render();
  }

  /** Renders before the next frame, however often it is asked to. */
  soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.render();
    });
  }

  arrange() {
    this.root.dataset.view = this.view;
    this.root.dataset.layout = this.view === "difference" ? "beside" : this.layout.value;
    this.panes[1].element.hidden = this.layout.value === "one" && this.view !== "difference";
    this.render();
  }

  /** Shows a stretch of time, or everything. */
  show(from, until) {
    if (from === undefined) this.timeline.whole();
    else this.timeline.show(from, until);
    this.render();
  }

  scale(factor) {
    this.timeline.scale(factor);
    this.render();
  }

  /** Shows the time until the latest largest paint of the visits, or first paint where none is known. */
  toMark() {
    const times = this.shown.map((pane) => pane.visit.time("LCP") ?? pane.visit.time("FCP")).filter((time) => time !== null);
    if (times.length) this.show(0, Math.max(...times) * 1.04);
  }

  /** The keys that work in every list of rows; true if `event` was one. */
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return false;
    const acts = {
      "+": () => this.scale(0.5),
      "-": () => this.scale(2),
      0: () => this.show(),
      l: () => this.toMark(),
      "/": () => this.search.focus(),
      ArrowLeft: () => this.timeline.pan(-0.2),
      ArrowRight: () => this.timeline.pan(0.2),
    };
    const act = acts[event.key];
    if (!act) return false;
    event.preventDefault();
    act();
    this.soon();
    return true;
  }

  /** The requests whose address holds the words that are searched for. */
  matching(objects) {
    const wanted = this.search.value.trim().toLowerCase();
    return wanted ? objects.filter((object) => object.url.toLowerCase().includes(wanted)) : objects;
  }

  /** Chooses the first request that was found. */
  toFirst() {
    if (this.view === "difference") return this.difference.select(0);
    const pane = this.shown[0];
    if (!pane) return;
    pane.select(pane.listed[0]);
    pane.rows.reveal(0);
  }

  crosshair(time) {
    for (const part of [...this.shown, this.difference]) part.crosshair(time);
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
    return Math.max(4, ...this.shown.map((pane) => pane.visit.highest.queue));
  }

  flightTop() {
    return Math.max(14_480, ...this.shown.map((pane) => pane.visit.highest.flight));
  }

  rateTop() {
    return Math.max(0.1, ...this.shown.map((pane) => pane.visit.highest.rate));
  }

  barClass(object, visit) {
    if (this.colours.value === "type") return `type-${object.type ?? "other"}`;
    if (this.colours.value === "connection") return `lane-${(visit.connections.get(object.connection)?.order ?? 9) % 10}`;
    return "by-phase";
  }
}
