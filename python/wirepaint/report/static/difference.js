"use strict";
// Two visits request by request: what starts and ends earlier or later under the second condition.

const PAIR = 21;
const TELLING = 1; // ms; smaller differences count as none

class Difference {
  constructor(board, element) {
    this.board = board;
    this.element = element;
    const part = (name) => element.querySelector(`[data-part="${name}"]`);
    this.order = part("order");
    this.summary = part("summary");
    this.axis = part("difference-axis");
    this.scroll = part("difference-rows");
    this.details = part("pair");
    this.selected = null;
    const look = () => [...board.panes.map((pane) => pane.entry.id), board.search.value, this.order.value, this.listed.indexOf(this.selected), this.width].join(" ");
    this.rows = new Rows(this.scroll, (...sight) => this.draw(...sight), look);
    this.order.addEventListener("change", () => board.render());
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    listen(this.axis, this);
    listen(this.scroll, this, { click: (event) => this.select(this.rows.at(event.clientY)) });
  }

  get marks() {
    return [];
  }

  measure() {
    this.roomy = this.element.clientWidth >= 620;
    this.gutter = this.roomy ? 236 : 104;
    this.width = Math.max(this.scroll.clientWidth - this.gutter - 84, 60);
    this.rows.measure();
  }

  get names() {
    return this.board.panes.map((pane) => pane.entry.name);
  }

  render() {
    const [a, b] = this.board.panes;
    this.element.classList.toggle("missing", !(a.visit && b.visit));
    if (!(a.visit && b.visit)) return;
    const pairs = this.pairsOf(a.visit, b.visit);
    this.summary.textContent = this.describe(pairs);
    const wanted = new Set(this.board.matching(pairs.map((pair) => pair.a ?? pair.b)));
    this.listed = pairs.filter((pair) => wanted.has(pair.a ?? pair.b));
    const change = (pair) => Math.abs(later(pair, "last_byte") ?? -1);
    if (this.order.value === "change") this.listed.sort((m, n) => change(n) - change(m));
    drawAxis(this.axis, this, 22);
    this.rows.render(this.listed.length, PAIR);
  }

  /** The pairs of two visits; the same objects each time, so that a chosen one stays chosen. */
  pairsOf(a, b) {
    if (this.of?.[0] !== a || this.of?.[1] !== b) {
      this.of = [a, b];
      this.pairs = matched(a, b);
    }
    return this.pairs;
  }

  describe(pairs) {
    const [a, b] = this.names;
    const both = pairs.filter((pair) => pair.a && pair.b);
    const count = (moment, sign) => both.filter((pair) => sign * (later(pair, moment) ?? 0) > TELLING).length;
    const ends = both.map((pair) => later(pair, "last_byte")).filter((ms) => ms !== null).sort((m, n) => m - n);
    const only = (side) => pairs.length - pairs.filter((pair) => pair[side]).length;
    const parts = [
      `${both.length} requests in both visits`,
      `with ${b}, ${count("sent", -1)} start earlier and ${count("sent", 1)} later than with ${a}`,
      `${count("last_byte", -1)} end earlier and ${count("last_byte", 1)} later, ${signed(ends[ends.length >> 1] ?? null)} in the median`,
    ];
    if (only("b")) parts.push(`${only("b")} only with ${a}`);
    if (only("a")) parts.push(`${only("a")} only with ${b}`);
    return `${parts.join("; ")}.`;
  }

  draw(root, from, until, height, fresh) {
    const pairs = this.listed.slice(from, until);
    if (fresh) this.name(root, pairs, from, height);
    const area = rowPlot(root, this, height);
    this.drawSide(area, pairs.map((pair) => pair.a), 2, 0);
    this.drawSide(area, pairs.map((pair) => pair.b), 11, 1);
    drawCross(area, height);
  }

  name(root, pairs, from, height) {
    const { backs, names } = rowParts(root, this, height);
    pairs.forEach((pair, n) => {
      const y = n * PAIR;
      backs.append(rowBack(from + n, y, PAIR, pair === this.selected));
      drawName(names, pair.a ?? pair.b, y + 3, this.roomy);
      root.append(this.change(pair, y));
    });
  }

  /** The bars of one visit: one path for each kind. */
  drawSide(area, objects, top, side) {
    const group = svg("g", { class: "bar pair" });
    group.style.setProperty("--c", `var(--series-${this.board.panes[side].entry.series})`);
    const path = (kind, from, until, inset, height) => {
      const parts = objects.map((object, n) => (object ? stretch(this, object[from], object[until], n * PAIR + top + inset, height) : ""));
      group.append(svg("path", { d: parts.join(""), class: kind }));
    };
    path("queued", "queued", "sent", 3, 2);
    path("wait", "sent", "first_byte", 1, 6);
    path("whole", "first_byte", "last_byte", 0, 8);
    area.append(group);
  }

  change(pair, y) {
    const ms = later(pair, "last_byte");
    const only = pair.a ? "only above" : "only below";
    const kind = ms === null || Math.abs(ms) <= TELLING ? "even" : ms < 0 ? "earlier" : "later";
    return svg("text", { x: this.gutter + this.width + 78, y: y + 14, class: `change end ${kind}` }, pair.a && pair.b ? signed(ms) : only);
  }

  select(n) {
    const pair = this.listed?.[n];
    if (!pair) return;
    this.selected = pair;
    fillPair(this.details, pair, this.names);
    this.rows.reveal(n);
  }

  crosshair(time) {
    for (const line of this.element.querySelectorAll(".cross")) {
      line.setAttribute("visibility", time === null ? "hidden" : "visible");
      line.setAttribute("x1", this.x(time ?? 0));
      line.setAttribute("x2", this.x(time ?? 0));
    }
  }

  key(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") this.details.hidden = true;
    if (this.board.key(event) || !(event.key in moves) || !this.listed?.length) return;
    event.preventDefault();
    const now = this.listed.indexOf(this.selected);
    this.select(Math.min(Math.max(now + moves[event.key], 0), this.listed.length - 1));
  }
}

for (const shared of ["x", "inPlot", "timeAt", "plot"]) Difference.prototype[shared] = Pane.prototype[shared];
Object.defineProperty(Difference.prototype, "left", Object.getOwnPropertyDescriptor(Pane.prototype, "left"));
