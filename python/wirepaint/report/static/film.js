"use strict";
// The film: the frames of two visits at one time since their navigations, with the curves of visual progress.

const CURVE = 130;
const STRIP_FRAMES = 10;
const SPEED = 1; // seconds of the visit in a second of the reader
const BLANK = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="; // one white pixel
const NAME = { width: 26, height: 13 }; // pixels of a mark's name

/** The frames of one visit. */
class Reel {
  constructor(entry, raw) {
    this.entry = entry;
    this.time = raw.time.map(ms);
    this.progress = raw.progress;
    this.pictures = raw.picture;
  }

  get end() {
    return this.time[this.time.length - 1];
  }

  /** The address of the picture that the screen shows at a time; null before the first frame. */
  at(time) {
    let n = lastAtMost(this.time, time);
    while (n >= 0 && this.pictures[n] === null) n -= 1;
    return n < 0 ? null : `data:image/webp;base64,${this.pictures[n]}`;
  }

  /** Share of the final picture at a time. */
  share(time) {
    const n = lastAtMost(this.time, time);
    return n < 0 ? 0 : this.progress[n];
  }

  /** When the picture was complete for good. */
  get complete() {
    let n = this.progress.length - 1;
    while (n > 0 && this.progress[n - 1] >= 0.99) n -= 1;
    return this.time[n];
  }
}

class Film {
  constructor(root) {
    this.root = root;
    const part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.index = JSON.parse(document.getElementById("visit-index").textContent).filter((entry) => entry.film);
    this.page = part("page");
    this.conditions = [part("condition-1"), part("condition-2")];
    this.screens = [part("screen-1"), part("screen-2")];
    for (const screen of this.screens) screen.append(html("img", { alt: "", src: BLANK }), html("figcaption"));
    this.slider = part("time");
    this.now = part("now");
    this.button = part("play");
    this.curve = part("curve");
    this.strip = part("strip");
    for (const page of new Set(this.index.map((entry) => entry.page))) this.page.append(html("option", { value: page }, page));
    this.page.addEventListener("change", () => this.offer());
    for (const select of this.conditions) select.addEventListener("change", () => this.load());
    this.slider.addEventListener("input", () => this.to(this.time));
    this.slider.addEventListener("keydown", (event) => this.key(event));
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    this.curve.addEventListener("pointermove", (event) => event.buttons && this.scrub(event));
    this.curve.addEventListener("pointerdown", (event) => this.scrub(event));
    new ResizeObserver(() => this.reels && this.draw()).observe(root);
  }

  start() {
    return this.offer();
  }

  /** Fills the choices of conditions of a page: at first the first two levels in one network. */
  offer() {
    const entries = this.index.filter((entry) => entry.page === this.page.value);
    const other = entries.find((e) => e.network === entries[0].network && e.series !== entries[0].series) ?? entries[1] ?? entries[0];
    this.conditions.forEach((select, n) => {
      const kept = entries.find((entry) => entry.scenario === select.dataset.chosen);
      select.replaceChildren(...entries.map((entry) => html("option", { value: entry.film }, this.label(entry))));
      select.value = (kept ?? [entries[0], other][n]).film;
    });
    return this.load();
  }

  /** A condition in words, with the user where there are several. */
  label(entry) {
    const several = new Set(this.index.map((e) => e.user_agent)).size > 1;
    return several ? `${entry.name}, ${entry.user_agent}` : entry.name;
  }

  async load() {
    const wanted = this.conditions.map((select) => this.index.find((entry) => entry.film === select.value));
    this.conditions.forEach((select, n) => (select.dataset.chosen = wanted[n].scenario));
    const raw = await Promise.all(wanted.map((entry) => unpack(document.getElementById(entry.film).textContent)));
    this.reels = wanted.map((entry, n) => new Reel(entry, raw[n]));
    this.end = Math.max(...this.reels.map((reel) => reel.end)) * 1.05;
    this.slider.max = Math.ceil(this.end / 10) * 10;
    this.slider.value = this.apart();
    this.reels.forEach((reel, n) => {
      this.screens[n].style.setProperty("--series", `var(--series-${reel.entry.series})`);
      this.screens[n].classList.toggle("second", n === 1);
    });
    this.draw();
    this.root.dataset.ready = wanted.map((entry) => entry.key).join(" ");
  }

  /** The time at which the visual progress of the two differs most. */
  apart() {
    const [a, b] = this.reels;
    const gap = (time) => Math.abs(a.share(time) - b.share(time));
    const widest = [...a.time, ...b.time].reduce((best, time) => (gap(time) > gap(best) ? time : best));
    return Math.ceil(widest / 10) * 10;
  }

  get time() {
    return Number(this.slider.value);
  }

  draw() {
    this.width = Math.max(this.curve.clientWidth, 200);
    this.drawCurve();
    this.drawStrip();
    this.show();
  }

  /** Shows the frames of the slider's time. */
  show() {
    const { time } = this;
    this.now.textContent = duration(time);
    this.slider.setAttribute("aria-valuetext", `${duration(time)}; ${this.reels.map((reel) => `${reel.entry.name} ${percent(reel.share(time))}`).join(", ")}`);
    this.reels.forEach((reel, n) => {
      const [image, caption] = this.screens[n].children;
      const picture = reel.at(time);
      image.setAttribute("src", picture ?? BLANK);
      image.alt = `${reel.entry.name} after ${duration(time)}: ${picture === null ? "nothing yet" : `${percent(reel.share(time))} of the final picture`}`;
      caption.replaceChildren(html("b", {}, reel.entry.name), ` ${percent(reel.share(time))} at ${duration(time)}, complete at ${duration(reel.complete)}`);
    });
    const x = this.x(time);
    for (const name of ["x1", "x2"]) this.line.setAttribute(name, x);
    for (const cell of this.strip.children) cell.classList.toggle("now", Math.abs(Number(cell.dataset.time) - time) <= this.end / STRIP_FRAMES / 2);
  }

  x(time) {
    return 40 + (time / this.end) * (this.width - 50);
  }

  drawCurve() {
    const y = (share) => CURVE - 22 - share * (CURVE - 34);
    this.curve.replaceChildren();
    this.curve.setAttribute("height", CURVE);
    for (const share of [0, 0.5, 1]) {
      this.curve.append(svg("line", { x1: 40, x2: this.width - 10, y1: y(share), y2: y(share), class: "grid" }));
      this.curve.append(svg("text", { x: 34, y: y(share) + 4, class: "tick end" }, percent(share)));
    }
    for (const tick of niceTicks(0, this.end, this.width / 90)) {
      const x = this.x(tick);
      const last = x > this.width - 40;
      this.curve.append(svg("text", { x: last ? this.width : x, y: CURVE - 5, class: last ? "tick end" : "tick" }, duration(tick)));
    }
    this.reels.forEach((reel, n) => {
      const path = `M${this.x(0)},${y(0)}${steps(reel.time, reel.progress, (t) => this.x(t), y, this.end).replace(/^M([\d.]+),([\d.]+)/, "H$1V$2")}`;
      const line = svg("path", { d: path, class: n ? "film-line second" : "film-line" });
      line.style.setProperty("--series", `var(--series-${reel.entry.series})`);
      this.curve.append(line);
    });
    const points = this.reels.flatMap((reel) =>
      ["FCP", "LCP"]
        .filter((one) => one in reel.entry.marks)
        .map((label) => ({ label, x: this.x(reel.entry.marks[label]), y: y(reel.share(reel.entry.marks[label])) })),
    );
    for (const { label, x, y: level } of points) this.curve.append(svg("circle", { cx: x, cy: level, r: 4, class: `film-point mark-${label.toLowerCase()}` }));
    beside(points, this.width, CURVE - 22).forEach((spot, n) => {
      const { label, x, y: level } = points[n];
      const near = Math.max(spot.left, Math.min(x, spot.right));
      const middle = (spot.top + spot.bottom) / 2;
      if (Math.abs(middle - level) > NAME.height) this.curve.append(svg("line", { x1: x, y1: level, x2: near, y2: middle, class: "film-lead" }));
      this.curve.append(svg("text", { x: spot.left, y: spot.bottom - 3, class: "tick film-name" }, label));
    });
    this.line = svg("line", { y1: 2, y2: CURVE - 20, class: "cross" });
    this.curve.append(this.line);
  }

  /** Frames at equal times, the first condition over the second. */
  drawStrip() {
    const times = Array.from({ length: STRIP_FRAMES }, (_, n) => Math.round((this.end * (n + 1)) / STRIP_FRAMES / 10) * 10);
    this.strip.replaceChildren(
      ...times.map((time) => {
        const frames = this.reels.map((reel) => {
          const picture = reel.at(time);
          return html("img", { src: picture ?? BLANK, alt: "" });
        });
        const cell = html("button", { type: "button", "aria-label": `Show ${duration(time)}`, tabindex: "-1" }, ...frames, html("span", {}, duration(time)));
        cell.dataset.time = time;
        cell.addEventListener("click", () => this.to(time));
        return cell;
      }),
    );
  }

  to(time) {
    this.slider.value = time;
    this.pause();
    this.show();
  }

  scrub(event) {
    const left = this.curve.getBoundingClientRect().left;
    this.to(((event.clientX - left - 40) / (this.width - 50)) * this.end);
  }

  /** Space plays; arrows move by a tenth of a second. */
  key(event) {
    const moves = { ArrowRight: 100, ArrowUp: 100, ArrowLeft: -100, ArrowDown: -100 };
    if (event.key === " ") this.button.click();
    else if (event.key in moves) this.to(this.time + moves[event.key]);
    else return;
    event.preventDefault();
  }

  play() {
    if (this.time >= this.end - 20) this.slider.value = 0;
    this.playing = true;
    this.button.textContent = "Pause";
    let before = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      const time = this.time + (now - before) * SPEED;
      if (Math.floor(time / 10) !== this.time / 10) {
        this.slider.value = Math.floor(time / 10) * 10;
        before = now - (time % 10);
        this.show();
      }
      if (this.time >= Number(this.slider.max)) this.pause();
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  pause() {
    this.playing = false;
    this.button.textContent = "Play";
  }
}

/**
 * Where the names of points stand: each as near its point as no other name does, nor another point if there is room.
 *
 * There is always a place: one side has at least seven rows, and each of the three other names takes two of them.
 */
function beside(points, width, height) {
  const box = (left, top, right, bottom) => ({ left, top, right, bottom });
  const clear = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  const dots = points.map(({ x, y }) => box(x - 4, y - 4, x + 4, y + 4));
  const names = [];
  for (const { x, y } of points) {
    const rows = [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7].map((n) => y - 4 - NAME.height + n * NAME.height);
    const spots = rows
      .flatMap((top) => [x + 6, x - 6 - NAME.width].map((left) => box(left, top, left + NAME.width, top + NAME.height)))
      .filter((spot) => spot.left >= 0 && spot.right <= width && spot.top >= 0 && spot.bottom <= height)
      .filter((spot) => names.every((name) => clear(name, spot)));
    names.push(spots.find((spot) => dots.every((dot) => clear(dot, spot))) ?? spots[0]);
  }
  return names;
}

function percent(share) {
  return `${Math.round(share * 100)} %`;
}
