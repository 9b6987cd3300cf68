"use strict";
// Small helpers shared by the report's scripts: elements, numbers in words, packed data.

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes; children may be elements or text. Text never becomes markup. */
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** An HTML element, as svg(). */
function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const THIN = "\u202f";

/** A number with a thin space between thousands, from five digits on. */
function grouped(value) {
  return Math.abs(value) < 1e4 ? String(value) : value.toLocaleString("en").replaceAll(",", THIN);
}

/** Milliseconds as text: "312 ms", "1.24 s". */
function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms === 0) return "0";
  if (Math.abs(ms) >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return Math.abs(ms) < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

/** Bytes as text: "812 B", "14.2 kB", "1.04 MB" (decimal). */
function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(2)} MB`;
}

/** Round values for an axis, at most `count` of them, from low to high. */
function niceTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const ticks = [];
  for (let n = Math.ceil(low / step); n * step <= high; n += 1) ticks.push(n * step);
  return ticks;
}

/** The number of the last entry of an ascending list that is at most `value`; -1 before the first. */
function lastAtMost(list, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Decodes what report.visits.pack() wrote: base64 of gzip of JSON. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}
