"""Sets the page's clock and random numbers, so that a page sends the same requests in every visit.

``Date``, ``performance.timeOrigin`` and ``performance.timing`` begin at the recorded time and run on;
``crypto`` draws from a seed. ``Math.random`` is V8's, seeded by ``--js-flags=--random-seed``. The script runs
before the page's own, in every frame and worker; no byte of the page changes. It also removes service
workers: they are not replayed, and pages work without them.
"""

from __future__ import annotations

import time

_SCRIPT = """
(() => {
  const shift = SHIFT, Real = Date, real = Real.now.bind(Real), now = () => real() + shift;
  const Clock = function Date(...parts) {
    if (!new.target) return new Real(now()).toString();
    return Reflect.construct(Real, parts.length ? parts : [now()], new.target);
  };
  Object.defineProperty(Clock, 'length', {value: 7});
  Object.defineProperty(Clock, 'prototype', {value: Real.prototype, writable: false});
  Object.defineProperty(Real.prototype, 'constructor', {value: Clock, writable: true, configurable: true});
  for (const [name, value] of [['now', now], ['parse', Real.parse], ['UTC', Real.UTC]])
    Object.defineProperty(Clock, name, {value, writable: true, configurable: true});
  globalThis.Date = Clock;
  const moved = (prototype, name) => {
    const own = Object.getOwnPropertyDescriptor(prototype, name);
    if (!own || !own.get) return;
    Object.defineProperty(prototype, name, {...own, get() {
      const value = own.get.call(this);
      return typeof value === 'number' && value ? value + shift : value;
    }});
  };
  moved(Performance.prototype, 'timeOrigin');
  if (globalThis.PerformanceTiming)
    for (const name of Object.keys(PerformanceTiming.prototype)) moved(PerformanceTiming.prototype, name);
  let state = SEED >>> 0 || 1;
  const draw = () => {
    state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
    return state & 255;
  };
  const fill = bytes => { for (let i = 0; i < bytes.length; i++) bytes[i] = draw(); return bytes; };
  const give = (name, value) => {
    if (globalThis.Crypto && Crypto.prototype[name])
      Object.defineProperty(Crypto.prototype, name, {value, writable: true, configurable: true});
  };
  give('getRandomValues', function getRandomValues(array) {
    fill(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return array;
  });
  give('randomUUID', function randomUUID() {
    const b = fill(new Uint8Array(16));
    b[6] = b[6] & 15 | 64; b[8] = b[8] & 63 | 128;
    const hex = Array.from(b, byte => byte.toString(16).padStart(2, '0')).join('');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  });
  if (globalThis.Navigator) delete Navigator.prototype.serviceWorker;
})();
"""


def script(clock_ms: int | None, seed: int) -> str:
    """The script for a visit that begins now; ``clock_ms`` is Unix time, None leaves the clock unchanged."""
    shift = 0 if clock_ms is None else clock_ms - round(time.time() * 1000)
    return _SCRIPT.replace("SHIFT", str(shift)).replace("SEED", str(seed % 2**32))
