"""Finds and starts Chromium's headless shell.

The headless shell has the net stack of the full browser, a third of its start time and CPU, and
makes no request of its own. It runs as an ordinary user in its sandbox. It gets the address of every
host (no other name resolves) and trusts one certificate authority: that of the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from wirepaint.errors import MachineLacks
from wirepaint.runners.testbed.browser.contract import BrowserOptions

CANDIDATES = (
    # Debian: the program itself, not the shell script around it.
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
)

FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-client-side-phishing-detection",
    "--metrics-recording-only",
    "--no-pings",
    "--mute-audio",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-ipc-flooding-protection",
    "--password-store=basic",
    "--use-mock-keychain",
    "--force-color-profile=srgb",
    "--disable-field-trial-config",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,"
    "CertificateTransparencyComponentUpdater,AutofillServerCommunication,NetworkTimeServiceQuerying,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LocalNetworkAccessChecks,AsyncDns",
)

HTTP_FLAGS: dict[str, tuple[str, ...]] = {
    "h1": ("--disable-http2", "--disable-quic"),
    "h2": ("--disable-quic",),
}


def netlog_file(options: BrowserOptions) -> Path:
    """Where the browser of a visit writes its NetLog."""
    return options.home / "netlog.json"


def find() -> Path:
    """Path of the headless shell: ``$WIREPAINT_CHROMIUM``, else the known places."""
    if override := os.environ.get("WIREPAINT_CHROMIUM"):
        return Path(override)
    for candidate in CANDIDATES:
        if found := shutil.which(candidate):
            return Path(found)
    raise MachineLacks(
        "Chromium's headless shell is not installed", "Debian: apt-get install chromium-headless-shell."
    )


def version(binary: Path | None = None) -> str:
    """The output of ``--version``, such as ``Chromium 156.0.7444.59``."""
    binary = binary or find()
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineLacks(f"{binary} does not start: {error}", "Reinstall it.") from error
    if done.returncode != 0 or not done.stdout.strip():
        raise MachineLacks(f"{binary} --version ended with {done.returncode}", "Reinstall it.")
    return done.stdout.strip()


def arguments(options: BrowserOptions) -> list[str]:
    """The command line of one visit. File descriptors 3 and 4 must be the DevTools pipe."""
    rules = [f"MAP {host} {address}" for host, address in sorted(options.hosts.items())]
    through: list[str] = []
    if options.proxy is not None:
        rules = [f"EXCLUDE {options.proxy.partition(':')[0]}"]
        # Without the list, Chromium would ask loopback names directly.
        through = [f"--proxy-server=http://{options.proxy}", "--proxy-bypass-list=<-loopback>"]
    rules.append("MAP * ~NOTFOUND")
    trust = (
        [f"--ignore-certificate-errors-spki-list={options.ca_spki_sha256}"] if options.ca_spki_sha256 else []
    )
    # Math.random() repeats from visit to visit, so pages that draw cache busters repeat too.
    seed = f"--js-flags=--random-seed={options.seed % 2**31 or 1}"
    secrets = [f"--ssl-key-log-file={options.key_log}"] if options.tls_secrets else []
    cache = [f"--disk-cache-dir={options.cache_dir}"] if options.cache_dir else []
    more = [*HTTP_FLAGS[options.http], *through, *trust, *secrets, *cache, seed]
    return command_line(
        options.home, netlog_file(options), options.viewport, rules=rules, more=more, binary=options.binary
    )


def command_line(
    home: Path,
    netlog: Path,
    viewport: tuple[int, int],
    *,
    rules: Sequence[str] = (),
    capture: Literal["Default", "Everything"] = "Default",
    more: Sequence[str] = (),
    binary: Path | None = None,
) -> list[str]:
    """A command line with its profile in ``home``; names without a rule resolve as usual.

    ``capture`` sets the content of the NetLog: ``Everything`` adds the bytes of headers and bodies.
    """
    width, height = viewport
    return [
        str(binary or find()),
        *FLAGS,
        *more,
        *([f"--host-resolver-rules={','.join(rules)}"] if rules else []),
        f"--window-size={width},{height}",
        f"--user-data-dir={home / 'profile'}",
        f"--log-net-log={netlog}",
        f"--net-log-capture-mode={capture}",
        "--remote-debugging-pipe",
    ]


def environment(home: Path) -> dict[str, str]:
    """Environment of the browser, without the user's variables."""
    return {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
