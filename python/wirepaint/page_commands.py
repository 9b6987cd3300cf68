"""The verbs of ``wirepaint page``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from wirepaint import files
from wirepaint.errors import MachineLacks, PageFailed, RunFailed, UsageError
from wirepaint.printing import Json, Output, print_json, print_rows, say

page = App(name="page", help="Recorded pages: import, record, show and list them.")


@page.command(name="import")
def page_import(
    file: Path,
    /,
    *,
    output: Output = None,
    name: str | None = None,
    title: str | None = None,
    page: str | None = None,
    source: str | None = None,
    licence: str = "not stated",
    seed: int = 1,
    sizes_only: bool = False,
    start: str = "index.html",
    rehearse: bool = True,
) -> None:
    """Import a page from a recording or from the folder of a static site.

    Parameters
    ----------
    file
        A HAR (.har, .har.gz, .har.zip), a web archive (.warc, .warc.gz, .wacz), a log of Chrome's DevTools
        protocol, or a folder with an index.html.
    output
        Folder to write: new, empty or a page, which is replaced. When left out, the name of the file
        without its suffix, or that of a folder, or of a file without suffix, and -page.
    name
        Name of the page; that of the folder to write when left out, or of the file.
    title
        Title of the page; that of the recording when left out.
    page
        Which of several recorded pages: its id in the HAR, its address in a web archive, or its number
        from 1.
    source
        Where it comes from, kept in page.json.
    licence
        Its licence, kept in page.json.
    seed
        Seed of bodies that the recording lacks.
    sizes_only
        Drop recorded bodies: synthesised ones ask for the same requests. The bodies are rehearsed before, to
        find out what they ask for, after what.
    start
        Document of a site's folder that is the page.
    rehearse
        Load the page several times in Chromium to find out what it asks for and how true the simulator is
        on it; `run` does so where it is missing.
    """
    from wirepaint import pages
    from wirepaint.pages.import_har import stem

    name = _named(name, output)
    if not file.exists():
        raise UsageError(str(file), "no such file or folder", "a recording or the folder of a static site")
    if file.is_dir():
        for option, given in {"--page": page is not None, "--sizes-only": sizes_only}.items():
            if given:
                raise UsageError(option, f"it with the folder {file}", "it with a recording")
        folder = output or Path(f"{files.real(file).name}-page")
        made = pages.import_folder(
            file, folder, name=name, title=title, source=source, licence=licence, seed=seed, start=start
        )
    elif start != "index.html":
        raise UsageError("--start", f"it with the file {file}", "it with the folder of a static site")
    else:
        # The file itself may lie here: a name without a recording's suffix must not be the folder's.
        folder = output or Path(stem(file) if stem(file) != file.name else f"{file.name}-page")

        def write(out: Path, bodies: bool) -> Any:
            kept = {"name": name, "title": title, "page": page, "source": source, "licence": licence}
            return pages.import_har(file, out, **kept, seed=seed, sizes_only=not bodies)

        made = _import_shape(write, folder) if sizes_only and rehearse else write(folder, not sizes_only)
    _finish(folder, made, rehearse)


def _named(name: str | None, output: Path | None) -> str | None:
    """The name that a user gave a page, if only by the folder to write; else None."""
    from wirepaint.pages.import_har import name_from

    return name_from(output.absolute()) if name is None and output is not None else name


def _import_shape(write: Any, folder: Path) -> Any:
    """An import as a shape; of recorded causes without Chromium."""
    from wirepaint import rehearsal
    from wirepaint.rehearsal import shapes

    try:
        rehearsal.current_browser()
    except MachineLacks:
        return write(folder, False)
    return shapes.make_imported(write, folder, say)


def _finish(folder: Path, made: Any, rehearse: bool) -> None:
    """Rehearses a page that was just written, and says what came of it."""
    from wirepaint import rehearsal

    if rehearse:
        try:
            rehearsal.current_browser()
        except MachineLacks as lack:
            say(f"not rehearsed: {lack}")
        else:
            made = rehearsal.rehearse(folder, say)
            say(rehearsal.in_words(made))
    for note in made.notes:
        say(note)
    print(folder)
    if made.rehearsal is not None and made.rehearsal.verdict == "does not":
        raise RunFailed(f"{made.name} does not replay: {made.rehearsal.reason}")


@page.command(name="record")
def page_record(
    url: str,
    /,
    *,
    output: Output = None,
    header: Annotated[list[str] | None, Parameter(negative="")] = None,
    cookie_file: Path | None = None,
    viewport: str | None = None,
    mobile: Annotated[bool, Parameter(negative="")] = False,
    wait: float = 0.0,
    timeout: float = 60.0,
    insecure: Annotated[bool, Parameter(negative="")] = False,
    resolve: Annotated[list[str] | None, Parameter(negative="")] = None,
    name: str | None = None,
    title: str | None = None,
    source: str | None = None,
    licence: str = "not stated",
    rehearse: bool = True,
) -> None:
    """Record a live page: load it in Chromium and keep all that it asks for.

    Parameters
    ----------
    url
        Address of the page.
    output
        Folder to write: new, empty or a page, which is replaced. When left out, the name of the host.
    header
        Header 'Name: value' to send to the page's own host; may be given again. Its value is not kept.
    cookie_file
        Cookies to send, in a cookies.txt of curl or wget. Their values are not kept.
    viewport
        Width and height in CSS pixels; 1280x800 when left out.
    mobile
        Load it as a phone: 412x823 at 2.625 pixels each, touch, the user agent of Chrome on Android.
    wait
        Seconds to go on recording after the network has become quiet.
    timeout
        Seconds within which the load event must come.
    insecure
        Accept any certificate.
    resolve
        Where a host is, as host:port:address like curl's, or host:port:address:port; may be given again.
    name
        Name of the page; that of the folder to write when left out, or of the host.
    title
        Title of the page; that of the document when left out.
    source
        Where it comes from, kept in page.json; the address when left out.
    licence
        Its licence, kept in page.json.
    rehearse
        Load what was recorded several times, to find out what it asks for and how true the simulator is.
    """
    from wirepaint import recording

    wish = recording.read(
        url,
        header=header or (),
        cookie_file=cookie_file,
        viewport=viewport,
        mobile=mobile,
        wait=wait,
        timeout=timeout,
        insecure=insecure,
        resolve=resolve or (),
    )
    folder = output or Path(wish.host)
    made = recording.record(
        wish, folder, name=_named(name, output), title=title, source=source, licence=licence
    )
    _finish(folder, made, rehearse)


@page.command(name="shape")
def page_shape(of: str, /, *, output: Output = None, name: str | None = None, rehearse: bool = True) -> None:
    """Make a shape of a page: without its bodies, asking for the same requests at the same times.

    Parameters
    ----------
    of
        Path of a page with bodies, a recording or the folder of a static site, or the name of a shipped page.
        It is rehearsed first where that is missing.
    output
        Folder to write: new, empty or a page, which is replaced. When left out, the page's name and -shape.
    name
        Name of the shape; that of the page when left out.
    rehearse
        Rehearse the shape, too; `run` does so where it is missing.
    """
    from wirepaint import pages
    from wirepaint.evaluation import pages as references
    from wirepaint.rehearsal import shapes

    source = references.resolve(of, Path.cwd(), "page").folder
    folder = output or Path(f"{pages.load(source).name}-shape")
    _finish(folder, shapes.make(source, folder, say, name), rehearse)


@page.command(name="rehearse")
def page_rehearse(folders: Annotated[list[Path], Parameter(negative="")], /) -> None:
    """Rehearse pages again, with the browser of this machine, and store what was found in their folders.

    Parameters
    ----------
    folders
        Page folders. `run` rehearses by itself what was never rehearsed in this browser, and keeps that in
        the cache.
    """
    from wirepaint import rehearsal

    failed = 0
    for folder in folders:
        try:
            say(rehearsal.in_words(rehearsal.rehearse(folder, say)))
        except (UsageError, PageFailed) as error:
            if len(folders) == 1:
                raise
            say(f"{folder}: not rehearsed: {error}")
            failed += 1
    if failed:
        raise RunFailed(f"{failed} of {len(folders)} folders were not rehearsed")


@page.command(name="list")
def page_list(*, json: Json = False) -> None:
    """List the pages that ship with wirepaint."""
    from wirepaint import pages, rehearsal

    loaded = {name: pages.load(rehearsal.known(folder)) for name, folder in pages.shipped().items()}
    rows = [
        {
            "name": name,
            "requests": len(page.resources),
            "bytes": sum(resource.wire_bytes or 0 for resource in page.resources),
            "verdict": page.rehearsal.verdict if page.rehearsal else None,
            "simulator_error": page.rehearsal.error if page.rehearsal else None,
            "title": page.title,
        }
        for name, page in loaded.items()
    ]
    if not json:
        for row in rows:
            error = row.pop("simulator_error")
            title = row.pop("title")
            row["verdict"] = row["verdict"] or "not rehearsed"
            row["simulator"] = "" if error is None else f"{100 * float(str(error)):.1f} % off"
            row["title"] = title
    print_rows(rows, json)


@page.command(name="show")
def page_show(
    name: str,
    /,
    *,
    whole: Annotated[bool, Parameter(name="--all", negative="")] = False,
    json: Json = False,
) -> None:
    """Show a page: what it asks for, what is left out, whether it replays, its waterfall.

    Parameters
    ----------
    name
        Name of a shipped page, or path of a page, a recording or the folder of a static site.
    whole
        Show every request and address.
    json
        Print JSON, with every request and address.
    """
    from wirepaint import pages, rehearsal
    from wirepaint.columns import PAGE_COLOURS, painted
    from wirepaint.evaluation import pages as references
    from wirepaint.pages import show

    folder = references.resolve(name, Path.cwd(), "page").folder
    shown = pages.load(rehearsal.known(folder))
    if json:
        print_json(show.facts(shown))
        return
    width = shutil.get_terminal_size().columns
    paint = lambda text, word: painted(text, PAGE_COLOURS.get(word))  # noqa: E731
    for line in show.lines(shown, width, whole=whole, paint=paint):
        print(line)
