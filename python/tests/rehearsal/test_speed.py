"""A much faster or slower machine rehearses again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wirepaint import rehearsal
from wirepaint.evaluation import pages
from wirepaint.pages import model
from wirepaint.pages.catalogue import shipped
from wirepaint.rehearsal import speed


def test_the_work_takes_some_milliseconds() -> None:
    assert 0.5 < speed.processor_ms() < 500


@pytest.mark.parametrize(
    ("then", "alike"), [(None, True), (10.0, True), (14.0, True), (25.0, False), (4.0, False)]
)
def test_machines_are_alike_within_a_factor(
    monkeypatch: pytest.MonkeyPatch, then: float | None, alike: bool
) -> None:
    monkeypatch.setattr(speed, "processor_ms", lambda: 10.0)
    assert speed.is_alike(then) is alike


@pytest.mark.parametrize(("browser", "current"), [("7.4", True), ("77.9", False), ("8.123", False)])
def test_a_patch_of_the_browser_asks_for_no_new_rehearsal(browser: str, current: bool) -> None:
    page = model.load(shipped()["kit"])
    assert page.rehearsal is not None
    then = page.rehearsal.model_copy(update={"browser": "Chromium 156.0.7.123", "processor_ms": None})
    page = page.model_copy(update={"rehearsal": then})
    assert rehearsal.is_current(page, f"Chromium 156.0.{browser}", page.usual_viewport) is current


@pytest.mark.parametrize(("maker", "current"), [(rehearsal.MAKER, True), ("7", True), ("6", False)])
def test_rehearsals_of_the_maker_before_serve(maker: str, current: bool) -> None:
    page = model.load(shipped()["kit"])
    assert page.rehearsal is not None
    then = page.rehearsal.model_copy(update={"maker": maker, "processor_ms": None})
    page = page.model_copy(update={"rehearsal": then})
    assert rehearsal.is_current(page, then.browser, page.usual_viewport) is current


def test_an_evaluation_goes_on_with_its_pages_on_a_machine_that_has_become_slower(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = model.load(shipped()["kit"])
    assert page.rehearsal is not None and page.rehearsal.processor_ms is not None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(rehearsal, "current_browser", lambda: page.rehearsal.browser)
    made: list[Path] = []

    def make(part: list[tuple[Path, rehearsal.Wanted]], say: rehearsal.Say) -> None:
        [(target, _)] = part
        made.append(target)

    monkeypatch.setattr(rehearsal, "_make_all", make)
    wanted = [(shipped()["kit"], page.usual_viewport)]
    began = pages.of_folder(shipped()["kit"]).sha256
    monkeypatch.setattr(speed, "processor_ms", lambda: 3 * page.rehearsal.processor_ms)
    rehearsal.ensure(wanted, print, begun_with={began})
    assert made == []
    rehearsal.ensure(wanted, print)
    assert len(made) == 1


def test_a_recording_whose_rehearsal_was_disturbed_is_rehearsed_again_on_a_calm_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "page"
    shutil.copytree(shipped()["kit"], folder)
    done = model.load(folder)
    assert done.rehearsal is not None
    model.save_index(done.model_copy(update={"rehearsal": None}), folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(rehearsal, "current_browser", lambda: done.rehearsal.browser)
    monkeypatch.setattr(speed, "processor_ms", lambda: 10.0)
    shares = iter([0.8, 0.1])

    def make(part: list[tuple[Path, rehearsal.Wanted]], say: rehearsal.Say) -> None:
        [(target, _)] = part
        shutil.copytree(folder, target)
        update = {"others_cpu": next(shares), "processor_ms": 10.0, "maker": rehearsal.MAKER}
        found = done.rehearsal.model_copy(update=update)
        model.save_index(done.model_copy(update={"rehearsal": found}), target)

    monkeypatch.setattr(rehearsal, "_make_all", make)
    wanted = [(folder, done.usual_viewport)]
    monkeypatch.setattr(rehearsal, "_is_calm", lambda: False)
    [busy] = rehearsal.ensure(wanted, print)
    assert rehearsal.ensure(wanted, print) == [busy], "the machine is still busy"
    monkeypatch.setattr(rehearsal, "_is_calm", lambda: True)
    began = pages.of_folder(busy).sha256
    assert rehearsal.ensure(wanted, print, begun_with={began}) == [busy], "results keep their page"
    [calm] = rehearsal.ensure(wanted, print)
    assert calm != busy
    assert rehearsal.ensure(wanted, print) == [calm]
    assert next(shares, None) is None, "two rehearsals, no more"
