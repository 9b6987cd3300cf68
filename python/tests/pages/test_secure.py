"""A page of plain http can be asked for by https, as HSTS would have it."""

from __future__ import annotations

from pathlib import Path

from wirepaint.pages import model
from wirepaint.pages.model import Cause, Page, Resource
from wirepaint.pages.secure import by_https, is_plain, secured


def resource(number: int, url: str, by: int | None, **other: object) -> Resource:
    kind = "navigation" if by is None else "redirect" if other.pop("redirected", False) else "parser"
    values = {"type": "html" if number < 2 else "image", "wire_bytes": 0, "decoded_bytes": 0} | other
    return Resource(id=number, url=url, cause=Cause(by=by, kind=kind), **values)  # type: ignore[arg-type]


def a_page() -> Page:
    html = [("content-type", "text/html"), ("content-security-policy", "img-src *")]
    return Page(
        name="plain",
        url="http://a.test:80/",
        resources=[
            resource(0, "http://a.test:80/", None, status=301, headers=[("location", "https://a.test/")]),
            resource(1, "https://a.test/", 0, redirected=True, headers=html),
            resource(2, "http://img.test/x.png", 1),
        ],
    )


def test_every_address_is_by_https_and_the_redirect_to_itself_is_gone():
    page = by_https(a_page())
    assert [r.url for r in page.resources] == ["https://a.test/", "https://img.test/x.png"]
    assert page.resources[0].cause == Cause(by=None, kind="navigation")
    assert page.resources[1].cause.by == 0
    assert page.url == "https://a.test/" and not is_plain(page)
    assert page.notes == ["http addresses asked for by https, as HSTS would"]


def test_documents_have_the_browser_upgrade_what_they_name():
    page = by_https(a_page())
    policy = page.resources[0].header("content-security-policy")
    assert policy == "img-src *; upgrade-insecure-requests"


def test_the_form_by_https_is_made_once(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "plain"
    (folder / "bodies").mkdir(parents=True)
    model.save_index(a_page(), folder)
    made = secured(folder)
    assert model.load(made).url == "https://a.test/"
    before = (made / "page.json").stat().st_mtime_ns
    assert secured(folder) == made and (made / "page.json").stat().st_mtime_ns == before
