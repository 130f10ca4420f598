"""Fixtures: the site, built once as Read the Docs would, and a browser that reads it.

The browser is Debian's Chromium; a machine without it skips those tests by name.
"""

from __future__ import annotations

import fcntl
import functools
import http.server
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, site_pages
from tests.docs.sphinx_builds import SphinxBuilds
from tests.needs import path_of, skip_without
from tools.serve import Handler

PATIENCE = 120_000  # milliseconds; with the cores to itself, a page takes a few hundred


@pytest.fixture(scope="session")
def builds() -> Iterator[SphinxBuilds]:
    """What builds sites; it starts when a test first needs it."""
    if sys.version_info < (3, 11):
        pytest.skip("the site needs Python 3.11 or newer, as its Sphinx does")
    builds = SphinxBuilds()
    yield builds
    builds.close()


@pytest.fixture(scope="session")
def site(builds: SphinxBuilds, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, which all workers share, and all parts of a run."""
    folder = tmp_path_factory.getbasetemp()
    if "SITE_OF_TESTS" in os.environ:  # tools/run_tests.py
        folder = Path(os.environ["SITE_OF_TESTS"])
    elif "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    target, built = folder / "site", folder / "site-is-built"
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            said = builds.build(ROOT, target)
            assert not said, f"the site does not build:\n{said}"
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
            for path in site_pages(self.folder)
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


class PatientBrowser:
    """A browser whose pages wait long: other tests share the cores."""

    def __init__(self, browser):
        self.browser = browser

    def new_context(self, **options):
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        return context

    def new_page(self, **options):
        page = self.browser.new_page(**options)
        page.set_default_timeout(PATIENCE)
        return page


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    chromium = path_of("chromium") or path_of("chromium-browser")
    if chromium is None:
        skip_without("chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield PatientBrowser(browser)
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
