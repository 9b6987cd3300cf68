"use strict";
// Draws distributions from values: of the counted visits (report/values.py), and curves inside the loads.

const PLOT = { width: 300, left: 8, right: 12, row: 24, curve: 110, axis: 22, share: 40 };
const PANELS = { most: 60, columns: 4, least: 250, gap: 26 };
const BACKENDS = ["testbed", "simulator"];
const EACH = "each";
const DASHES = ["none", "6 3", "2 2", "8 3 2 3", "4 4", "1 3"];

/** The outline of a series' mark around a point: as in the legend, so that colour is never alone. */
function mark(number, x, y, r = 3.2) {
  const [a, b] = [x.toFixed(1), y.toFixed(1)];
  const outline = [
    `M${(x - r).toFixed(1)},${b}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0z`,
    `M${a},${(y - r).toFixed(1)}l${r},${2 * r}h${-2 * r}z`,
    `M${(x - r).toFixed(1)},${(y - r).toFixed(1)}h${2 * r}v${2 * r}h${-2 * r}z`,
    `M${a},${(y - r * 1.3).toFixed(1)}l${r * 1.3},${r * 1.3}l${-r * 1.3},${r * 1.3}l${-r * 1.3},${-r * 1.3}z`,
    `M${(x - r).toFixed(1)},${(y - 1).toFixed(1)}h${r - 1}v${1 - r}h2v${r - 1}h${r - 1}v2h${1 - r}v${r - 1}h-2v${1 - r}h${1 - r}z`,
    `M${a},${(y + r).toFixed(1)}l${r},${-2 * r}h${-2 * r}z`,
  ];
  return outline[number % outline.length];
}

/** A value with its unit, as the tables write it. */
function amount(value, unit) {
  if (unit === "ms") return duration(value);
  if (unit === "bytes") return size(Math.round(value));
  return `${grouped(Number(value.toPrecision(3)))}${unit ? ` ${unit}` : ""}`;
}

/** The value below which a share of the ascending values lies, between two of them linearly. */
function quantile(values, share) {
  const at = share * (values.length - 1);
  const low = Math.floor(at);
  return values[low] + (at - low) * ((values[low + 1] ?? values[low]) - values[low]);
}

/** The smallest and the largest value. */
function extent(values) {
  return [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
}

/** Extents of the values of panels, the same for those that differ in the back end only. */
function shared(panels) {
  const of = (parts) => parts.filter((part) => !BACKENDS.includes(part)).join(" ");
  const found = new Map();
  for (const { parts, values } of panels) found.set(of(parts), extent([...values, ...(found.get(of(parts)) ?? [])]));
  return panels.map(({ parts }) => found.get(of(parts)));
}

/** A grid of `count` panels that fills `root`: `draw` gives them for its width, now and when that changes. */
function gridOfPanels(root, count, draw) {
  const box = html("div", { class: "grid-of-panels" });
  const fill = () => {
    const whole = Math.max(root.clientWidth, PANELS.least);
    const most = Math.min(PANELS.columns, Math.floor((whole + PANELS.gap) / (PANELS.least + PANELS.gap)));
    const columns = Math.ceil(count / Math.ceil(count / most)) || 1;
    PLOT.width = Math.floor((whole - (columns - 1) * PANELS.gap) / columns);
    PLOT.curve = Math.round(Math.min(220, Math.max(110, PLOT.width * 0.3)));
    PLOT.row = PLOT.width > 500 ? 30 : 24;
    box.style.setProperty("--columns", columns);
    box.replaceChildren(...draw());
  };
  fill();
  let width = root.clientWidth;
  const observer = new ResizeObserver(() => {
    if (!box.isConnected) observer.disconnect();
    else if (root.clientWidth !== width) {
      width = root.clientWidth;
      fill();
    }
  });
  // Once the caller has put the box into the page.
  requestAnimationFrame(() => observer.observe(root));
  return box;
}

/** A scale from the extent of values to pixels with its ticks; a little room at both ends. */
function scaled([low, high], from, to, count) {
  const room = (high - low) * 0.04 || Math.abs(high) * 0.02 || 1;
  [low, high] = [low - room, high + room];
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  return { at, ticks: niceTicks(low, high, count) };
}

/** Vertical grid lines with their values under the plot. */
function grid(scale, height, shown) {
  return scale.ticks.map((tick) => {
    const x = scale.at(tick).toFixed(1);
    const anchor = x < 24 ? "start" : x > PLOT.width - 24 ? "end" : "middle";
    const text = svg("text", { x, y: height + 15, "text-anchor": anchor }, shown(tick));
    return svg("g", {}, svg("line", { class: "grid", x1: x, x2: x, y1: 0, y2: height }), text);
  });
}

/** A plot with its title; `spots` are [x, y, text] of what the pointer may ask for. */
function panel(title, told, height, marks, spots) {
  const { width } = PLOT;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${told}` }, ...marks);
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const zoom = width / box.width;
    const [x, y] = [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
    let nearest = null;
    let least = 14;
    for (const spot of spots) {
      const distance = Math.hypot(spot[0] - x, spot[1] - y);
      if (distance < least) [nearest, least] = [spot, distance];
    }
    if (nearest) showTip(nearest[2], event.clientX, event.clientY);
    else hideTip();
  });
  drawing.addEventListener("pointerleave", hideTip);
  return html("div", { class: "panel" }, html("p", { class: "panel-title" }, title), drawing);
}

/** A box for each series: every value as a point, quartiles, median, smallest and largest. */
function boxes(title, series, unit, reach) {
  const height = series.length * PLOT.row + 4;
  const scale = scaled(reach, PLOT.left, PLOT.width - PLOT.right, Math.max(4, PLOT.width / 75));
  const marks = grid(scale, height, (tick) => amount(tick, unit));
  const spots = [];
  const told = [];
  series.forEach((one, row) => {
    const middle = row * PLOT.row + PLOT.row / 2 + 2;
    const sorted = [...one.values].sort((a, b) => a - b);
    const [low, q1, median, q3, high] = [0, 0.25, 0.5, 0.75, 1].map((share) => scale.at(quantile(sorted, share)).toFixed(1));
    const points = one.values.map((value) => mark(one.number, scale.at(value), middle)).join("");
    marks.push(
      svg("g", { class: `series-${(one.number % 6) + 1}` },
        svg("path", { class: "whisker", d: `M${low},${middle}H${high}` }),
        svg("rect", { class: "box", x: q1, y: middle - 8, width: Math.max(q3 - q1, 0.5).toFixed(1), height: 16 }),
        svg("path", { class: "middle", d: `M${median},${middle - 8}v16` }),
        svg("path", { class: "points", d: points })),
    );
    one.values.forEach((value, n) => spots.push([scale.at(value), middle, `${one.name}${one.visits[n] === undefined ? "" : `, visit ${one.visits[n]}`}: ${amount(value, unit)}`]));
    told.push(`${one.name} median ${amount(quantile(sorted, 0.5), unit)} of ${sorted.length}`);
  });
  return panel(title, told.join("; "), height + PLOT.axis, marks, spots);
}

/** Lines at shares of a half and all, with their names. */
function shares(height) {
  return [0, 0.5, 1].map((share) => {
    const y = (height * (1 - share) + 6).toFixed(1);
    const text = svg("text", { x: PLOT.share - 5, y: Number(y) + 4, "text-anchor": "end" }, `${100 * share} %`);
    return svg("g", {}, svg("line", { class: "grid", x1: PLOT.share, x2: PLOT.width, y1: y, y2: y }), text);
  });
}

/** A line through points in pixels, with the look of its series. */
function line(number, d) {
  return svg("path", { class: `curve series-${(number % 6) + 1}`, d, "stroke-dasharray": DASHES[number % 6] });
}

/** The share of the values up to each value, for each series: `curves` of [value, share]. */
function curves(title, series, shown, reach) {
  const height = PLOT.curve;
  const scale = scaled(reach, PLOT.share, PLOT.width - PLOT.right, Math.max(4, PLOT.width / 75));
  const marks = [...shares(height), ...grid(scale, height + 6, shown)];
  const spots = [];
  const told = [];
  for (const one of series) {
    let d = `M${scale.at(one.points[0][0]).toFixed(1)},${height + 6}`;
    for (const [value, share] of one.points) {
      const [x, y] = [scale.at(value), height * (1 - share) + 6];
      d += `H${x.toFixed(1)}V${y.toFixed(1)}`;
      spots.push([x, y, `${one.name}: ${Math.round(100 * share)} % up to ${shown(value)}`]);
    }
    marks.push(line(one.number, d));
    const half = one.points.find(([, share]) => share >= 0.5) ?? one.points[0];
    told.push(`${one.name} half up to ${shown(half[0])}`);
  }
  return panel(title, told.join("; "), height + 6 + PLOT.axis, marks, spots);
}

/** Round values between two powers of ten: tenfold steps, or also twos and fives if there are few. */
function logTicks(low, high) {
  const steps = high - low < 2 ? [1, 2, 5] : [1];
  const powers = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, n) => Math.floor(low) + n);
  const all = powers.flatMap((power) => steps.map((step) => Number((step * 10 ** power).toPrecision(1))));
  const inside = all.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
  return inside.length > 1 || low === high ? inside : niceTicks(10 ** low, 10 ** high, 3);
}

/** Points over whole numbers with a logarithmic height, joined. */
function bins(title, series, reach, heights) {
  const height = PLOT.curve;
  const across = scaled(reach, PLOT.share, PLOT.width - PLOT.right, 6);
  across.ticks = across.ticks.filter(Number.isInteger);
  const [low, high] = heights.map(Math.log10);
  const up = (value) => 6 + height * (1 - (Math.log10(value) - low) / (high - low || 1));
  const marks = grid(across, height + 6, String);
  for (const value of logTicks(low, high)) {
    const y = up(value).toFixed(1);
    marks.push(svg("line", { class: "grid", x1: PLOT.share, x2: PLOT.width, y1: y, y2: y }));
    marks.push(svg("text", { x: PLOT.share - 5, y: Number(y) + 4, "text-anchor": "end" }, String(value)));
  }
  const spots = [];
  for (const one of series) {
    const places = one.points.map(([x, y]) => [across.at(x), up(y)]);
    marks.push(line(one.number, `M${places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}`));
    const points = places.map(([x, y]) => mark(one.number, x, y)).join("");
    marks.push(svg("path", { class: `points series-${(one.number % 6) + 1}`, d: points }));
    one.points.forEach(([x, y], n) => spots.push([...places[n], `${one.name}, ${x} round trips: ${y} kB`]));
  }
  const told = series.map((one) => `${one.name} up to ${one.points[one.points.length - 1][0]} round trips`).join("; ");
  return panel(title, told, height + 6 + PLOT.axis, marks, spots);
}

/** Names of the series with their marks. */
function legend(names) {
  const items = names.map(([name, number]) => {
    const sign = svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("path", { d: mark(number, 5, 5, 4.2) }));
    return html("li", { class: `series series-${(number % 6) + 1}` }, sign, name);
  });
  return html("ul", { class: "legend" }, ...items);
}

/** The reader chooses a metric, the factor to compare, and what else to hold equal. */
class Explorer {
  constructor(root, data) {
    this.root = root;
    this.axes = data.axes.map(([name, title, levels]) => ({ name, title, levels, rows: data.rows[name] }));
    this.visits = data.visit;
    this.each = data.each;
    this.metrics = data.metrics;
    const varying = this.axes.filter((axis) => axis.levels.length > 1);
    const factor = varying.find((axis) => axis.name !== "page") ?? varying[0] ?? this.axes[0];
    this.chosen = { metric: 0, by: factor.name, shape: "boxes", at: {} };
    this.panels = html("div", { class: "panels" });
    this.bar = html("div", { class: "controls" });
    root.append(this.bar, this.panels);
    root.hidden = false;
    this.controls();
    this.draw();
  }

  /** A labelled choice. Options are [value, text]. */
  select(label, options, value, change) {
    const select = html("select", {}, ...options.map(([key, text]) => html("option", { value: key }, text)));
    select.value = String(value);
    select.addEventListener("change", () => {
      change(select.value);
      this.draw();
    });
    return html("label", {}, `${label} `, select);
  }

  controls() {
    const { chosen } = this;
    const varying = this.axes.filter((axis) => axis.levels.length > 1);
    const metrics = this.metrics.map((metric, n) => [n, metric.title]);
    const shapes = [["boxes", "boxes"], ["curves", "cumulative curves"]];
    this.bar.replaceChildren(
      this.select("Metric", metrics, chosen.metric, (value) => (chosen.metric = Number(value))),
      this.select("Drawn as", shapes, chosen.shape, (value) => (chosen.shape = value)),
    );
    if (varying.length < 2) return;
    const factors = varying.map((axis) => [axis.name, axis.title]);
    this.bar.append(
      this.select("Compare", factors, chosen.by, (value) => {
        chosen.by = value;
        this.controls();
      }),
    );
    for (const axis of varying) {
      if (axis.name === chosen.by) continue;
      chosen.at[axis.name] ??= axis.name === "page" || axis.name === "network" ? EACH : String(axis.rows[0]);
      const options = [[EACH, "each"], ...axis.levels.map((level, n) => [n, level])];
      this.bar.append(this.select(axis.title, options, chosen.at[axis.name], (value) => (chosen.at[axis.name] = value)));
    }
  }

  draw() {
    const { chosen } = this;
    const metric = this.metrics[chosen.metric];
    const by = this.axes.find((axis) => axis.name === chosen.by);
    const held = this.axes.filter((axis) => axis !== by && axis.levels.length > 1);
    const each = held.filter((axis) => chosen.at[axis.name] === EACH);
    const groups = new Map();
    metric.values.forEach((value, n) => {
      if (value === null) return;
      if (held.some((axis) => chosen.at[axis.name] !== EACH && axis.rows[n] !== Number(chosen.at[axis.name]))) return;
      const parts = each.map((axis) => axis.levels[axis.rows[n]]);
      const title = parts.join(" · ") || (by.name === "page" ? "all visits" : "all pages");
      const { group } = groups.get(title) ?? groups.set(title, { parts, group: new Map() }).get(title);
      const number = by.rows[n];
      const one = group.get(number) ?? group.set(number, { number, name: by.levels[number], values: [], visits: [] }).get(number);
      one.values.push(value);
      one.visits.push(this.visits[n]);
    });
    const panels = [...groups].slice(0, PANELS.most).map(([title, { parts, group }]) => {
      const series = [...group.values()].sort((a, b) => a.number - b.number);
      return { title, parts, series, values: series.flatMap((one) => one.values) };
    });
    const reaches = shared(panels);
    const drawn = () => panels.map(({ title, series }, at) => {
      if (chosen.shape === "boxes") return boxes(title, series, metric.unit, reaches[at]);
      for (const one of series) {
        const sorted = [...one.values].sort((a, b) => a - b);
        one.points = sorted.map((value, n) => [value, (n + 1) / sorted.length]);
      }
      return curves(title, series, (value) => amount(value, metric.unit), reaches[at]);
    });
    const better = metric.better ? `; ${metric.better} is better` : "";
    const count = [...groups.values()].reduce((sum, { group }) => sum + [...group.values()].reduce((n, one) => n + one.values.length, 0), 0);
    const left = groups.size > PANELS.most ? ` The first ${PANELS.most} of ${groups.size} plots are shown: choose a page or a network.` : "";
    const counted = `${grouped(count)} ${this.each > 1 ? `values, each for ${this.each} visits.` : "visits."}`;
    this.panels.replaceChildren(
      legend(by.levels.map((level, n) => [level, n])),
      html("p", { class: "note", role: "status" }, `${metric.title}${better}. ${counted}${left}`),
      gridOfPanels(this.panels, panels.length, drawn),
    );
  }
}

/** Draws a figure from the values in its script element. */
function startChart(figure) {
  const data = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  const named = (curve) => ({ number: curve[0], name: data.series[curve[0]], points: curve[1] });
  const present = new Set(data.panels.flatMap((one) => one.curves.map(([number]) => number)));
  const panels = data.panels.map((one) => {
    return { ...one, parts: one.title.split(/ \/ |, /), series: one.curves.map(named) };
  });
  const [reaches, heights] = [0, 1].map((axis) =>
    shared(panels.map(({ parts, series }) => ({ parts, values: series.flatMap(({ points }) => points.map((point) => point[axis])) }))),
  );
  const shown = (value) => grouped(Number(value.toPrecision(3)));
  const drawn = () =>
    panels.map((one, at) => (one.points ? bins(one.title, one.series, reaches[at], heights[at]) : curves(one.title, one.series, shown, reaches[at])));
  const root = figure.querySelector(".panels");
  root.append(
    html("p", { class: "note" }, data.axis),
    legend([...present].sort((a, b) => a - b).map((number) => [data.series[number], number])),
    gridOfPanels(root, panels.length, drawn),
  );
}
