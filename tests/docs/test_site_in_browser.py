"""The pages as readers have them: desktop, phone, dark; mouse, keyboard, search."""

from __future__ import annotations

import ast
import subprocess
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import ROOT, directives, sources

pytestmark = pytest.mark.full

VIEWS = {
    "desktop": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "light",
        "is_mobile": True,
        "has_touch": True,
    },
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}

# What is folded or behind a tab must be as readable as the rest.
UNFOLD = """() => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  const style = document.createElement("style");
  style.textContent = ".sd-tab-content { display: block !important; }";
  document.head.append(style);
}"""

# Of pieces of code that look alike one remains: colours are most of axe's work.
ALIKE = """() => {
  const seen = new Set();
  for (const piece of document.querySelectorAll(".highlight span")) {
    const around = [piece, piece.parentElement, piece.closest("[class^=highlight-]")];
    const kind = around.map((part) => part && part.className).join("|");
    if (seen.has(kind)) piece.replaceWith(...piece.childNodes);
    seen.add(kind);
  }
}"""

# The rules of each view: a phone has a desktop's colours, dark pages its layout.
RULES = {
    "desktop": {},
    "phone": {"rules": {"color-contrast": {"enabled": False}}},
    "dark": {"runOnly": ["color-contrast"]},
}

# Per page: the violations of the rules, and whether the page scrolls sideways.
AXE = """async (rules) => {
  const found = await axe.run(document, { resultTypes: ["violations"], ...rules });
  return found.violations.flatMap((violation) => violation.nodes.map((node) =>
    `${violation.id}: ${node.html.slice(0, 120)} ${node.failureSummary}`));
}"""
OVERFLOW = """() => document.documentElement.scrollWidth
  - document.documentElement.clientWidth"""

# Short code in a sentence is not broken: it must still stay in its column.
ESCAPED_CODE = """() => {
  const right = document.querySelector(".rst-content").getBoundingClientRect().right;
  return [...document.querySelectorAll("p code, li code")]
    .filter((code) => !code.closest("table"))
    .filter((code) => code.getBoundingClientRect().right > right + 1)
    .map((code) => code.innerText);
}"""


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which the Python package brings along."""
    package = pytest.importorskip("axe_playwright_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def listen(page, name: str, problems: list[str]) -> None:
    """Note what the page's scripts throw and what the server does not have."""
    page.on("pageerror", lambda error: problems.append(f"{name}: {error}"))

    def refuse_errors(answer):
        if answer.status >= 400:
            problems.append(f"{name}: {answer.status} {answer.url}")

    page.on("response", refuse_errors)


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_is_accessible_fits_and_loads_nothing_foreign(
    view, browser, served, axe
):
    """axe (each rule once or twice), no sideways scrolling, no foreign request."""
    problems: list[str] = []
    context = browser.new_context(base_url=served.address, **VIEWS[view])
    # 127.0.0.1 is all there is: a request to elsewhere fails, and is reported
    here = urlsplit(served.address).netloc
    foreign: list[str] = []

    def only_here(route):
        if urlsplit(route.request.url).netloc == here:
            return route.continue_()
        foreign.append(route.request.url)
        return route.abort()

    context.route("**/*", only_here)
    for name in served.pages:
        page = context.new_page()
        listen(page, name, problems)
        page.goto(name)
        if "?q=" in name:
            page.wait_for_selector("#search-results .search li")
        page.evaluate(UNFOLD)
        page.evaluate(ALIKE)
        page.wait_for_timeout(100)  # what scrolls is marked in the next frames
        page.evaluate(axe)
        problems += [f"{name}: {found}" for found in page.evaluate(AXE, RULES[view])]
        if (pixels := page.evaluate(OVERFLOW)) > 0:
            problems.append(f"{name}: {pixels} px wider than the screen")
        for code in page.evaluate(ESCAPED_CODE):
            problems.append(f"{name}: leaves its column: {code}")
        page.close()
    context.close()
    assert not problems, "\n".join(problems[:20])
    assert not foreign, f"the pages load from elsewhere: {sorted(set(foreign))}"


def test_the_open_menu_of_a_phone_is_accessible(phone, axe):
    phone.goto("index.html")
    phone.click("[data-toggle='wy-nav-top']")
    phone.wait_for_selector(".wy-nav-side.shift")
    phone.evaluate(axe)
    assert phone.evaluate(AXE, RULES["desktop"]) == []


def test_a_wrong_address_shows_the_page_not_found_with_its_style(page):
    answer = page.goto("docs/lessons/no/such/page.html")
    assert answer.status == 404
    assert page.inner_text("h1").startswith("Page not found")
    assert page.evaluate("document.styleSheets.length") > 2
    page.click("text=Glossary >> nth=-1")
    assert "Glossary" in page.inner_text("h1")


# Search


def test_search_finds_deadlock(page):
    page.goto("index.html")
    page.fill("#rtd-search-form input[name=q]", "deadlock")
    page.press("#rtd-search-form input[name=q]", "Enter")
    page.wait_for_selector("#search-results .search li a")
    hits = page.locator("#search-results .search li a").all_inner_texts()
    assert any("deadlock" in hit.lower() or "Glossary" in hit for hit in hits), hits
    page.locator("#search-results .search li a", has_text="Glossary").first.click()
    assert "deadlock" in page.inner_text("[role=main]").lower()


def test_search_says_when_there_is_nothing(page):
    page.goto("search.html?q=qqqzzz")
    page.wait_for_selector("text=did not match any documents")


# Copy buttons


def copied(page, name: str, selector: str) -> list[str]:
    """What each copy button under ``selector`` puts on the clipboard."""
    page.goto(name)
    page.wait_for_function("document.querySelector('.copybtn') !== null")
    texts = []
    for number in range(page.locator(f"{selector} button.copybtn").count()):
        page.evaluate("navigator.clipboard.writeText('')")
        page.evaluate(
            "([selector, number]) => document.querySelectorAll("
            "`${selector} button.copybtn`)[number].click()",
            [selector, number],
        )
        page.wait_for_function("navigator.clipboard.readText().then((t) => t !== '')")
        texts.append(page.evaluate("navigator.clipboard.readText()"))
    return texts


def commands_in_source(page_name: str) -> list[str]:
    """The commands of the console blocks of a page, as its author wrote them."""
    source = ROOT / Path(page_name).with_suffix(".rst")
    return [
        "\n".join(line.strip().removeprefix("$ ") for line in directive.body)
        for directive in directives(source)
        if directive.name == "code-block" and directive.argument == "console"
    ]


def test_copied_commands_are_runnable_without_prompt_or_output(page, served):
    checked = 0
    for name in served.pages_with("highlight-console"):
        texts = copied(page, name, ".highlight-console")
        for text in texts:
            assert text.strip() and not text.startswith("$"), f"{name}: {text!r}"
            assert "\n$ " not in text, f"{name}: {text!r}"
            bash = subprocess.run(["bash", "-n", "-c", text], capture_output=True)
            assert bash.returncode == 0, f"{name}: {text!r}: {bash.stderr.decode()}"
        flat = [" ".join(text.split()) for text in texts]
        for command in commands_in_source(name):
            assert " ".join(command.split()) in flat, f"{name} does not copy {command}"
        checked += len(texts)
    assert checked >= 5


def test_output_has_no_copy_button(page, served):
    for name in served.pages_with('class="output'):
        page.goto(name)
        page.wait_for_function("document.querySelector('.copybtn') !== null")
        assert page.locator(".output button.copybtn").count() == 0, name


def test_copied_python_is_python(page, served):
    """A listing may begin in the middle of a function, but never with line numbers."""
    for name in served.pages_with("highlight-python"):
        for text in copied(page, name, ".highlight-python"):
            code = textwrap.dedent(text)
            for attempt in (code, f"if True:\n{textwrap.indent(code, '    ')}"):
                try:
                    ast.parse(attempt)
                    break
                except SyntaxError:
                    continue
            else:
                pytest.fail(f"{name} copies what is not Python: {text[:200]!r}")


# Keyboard


def test_the_first_tab_stop_skips_the_menu(page):
    page.goto("docs/setup.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(
        "document.querySelector('[role=main]').contains(document.activeElement)"
        " || document.querySelector('.rst-content').contains(document.activeElement)"
    )


def test_the_arrow_keys_change_tabs_and_the_choice_is_kept(page):
    page.goto("docs/setup.html")
    page.focus(".sd-tab-set > input >> nth=0")
    page.keyboard.press("ArrowRight")
    chosen = page.locator(".sd-tab-set > input:checked + label").all_inner_texts()
    assert chosen and set(chosen) == {"Slurm"}
    assert page.locator("text=srun --ntasks=1").first.is_visible()
    page.reload()
    kept = page.locator(".sd-tab-set > input:checked + label").all_inner_texts()
    assert set(kept) == {"Slurm"}


def test_the_keyboard_unfolds_hints_and_solutions(page, served):
    folded = served.pages_with("<details")
    if not folded:
        pytest.skip("no page has something folded yet")
    page.goto(folded[0])
    summary = page.locator("details > summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")
    page.keyboard.press("Space")
    assert not page.evaluate("document.querySelector('details').open")


def test_folded_parts_open_without_javascript(browser, served):
    folded = served.pages_with("<details")
    if not folded:
        pytest.skip("no page has something folded yet")
    context = browser.new_context(base_url=served.address, java_script_enabled=False)
    page = context.new_page()
    page.goto(folded[0])
    body = page.locator("details").first.locator("> :not(summary)").first
    assert not body.is_visible()
    page.locator("details > summary").first.click()
    assert body.is_visible()
    context.close()


def test_what_scrolls_sideways_is_reached_by_the_keyboard(phone, served):
    for name in served.pages_with("highlight-python"):
        phone.goto(name)
        unreachable = phone.evaluate(
            """() => [...document.querySelectorAll(".highlight pre")]
              .filter((part) => part.scrollWidth > part.clientWidth + 1)
              .filter((part) => part.tabIndex < 0 || !part.ariaLabel).length"""
        )
        assert unreachable == 0, name


def test_the_menu_of_a_phone_opens_and_closes_by_keyboard(phone):
    phone.goto("docs/setup.html")
    menu = phone.locator(".wy-nav-side")
    stops = []
    for _ in range(3):
        phone.keyboard.press("Tab")
        stops.append(phone.evaluate("document.activeElement.className"))
    assert "skip-link" in stops[0]
    assert "fa-bars" in stops[1], f"the closed menu is in the Tab order: {stops}"
    phone.focus("[data-toggle='wy-nav-top']")
    phone.keyboard.press("Enter")
    assert "shift" in menu.get_attribute("class")
    assert phone.get_attribute("[data-toggle='wy-nav-top']", "aria-expanded") == "true"
    phone.keyboard.press("Escape")
    assert "shift" not in menu.get_attribute("class").split()


def test_every_page_prints_what_is_folded(page, served):
    """On paper nobody can unfold: solutions and all tabs are printed, menus not."""
    page.goto("docs/setup.html")
    page.emulate_media(media="print")
    hidden = page.locator(".sd-tab-content").evaluate_all(
        "(parts) => parts.filter((part) => part.offsetHeight === 0).length"
    )
    assert hidden == 0
    assert not page.locator(".wy-nav-side").is_visible()


def test_sources_and_pages_agree_in_number(served):
    written = {s.relative_to(ROOT).with_suffix(".html").as_posix() for s in sources()}
    assert written <= set(served.pages)
