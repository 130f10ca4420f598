"""Fixtures: the site, built once as Read the Docs would, and a browser that reads it.

The browser is Debian's Chromium; a machine without it skips those tests by name.
"""

from __future__ import annotations

import fcntl
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tools.serve import Handler

# Sphinx in a process where torch cannot be imported and nothing can be reached.
BUILD = """
import socket, sys
sys.modules["torch"] = None
def refuse(self, address, *rest):
    raise OSError(f"the build wanted to reach {address}")
socket.socket.connect = socket.socket.connect_ex = refuse
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""


ADDRESS = "https://workshop.example/"


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build pages afresh: nitpicky, warnings are errors, offline, without torch."""
    arguments = ["-W", "-n", "--keep-going", "-q", "-E", "-b", "html"]
    doctrees = ["-d", str(target.parent / f"{target.name}-doctrees")]
    return subprocess.run(
        [sys.executable, "-c", BUILD, *arguments, *doctrees, str(source), str(target)],
        cwd=source,
        # a warm Python has torch already; with an address as Read the Docs gives one
        env={**os.environ, "COLD_PYTHON": "1", "READTHEDOCS_CANONICAL_URL": ADDRESS},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, which all workers of pytest share."""
    if sys.version_info < (3, 11):
        pytest.skip("the site needs Python 3.11 or newer, as its Sphinx does")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    target, built = folder / "site", folder / "site-is-built"
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            done = build(ROOT, target)
            assert done.returncode == 0, f"the site does not build:\n{done.stderr}"
            built.touch()
    return target


@dataclass
class Served:
    """The site at an address of this machine."""

    folder: Path
    address: str

    @property
    def pages(self) -> list[str]:
        """Every page, and the search with a result."""
        found = sorted(
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*.html")
            if "_static" not in path.parts
        )
        return [*found, "search.html?q=deadlock"]

    def pages_with(self, words: str) -> list[str]:
        """The pages whose HTML contains ``words``."""
        return [
            page
            for page in self.pages[:-1]
            if words in (self.folder / page).read_text(encoding="utf-8")
        ]


@pytest.fixture(scope="session")
def served(site: Path) -> Iterator[Served]:
    handler = functools.partial(Handler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Served(site, f"http://127.0.0.1:{server.server_port}/")
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("reading the pages needs Chromium: sudo apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser, served: Served):
    """A page at desktop size that can use the clipboard."""
    context = browser.new_context(
        base_url=served.address, viewport={"width": 1280, "height": 900}
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context.new_page()
    context.close()


@pytest.fixture
def phone(browser, served: Served):
    """A page on a phone, 390 px wide."""
    context = browser.new_context(
        base_url=served.address,
        viewport={"width": 390, "height": 844},
        is_mobile=True,
        has_touch=True,
    )
    yield context.new_page()
    context.close()
