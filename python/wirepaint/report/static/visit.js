"use strict";
// One visit as report/visits.py packed it, and what is derived from it. Nothing here draws.

const TICKS_PER_MS = 100; // packed times are units of 10 µs from navigation start
const AVOIDANCE = "congestion avoidance";
const OBJECT_TIMES = ["discovered", "queued", "sent", "first_byte", "last_byte"];
const CONNECTION_TIMES = ["opened", "connected", "tls_done", "last_byte", "closed", "min_rtt"];

/** One visit, unpacked, with objects as records and times in ms. */
class Visit {
  constructor(raw) {
    this.end = ms(raw.end);
    this.url = raw.url;
    this.marks = raw.marks.map(([label, time]) => ({ label, time: ms(time) }));
    this.objects = raw.objects.map((row, n) => {
      const object = { number: n, arrivals: arrivalTimes(raw.chunks[n]) };
      raw.columns.forEach((name, k) => (object[name] = OBJECT_TIMES.includes(name) ? ms(row[k]) : row[k]));
      object.headers = raw.headers[raw.headers_of[n]] ?? [];
      return object;
    });
    for (const object of this.objects) object.blocking = blocksRendering(object, this.time("FP"));
    this.carried = Map.groupBy(this.objects, (object) => object.connection);
    this.connections = new Map();
    raw.connections.forEach((row, n) => {
      for (const name of CONNECTION_TIMES) row[name] = ms(row[name]);
      this.connections.set(row.connection, { ...row, order: n });
    });
    this.tcp = raw.tcp;
    for (const [number, series] of Object.entries(this.tcp)) {
      series.connection = Number(number);
      series.time = series.time.map(ms);
      series.resent = series.resent.map(ms);
      series.phases = phases(series);
    }
    this.link = withRates(raw.link);
    this.cpu = raw.cpu && { time: raw.cpu.time.map(ms), busy: raw.cpu.busy };
    this.flight = sumInFlight(this);
    this.bdp = this.productOfPath();
    this.highest = {
      flight: highest(this.flight.bytes, this.bdp.map((value) => value * 1.1)),
      rate: highest(this.link.rate, this.link.capacity) * 1.05,
      queue: highest(this.link.queue),
    };
  }

  /** Time of a mark in ms; null if the visit has none. */
  time(label) {
    return this.marks.find((mark) => mark.label === label)?.time ?? null;
  }

  /** Smallest round-trip time of its connections, in ms; null if unknown. */
  get rtt() {
    const known = [...this.connections.values()].map((c) => c.min_rtt).filter((value) => value !== null);
    return known.length ? Math.min(...known) : null;
  }

  /** The connection that received most: the first to look at. */
  busiest(host) {
    const all = [...this.connections.values()].filter((c) => c.reason !== "surplus");
    const same = all.filter((c) => c.host === host);
    const from = same.length ? same : all;
    return from.reduce((a, b) => ((b.bytes_received ?? 0) > (a?.bytes_received ?? -1) ? b : a), null);
  }

  /** Bandwidth-delay product towards the client in bytes, at each sample of the link. */
  productOfPath() {
    const { rtt } = this;
    return this.link.capacity.map((rate) => (rate === null || rtt === null ? null : (rate * 1000 * rtt) / 8));
  }
}

/** The largest value of some lists; 0 for none. */
function highest(...lists) {
  return Math.max(0, ...lists.flat());
}

function ms(ticks) {
  return ticks === null ? null : ticks / TICKS_PER_MS;
}

/** Times of arrivals in ms, from pairs of a difference and bytes. */
function arrivalTimes(flat) {
  const times = [];
  let now = 0;
  for (let k = 0; k < flat.length; k += 2) times.push(ms((now += flat[k])));
  return times;
}

/**
 * Whether the first paint waited for it, by the priorities that Chromium gives: style sheets that block are
 * very high, scripts that the parser waits for are high or medium, all others are low.
 */
function blocksRendering(object, firstPaint) {
  const early = firstPaint === null || (object.discovered ?? object.queued) < firstPaint;
  if (!early || object.initiator_type === "script") return false;
  if (object.type === "css") return object.priority === "VeryHigh";
  return object.type === "js" && ["High", "Medium"].includes(object.priority) && object.initiator_type === "parser";
}

/** The link's samples with delivered rate and capacity in Mbit/s until the next sample. */
function withRates(raw) {
  const time = raw.time.map(ms);
  const rate = (bytes) =>
    bytes.map((value, n) => {
      const span = time[n + 1] - time[n];
      return value === null || !(span > 0) ? null : (value * 8) / span / 1000;
    });
  return { time, queue: raw.queue, drops: raw.drops, rate: rate(raw.delivered), capacity: rate(raw.capacity) };
}

const FLIGHT_BUCKETS = 800;

/** Bytes in flight of all senders together, as steps: {time, bytes}; the highest of each bucket of time. */
function sumInFlight(visit) {
  const events = [];
  for (const [number, series] of Object.entries(visit.tcp)) {
    const connection = visit.connections.get(Number(number));
    const mss = connection?.mss ?? 1448;
    series.time.forEach((time, n) => {
      if (series.in_flight[n] !== null) events.push([time, number, series.in_flight[n] * mss]);
    });
    // The last sample is that of an acknowledgement that left something to be acknowledged.
    const last = series.time[series.time.length - 1] ?? 0;
    events.push([Math.max(last, connection?.last_byte ?? 0), number, 0]);
  }
  events.sort((a, b) => a[0] - b[0]);
  const flight = { time: [], bytes: [] };
  const now = new Map();
  const bucket = (time) => Math.floor((time / visit.end) * FLIGHT_BUCKETS);
  let sum = 0;
  for (const [time, number, bytes] of events) {
    sum += bytes - (now.get(number) ?? 0);
    now.set(number, bytes);
    const last = flight.time.length - 1;
    if (last >= 0 && bucket(time) === bucket(flight.time[last])) flight.bytes[last] = Math.max(flight.bytes[last], sum);
    else {
      flight.time.push(time);
      flight.bytes.push(sum);
    }
  }
  return flight;
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

/**
 * The requests of two visits of a page, matched by method and address (the nth with the nth): {a, b}, either of
 * them null where only one visit asked.
 */
function matched(a, b) {
  const key = (object) => `${object.method} ${object.url}`;
  const waiting = new Map();
  for (const object of b.objects) waiting.set(key(object), [...(waiting.get(key(object)) ?? []), object]);
  const pairs = a.objects.map((object) => ({ a: object, b: waiting.get(key(object))?.shift() ?? null }));
  for (const rest of waiting.values()) for (const object of rest) pairs.push({ a: null, b: object });
  return pairs;
}

/** How much later `b` does something than `a` of a pair, in ms; null unless both did it. */
function later(pair, moment) {
  const [a, b] = [pair.a?.[moment] ?? null, pair.b?.[moment] ?? null];
  return a === null || b === null ? null : b - a;
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
