"""Finds when the visible part of a page was complete, by scripts in the page and a screencast.

There are three sources. The walk names the resources of all elements that intersect the first
view port. Element timing gives the times when images were painted. Screencast frames show what a person
would have seen. The walk misses script-swapped images, iframes and closed shadow roots; if the
view port holds such elements, the frames decide.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, UnidentifiedImageError

WORLD = "wirepaint"
"""Isolated world of the scripts: the page's own scripts neither see nor disturb them."""

OBSERVE = """
(() => {
  if (window !== window.top) return;
  const paints = globalThis.paints = [];
  new PerformanceObserver(list => {
    for (const e of list.getEntries()) paints.push([e.url || '', e.renderTime || e.loadTime]);
  }).observe({type: 'element', buffered: true});
  const mark = () => {
    for (const image of document.images)
      if (!image.elementTiming) image.elementTiming = 'wirepaint';
  };
  mark();
  new MutationObserver(mark).observe(document, {childList: true, subtree: true});
})();
"""

WALK = """
(() => {
  const urls = new Set();
  let opaque = 0;
  const add = url => { if (url) urls.add(new URL(url, document.baseURI).href); };
  const inView = element => {
    const r = element.getBoundingClientRect();
    return r.width > 0 && r.height > 0 && r.bottom > 0 && r.right > 0 &&
      r.top < innerHeight && r.left < innerWidth;
  };
  const images = style => {
    const {backgroundImage, maskImage, listStyleImage, borderImageSource} = style;
    for (const text of [backgroundImage, maskImage, listStyleImage, borderImageSource])
      if (text && text !== 'none') for (const m of text.matchAll(/url\\("([^"]+)"\\)/g)) add(m[1]);
  };
  const walk = root => {
    for (const element of root.querySelectorAll('*')) {
      if (element.shadowRoot) walk(element.shadowRoot);
      if (!inView(element)) continue;
      const style = getComputedStyle(element);
      if (style.visibility === 'hidden') continue;
      images(style);
      for (const pseudo of ['::before', '::after']) {
        const styled = getComputedStyle(element, pseudo);
        if (styled.content !== 'none') images(styled);
      }
      switch (element.localName) {
        case 'img': add(element.currentSrc || element.src); break;
        case 'input': if (element.type === 'image') add(element.src); break;
        case 'image': add(element.href && element.href.baseVal); break;
        case 'video': add(element.poster); break;
        case 'object': case 'embed': add(element.data || element.src); break;
        case 'iframe': case 'frame': opaque++; if (element.src) add(element.src); break;
      }
    }
  };
  walk(document);
  return {urls: [...urls], opaque, paints: globalThis.paints || []};
})()
"""

MOST_PICTURES = 20
"""Pictures that are kept of a visit."""

SIMILAR = 0.99
"""A frame that shows this share of the final picture's histogram counts as complete: JPEG noise and
a blinking cursor stay below one hundredth."""


@dataclass(frozen=True)
class Frame:
    """One screencast frame: seconds of CLOCK_MONOTONIC, and a base64 JPEG."""

    time: float
    data: str


def since(frames: Sequence[Frame], start: float) -> list[Frame]:
    """The frames from ``start`` on; the picture that the screen showed before is the first of them.

    Without it the first paint would be the picture that progress is measured from.
    """
    before = [frame for frame in frames if frame.time < start]
    shown = [Frame(start, before[-1].data)] if before else []
    return shown + [frame for frame in frames if frame.time >= start]


def visual_progress(frames: Sequence[Frame]) -> list[tuple[float, float]]:
    """(time, share of the final picture that is visible) of each frame.

    WebPageTest's measure: for each colour channel, how much of the difference between the first
    and the last frame's histograms a frame has made up.
    """
    pictures: list[tuple[float, np.ndarray]] = []
    last = ""
    for frame in frames:
        if frame.data != last and (histogram := _histogram(frame.data)) is not None:
            pictures.append((frame.time, histogram))
            last = frame.data
    if not pictures:
        return []
    first, final = pictures[0][1], pictures[-1][1]
    change = final - first
    whole = np.abs(change).sum()
    if whole == 0:
        return [(time, 1.0) for time, _ in pictures]
    progress = []
    for time, histogram in pictures:
        step = histogram - first
        made = np.where(np.sign(step) == np.sign(change), np.minimum(np.abs(step), np.abs(change)), 0)
        progress.append((time, float(made.sum() / whole)))
    return progress


def thinned(
    frames: Sequence[Frame], progress: Sequence[tuple[float, float]]
) -> list[tuple[float, float, str | None]]:
    """(time, share, picture) of each frame of ``progress``; the pictures of the largest steps are kept.

    The first and the last picture are kept always, ``MOST_PICTURES`` in all; the others are None.
    """
    pictures = {frame.time: frame.data for frame in reversed(frames)}
    steps = {n: abs(progress[n][1] - progress[n - 1][1]) if n else math.inf for n in range(len(progress))}
    if progress:
        steps[len(progress) - 1] = math.inf
    kept = set(sorted(steps, key=lambda n: -steps[n])[:MOST_PICTURES])
    return [(time, share, pictures[time] if n in kept else None) for n, (time, share) in enumerate(progress)]


def speed_index(progress: Sequence[tuple[float, float]], start: float) -> float | None:
    """Milliseconds: the area above the curve of visual progress from navigation start on."""
    if not progress:
        return None
    area, at, share = 0.0, start, 0.0
    for time, now in progress:
        time = max(time, start)
        area += (time - at) * (1 - share)
        at, share = time, now
    return area * 1000


def last_change(progress: Sequence[tuple[float, float]]) -> float | None:
    """Time of the first frame after which the picture stays complete."""
    complete = None
    for time, share in reversed(progress):
        if share < SIMILAR:
            break
        complete = time
    return complete


def _histogram(data: str) -> np.ndarray | None:
    try:
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            return np.array(image.convert("RGB").histogram(), dtype=np.int64)
    except (binascii.Error, UnidentifiedImageError, OSError):
        return None
