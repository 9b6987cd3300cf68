"""An ordinary user reads strangers' recordings, even if root runs the command."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wirepaint import ordinary, pages
from wirepaint.cli import invoke
from wirepaint.errors import MachineLacks, PageFailed, RunFailed, UsageError
from wirepaint.pages import import_folder, import_har, load, prepare, shipped
from wirepaint.rehearsal import rehearse, shapes
from wirepaint.runners import graphs

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become an ordinary user")
PROGRAM = "from wirepaint.cli import main; main()"
DOCUMENT = "<!doctype html><title>A page</title><script src=/a.js></script>"


def who() -> str:
    """The user, groups and rights of this process, and whether it can write where only root may."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    facts = {
        name: status[name].split() for name in ("Uid", "Gid", "Groups", "CapEff", "CapPrm", "NoNewPrivs")
    }
    try:
        Path(os.environ["OF_ROOT"], "written").write_text("")
        facts["wrote"] = ["yes"]
    except OSError as error:
        facts["wrote"] = [error.strerror or ""]
    return json.dumps(facts)


def tell(*_: Any, **__: Any) -> Any:
    """Replaces code that reads a recording."""
    raise RunFailed(who())


def recording(folder: Path, *, document: str = DOCUMENT) -> Path:
    """A HAR of a document and a script."""
    bodies = {"/": ("text/html", document), "/a.js": ("text/javascript", "let a;")}
    entries = [
        {
            "startedDateTime": "2026-01-02T03:04:05Z",
            "time": 50,
            "request": {"method": "GET", "url": f"https://a.test{path}", "headers": []},
            "response": {
                "status": 200,
                "headers": [{"name": "content-type", "value": mime}],
                "content": {"size": len(text), "mimeType": mime, "text": text},
            },
            "timings": {"wait": 20, "receive": 5},
        }
        for path, (mime, text) in bodies.items()
    ]
    file = folder / "page.har"
    creator = {"name": "test", "version": "1"}
    file.write_text(json.dumps({"log": {"version": "1.2", "creator": creator, "entries": entries}}))
    return file


@pytest.fixture(autouse=True)
def of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that only root may write to."""
    (tmp_path / "of-root").mkdir()
    monkeypatch.setenv("OF_ROOT", str(tmp_path / "of-root"))


@pytest.fixture
def temporaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made: empty again when a test has ended."""
    folder = tmp_path / "temporaries"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def unrehearsed(tmp_path: Path) -> Path:
    import_har(recording(tmp_path), tmp_path / "unrehearsed")
    return tmp_path / "unrehearsed"


Reading = Callable[[Path, Path], object]
READING: dict[str, tuple[str, Reading]] = {
    "a recording": (
        "wirepaint.pages.readers.read",
        lambda page, out: import_har(page.parent / "page.har", out),
    ),
    "its bodies": (
        "wirepaint.pages.import_har.select",
        lambda page, out: import_har(page.parent / "page.har", out),
    ),
    "a site": (
        "wirepaint.pages.import_folder.Site",
        lambda page, out: import_folder(shipped()["kit"], out, start="page.json"),
    ),
    "the preparation": ("wirepaint.pages.prepare.check", lambda page, out: prepare(page, out)),
    "the graph of the simulator": (
        "wirepaint.runners.graphs.load_graph",
        lambda page, out: graphs._page.__wrapped__((page, (1280, 800), "apart", 0)),
    ),
}


@as_root
@pytest.mark.parametrize("what", READING)
def test_what_is_foreign_is_read_without_the_rights_of_root(
    what: str, unrehearsed: Path, temporaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    module, _, name = READING[what][0].rpartition(".")
    monkeypatch.setattr(sys.modules[module], name, tell)
    with pytest.raises(RunFailed) as told:
        READING[what][1](unrehearsed, tmp_path / "out")
    facts = json.loads(str(told.value))
    assert facts["Uid"] == facts["Gid"] == [str(ordinary.USER)] * 4
    assert facts["Groups"] == [] and facts["NoNewPrivs"] == ["1"]
    assert facts["CapEff"] == facts["CapPrm"] == [f"{1 << 2:016x}"], "it may read, and nothing else"
    assert facts["wrote"] == ["Permission denied"]
    assert not (tmp_path / "out").exists() and not list(temporaries.iterdir())


def in_a_new_process(folder: Path, say: ordinary.Say) -> str:
    say(f"in {folder.name}")
    return who()


@as_root
def test_a_new_process_has_no_rights_of_root_either(
    temporaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [str(Path(__file__).parent), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(there))
    said: list[str] = []
    with ordinary.done(in_a_new_process, "a page", said.append, fresh=True) as (folder, told):
        assert folder.stat().st_uid == ordinary.USER
    facts = json.loads(told)
    assert facts["Uid"] == [str(ordinary.USER)] * 4 and facts["CapEff"] == [f"{1 << 2:016x}"]
    assert facts["wrote"] == ["Permission denied"] and said == ["in own"]
    assert not list(temporaries.iterdir())


@as_root
def test_the_child_has_nothing_open_that_root_had_opened(tmp_path: Path) -> None:
    def work(*_: object) -> list[str]:
        return sorted(str(Path(f"/proc/self/fd/{n}").readlink()) for n in range(4096) if _is_open(n))

    with (tmp_path / "results").open("w"), ordinary.done(work, "a page") as (_, held):
        pass
    assert len(held) == 4 and held[:3] == ["/dev/null"] * 3 and held[3].startswith("pipe:")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@as_root
def test_a_rehearsal_is_carried_out_in_such_a_process(
    unrehearsed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def done(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        raise UsageError("it", "enough", "no more")

    monkeypatch.setattr(ordinary, "done", done)
    with pytest.raises(UsageError):
        rehearse(unrehearsed, print)
    assert asked == [{"fresh": True, "browser": True}]


@as_root
def test_a_shape_is_made_without_the_rights_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("wirepaint.rehearsal.current_browser", lambda: "Chromium 1")
    monkeypatch.setattr("wirepaint.rehearsal.ensure", lambda wanted, say: [wanted[0][0]])
    monkeypatch.setattr(shapes, "shaped", tell)
    with pytest.raises(RunFailed) as told:
        shapes.make(shipped()["kit"], tmp_path / "out", print)
    assert json.loads(str(told.value))["Uid"] == [str(ordinary.USER)] * 4


@as_root
def test_a_recording_that_only_root_may_read_is_imported_and_belongs_to_root(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    file = recording(closed)
    file.chmod(0o600)
    page = import_har(file, closed / "page")
    assert load(closed / "page") == page and len(page.resources) == 2
    made = [closed / "page", *(closed / "page").rglob("*")]
    assert len(made) == 1 + 4 and {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(0, 0)}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o644}
    (closed / "site").mkdir(mode=0o700)
    (closed / "site" / "index.html").write_text(DOCUMENT)
    (closed / "site" / "index.html").chmod(0o600)
    assert import_folder(closed / "site", closed / "of-site").title == "site"


@as_root
@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL: was there enough memory?")]
)
def test_a_child_that_dies_is_one_line_with_the_name_of_the_page(
    number: int,
    words: str,
    tmp_path: Path,
    temporaries: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = recording(tmp_path)
    before = set(tmp_path.rglob("*"))

    def read(*_: object) -> None:
        faulthandler.disable()  # pytest's
        os.kill(os.getpid(), number)

    monkeypatch.setattr("wirepaint.pages.readers.read", read)
    assert invoke(["page", "import", str(file), "-o", str(tmp_path / "out")]) == PageFailed.exit_code
    said = f"wirepaint: {file}: the process that read it was ended by {words}\n"
    assert capfd.readouterr() == ("", said)
    assert set(tmp_path.rglob("*")) == before and not list(temporaries.iterdir())


BAD = {
    "no JSON": "<html>",
    "an empty HAR": '{"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": []}}',
    "a key of another type": '{"log": {"version": "1.2", "creator": 1, "entries": []}}',
    "nested": '{"log":' + "[" * 100_000,
    "controls": '{"log": {"creator": {"name": "\\u001b[2J"}, "entries": [{"time": "\\u202e"}]}}',
    "gzip cut off": "\x1f\x8b\x08",
}


@as_root
@pytest.mark.parametrize("what", BAD)
def test_a_bad_recording_has_the_same_line_and_exit_code_as_without_root(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.har"
    file.write_text(BAD[what], encoding="latin-1")
    arguments = ["page", "import", str(file), "-o", str(tmp_path / "out")]
    found = invoke(arguments), capfd.readouterr()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert found == (invoke(arguments), capfd.readouterr())
    assert found[0] == UsageError.exit_code and str(file) in found[1].err and "Traceback" not in found[1].err


ERRORS = [
    UsageError("x" * 400, "\x1b" * 300, "other"),
    MachineLacks("no browser", "Install one."),
    PageFailed("it failed"),
    OSError(28, "No space left on device", "/a/file"),
]


@as_root
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_the_child_is_that_of_its_work(error: Exception) -> None:
    def work(*_: object) -> None:
        raise error

    with pytest.raises(type(error)) as told, ordinary.done(work, "a page"):
        pass
    assert type(told.value) is type(error) and str(told.value) == str(error)
    assert vars(told.value) == vars(error)


@as_root
def test_a_fault_of_the_child_keeps_its_name() -> None:
    with (
        pytest.raises(Exception, match="division by zero") as told,
        ordinary.done(lambda *_: 1 / 0, "a page"),
    ):
        pass
    assert type(told.value).__name__ == "ZeroDivisionError"


@as_root
def test_what_is_said_reaches_the_terminal_without_commands_to_it() -> None:
    said: list[str] = []
    with ordinary.done(lambda _, say: say("\x1b[2Jone\ntwo"), "a page", said.append):
        pass
    assert said == ["\\x1b[2Jone two"]


@as_root
def test_a_child_that_says_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(_: Path, say: ordinary.Say) -> None:
        while True:
            say("more")

    monkeypatch.setattr(ordinary, "MOST_SAID", 2**20)
    with pytest.raises(PageFailed, match="a page: more than 1 MiB were made of it"):
        ordinary.done(work, "a page").__enter__()


def a_link(folder: Path) -> None:
    (folder / "00001").symlink_to("/etc/passwd")


def a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "00001")


def a_folder(folder: Path) -> None:
    (folder / "00001").mkdir()


def two_names(folder: Path) -> None:
    (folder / "00001").write_bytes(b"body")
    os.link(folder / "00001", folder / "00002")


def too_much(folder: Path) -> None:
    (folder / "00001").write_bytes(bytes(3))


@pytest.mark.parametrize("make", [a_link, a_pipe, a_folder, two_names, too_much])
def test_nothing_but_regular_files_is_taken(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordinary, "MOST_TAKEN", 2)
    made, target = tmp_path / "made", tmp_path / "target"
    made.mkdir()
    target.mkdir()
    make(made)
    with pytest.raises(PageFailed, match=r"what was made of the page is refused: 0000[12]"):
        ordinary.take(made, target)


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "made" / "bodies").symlink_to("/etc")
    with pytest.raises(OSError):
        ordinary.take(tmp_path / "made", tmp_path / "target", "bodies")


@as_root
@pytest.mark.parametrize(
    "answer", [{"own": [True]}, {"resources": [{"id": 0}], "own": [False], "certain": []}]
)
def test_what_a_child_says_of_a_page_is_checked(
    answer: dict[str, Any], unrehearsed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordinary, "_answer", lambda *_: {"value": answer})
    with pytest.raises((UsageError, PageFailed), match="unrehearsed: "):
        prepare(unrehearsed, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


WAITING = """
import sys, time
from pathlib import Path
from wirepaint import ordinary

def work(folder, say):
    say(str(folder))
    time.sleep(60)

try:
    with ordinary.done(work, "a page", lambda text: print(text, flush=True)):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""


@as_root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_is_left_of_a_command_that_is_stopped(number: signal.Signals, temporaries: Path) -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporaries), "PYTHONPATH": str(Path(pages.__file__).parents[2])},
        text=True,
    )
    assert command.stdout is not None
    folder = Path(command.stdout.readline().strip())
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
    assert folder.is_dir() and str(ordinary.USER) in map(_user, children)
    command.send_signal(number)
    assert command.wait(10) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    until = time.monotonic() + 20
    while time.monotonic() < until and (any(temporaries.iterdir()) or any(map(_runs, children))):
        time.sleep(0.05)
    assert not list(temporaries.iterdir()) and not [pid for pid in children if _runs(pid)]


def _user(pid: str) -> str:
    return Path(f"/proc/{pid}/status").read_text().partition("Uid:")[2].split()[0]


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@as_root
def test_root_without_the_right_to_read_everything_is_told_what_to_do(tmp_path: Path) -> None:
    hidden = tmp_path / "home"
    hidden.mkdir(mode=0o700)
    har = recording(hidden)
    # As containers start root.
    without = ("setpriv", "--bounding-set=-dac_read_search", "--inh-caps=-dac_read_search")
    found = subprocess.run(
        [*without, sys.executable, "-c", PROGRAM, "page", "import", har, "-o", tmp_path / "page"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.returncode == 2
    (said,) = found.stderr.splitlines()
    assert "root here has no CAP_DAC_READ_SEARCH" in said and "XDG_CACHE_HOME" in said
