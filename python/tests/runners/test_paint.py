"""Visual progress and speed index over pictures whose answer is known."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from wirepaint.runners.testbed import screen
from wirepaint.runners.testbed.browser.chromium import paint


def frame(time: float, share: float, colour: tuple[int, int, int] = (0, 0, 0)) -> paint.Frame:
    """A white screen of which ``share`` is painted from the top; lossless, so that shares are exact."""
    picture = Image.new("RGB", (100, 100), "white")
    picture.paste(colour, (0, 0, 100, round(100 * share)))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return paint.Frame(time, base64.b64encode(file.getvalue()).decode())


def test_progress_is_the_share_of_the_final_picture() -> None:
    frames = [frame(1.0, 0), frame(1.2, 0.25), frame(1.4, 0.75), frame(1.8, 1)]
    assert paint.visual_progress(frames) == [(1.0, 0.0), (1.2, 0.25), (1.4, 0.75), (1.8, 1.0)]


def test_the_speed_index_is_the_area_above_the_progress() -> None:
    progress = [(1.0, 0.0), (1.2, 0.25), (1.4, 0.75), (1.8, 1.0)]
    # 200 ms blank, then 200 ms at a quarter, then 400 ms at three quarters; navigation began at 0.9.
    assert paint.speed_index(progress, 0.9) == pytest.approx(100 + 200 + 0.75 * 200 + 0.25 * 400)


def test_a_page_that_is_complete_at_its_first_paint_has_that_time_as_speed_index() -> None:
    frames = [frame(2.0, 0), frame(2.3, 1)]
    assert paint.speed_index(paint.visual_progress(frames), 2.0) == pytest.approx(300)
    assert paint.last_change(paint.visual_progress(frames)) == 2.3


def test_the_screen_before_the_navigation_is_what_progress_is_measured_from() -> None:
    frames = paint.since([frame(0.2, 0), frame(0.5, 0), frame(1.3, 0.5), frame(1.6, 1)], 1.0)
    assert paint.visual_progress(frames) == [(1.0, 0.0), (1.3, 0.5), (1.6, 1.0)]
    assert paint.speed_index(paint.visual_progress(frames), 1.0) == pytest.approx(300 + 0.5 * 300)
    assert [one.time for one in paint.since([frame(1.3, 1)], 1.0)] == [1.3]


def test_a_flash_of_another_colour_is_no_progress() -> None:
    frames = [frame(0, 0), frame(1, 1, (255, 0, 0)), frame(2, 1, (0, 0, 255))]
    shares = [share for _, share in paint.visual_progress(frames)]
    # Red shares the missing green with blue, and nothing else.
    assert shares == [0.0, pytest.approx(1 / 2), 1.0]


def test_the_picture_is_complete_when_it_stays_so() -> None:
    assert paint.last_change([(0, 0.0), (1, 1.0), (2, 0.5), (3, 0.995), (4, 1.0)]) == 3


def test_without_frames_nothing_is_invented() -> None:
    assert paint.visual_progress([]) == []
    assert paint.speed_index([], 0) is None
    assert paint.last_change([]) is None
    assert paint.visual_progress([paint.Frame(0, "no picture")]) == []


def test_the_first_the_last_and_the_largest_steps_keep_their_pictures() -> None:
    shares = [0.0, *(0.01 * n for n in range(1, 31)), 0.8, *(0.8 + 0.001 * n for n in range(1, 31)), 1.0]
    frames = [frame(float(n), share) for n, share in enumerate(shares)]
    progress = [(float(n), share) for n, share in enumerate(shares)]
    kept = [time for time, _, picture in paint.thinned(frames, progress) if picture]
    assert len(kept) == paint.MOST_PICTURES
    assert {0.0, 31.0, 62.0} <= set(kept)  # 31 is the step from 0.3 to 0.8
    assert [(time, share) for time, share, _ in paint.thinned(frames, progress)] == progress
    assert paint.thinned(frames, []) == []


def test_few_frames_keep_all_pictures_and_become_small_webp() -> None:
    frames = [frame(0.0, 0), frame(1.0, 0.5), frame(2.0, 1)]
    thinned = paint.thinned(frames, paint.visual_progress(frames))
    assert [picture for _, _, picture in thinned] == [one.data for one in frames]
    with Image.open(io.BytesIO(base64.b64decode(screen.webp(frames[1].data)))) as image:
        assert (image.format, image.size) == ("WEBP", (100, 100))
        upper, lower = image.convert("L").getpixel((50, 20)), image.convert("L").getpixel((50, 80))
        assert upper < 20
        assert lower > 235
