"use strict";
// One visit as report/visits.py packed it, and what is derived from it. Nothing here draws.

const TICKS_PER_MS = 100; // packed times are units of 10 µs from navigation start
const AVOIDANCE = "congestion avoidance";

/** One visit, unpacked, with objects as records and times in ms. */
class Visit {
  constructor(raw) {
    const ms = (ticks) => (ticks === null ? null : ticks / TICKS_PER_MS);
    this.end = ms(raw.end);
    this.url = raw.url;
    this.marks = raw.marks.map(([label, time]) => ({ label, time: ms(time) }));
    const times = new Set(["queued", "sent", "first_byte", "last_byte"]);
    this.objects = raw.objects.map((row, n) => {
      const object = { number: n };
      raw.columns.forEach((name, k) => (object[name] = times.has(name) ? ms(row[k]) : row[k]));
      let now = 0;
      const flat = raw.chunks[n];
      object.chunks = [];
      for (let k = 0; k < flat.length; k += 2) object.chunks.push([ms((now += flat[k])), flat[k + 1]]);
      return object;
    });
    this.connections = new Map();
    raw.connections.forEach((row, n) => {
      for (const name of ["opened", "connected", "tls_done", "last_byte", "min_rtt"]) row[name] = ms(row[name]);
      this.connections.set(row.connection, { ...row, order: n });
    });
    this.tcp = raw.tcp;
    for (const series of Object.values(this.tcp)) {
      series.time = series.time.map(ms);
      series.resent = series.resent.map(ms);
      series.phases = phases(series);
    }
    this.link = { ...raw.link, time: raw.link.time.map(ms) };
  }

  /** The connection that received most: the first to look at. */
  busiest(host) {
    const all = [...this.connections.values()].filter((c) => c.reason !== "surplus");
    const same = all.filter((c) => c.host === host);
    const from = same.length ? same : all;
    return from.reduce((a, b) => ((b.bytes_received ?? 0) > (a?.bytes_received ?? -1) ? b : a), null);
  }
}

/** Stretches of slow start, recovery and loss of one sender, from its samples. */
function phases(series) {
  const stretches = [];
  series.time.forEach((time, n) => {
    const state = series.state[n];
    const limit = series.ssthresh[n];
    let name = AVOIDANCE;
    if (state === "Loss") name = "loss";
    else if (state === "Recovery" || state === "CWR") name = "recovery";
    else if (limit === null || series.cwnd[n] < limit) name = "slow start";
    const last = stretches[stretches.length - 1];
    if (last) last.until = time;
    if (!last || last.name !== name) stretches.push({ name, from: time, until: time });
  });
  return stretches;
}

/** An SVG path that holds each value until the next sample. */
function steps(times, values, x, y, until) {
  let path = "";
  let open = false;
  times.forEach((time, n) => {
    if (values[n] === null) {
      open = false;
      return;
    }
    path += open ? `H${x(time).toFixed(1)}V${y(values[n]).toFixed(1)}` : `M${x(time).toFixed(1)},${y(values[n]).toFixed(1)}`;
    open = true;
  });
  return path && open ? `${path}H${x(until).toFixed(1)}` : path;
}

/** The last part of a path: what a reader calls the file. */
function shortName(url) {
  const path = url.split(/[?#]/)[0].replace(/\/+$/, "");
  const tail = path.slice(path.lastIndexOf("/") + 1);
  return tail && !path.endsWith(`//${tail}`) ? decode(tail) : "/";
}

/** The text with its middle left out when it is longer than `most`: the end of a file name tells its type. */
function elided(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 10)}…${text.slice(-9)}`;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hostOf(url) {
  return /^[a-z]+:\/\/([^/]+)/i.exec(url)?.[1] ?? "";
}
