"""The pages as readers have them: desktop, phone, dark; mouse, keyboard, search."""

from __future__ import annotations

import ast
import contextlib
import subprocess
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import ROOT, directives

pytestmark = pytest.mark.full

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

# What is folded or behind a tab must be as readable as the rest.
UNFOLD = """() => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  const style = document.createElement("style");
  style.textContent = ".sd-tab-content { display: block !important; }";
  document.head.append(style);
}"""

# Of texts that stand in the same place of the same parts one is looked at, on the first
# page that shows it, as contrast is most of axe's work; the words of code lose their
# other spans. The colors of figures have tests of their own. Returns what is new.
ALIKE = """(known) => {
  const seen = new Set(known);
  const written = (part) => [...part.childNodes].some(
    (child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  const look = (part, depth) => !part || !depth ? "" :
    `${part.tagName}.${part.className} ${look(part.parentElement, depth - 1)}`;
  for (const part of document.querySelectorAll("body *:not(.drawing *)")) {
    const kind = look(part, 4);
    if (!written(part) || seen.has(kind) || !part.checkVisibility()) continue;
    seen.add(kind);
    part.dataset.look = "";
  }
  for (const word of document.querySelectorAll(".highlight span:not([data-look])"))
    word.replaceWith(...word.childNodes);
  for (const figure of document.querySelectorAll(".drawing")) figure.innerHTML = "";
  return [...seen].slice(known.length);
}"""

# What scrolls is marked in the next frame.
NEXT_FRAME = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""

# Everything but colors at a desktop and on a phone; colors of what is new. The menu is
# the same on all pages: the first one stands for it.
FIRST = ("document", {"rules": {"color-contrast": {"enabled": False}}})
EVERY = ('({ exclude: ".wy-nav-side" })', FIRST[1])
COLORS = ('({ include: "[data-look]" })', {"runOnly": ["color-contrast"]})
AXE = """async (rules) => {
  const found = await axe.run(PART, { resultTypes: ["violations"], ...rules });
  return found.violations.flatMap((violation) => violation.nodes.map((node) =>
    `${violation.id}: ${node.html.slice(0, 120)} ${node.failureSummary}`));
}"""

# What does not fit: the page, code in a sentence, figures, tables on a phone (but one
# that is compared column by column), a copy button that lies on the code, and what
# scrolls out of the keyboard's reach.
MISFITS = """() => {
  const root = document.documentElement;
  const wide = root.scrollWidth - root.clientWidth;
  const column = document.querySelector(".rst-content").getBoundingClientRect();
  const beyond = (part) => part.getBoundingClientRect().right > column.right + 1;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const narrow = root.clientWidth < 700;
  return [
    ...(wide > 0 ? [`${wide} px wider than the screen`] : []),
    ...all("p code, li code").filter((code) => !code.closest("table") && beyond(code))
      .map((code) => `leaves its column: ${code.innerText}`),
    ...all("figure .drawing").filter(beyond).map((figure) => `too wide: ${
      figure.getAttribute("aria-label").slice(0, 60)}`),
    ...all(".wy-table-responsive:not(:has(.stays-table))").filter((table) => narrow &&
      table.scrollWidth > table.clientWidth + 1).map((table) =>
      `a table scrolls: ${table.innerText.slice(0, 60)}`),
    ...all("button.copybtn").filter((button) => narrow &&
      button.getBoundingClientRect().left + 1 <
      button.parentElement.querySelector("pre").getBoundingClientRect().right)
      .map((button) => `copy button over: ${button.parentElement.innerText}`),
    ...all(".highlight pre").filter((code) =>
      code.scrollWidth > code.clientWidth + 1 &&
      !(code.tabIndex >= 0 && code.ariaLabel))
      .map((code) => `the keyboard cannot scroll: ${code.innerText.slice(0, 60)}`),
  ];
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


def violations(page, part: str, rules: dict) -> list[str]:
    """What axe finds in a part of the page."""
    return page.evaluate(AXE.replace("PART", part), rules)


@pytest.mark.nightly
def test_every_page_is_accessible_fits_and_loads_nothing_foreign(browser, served, axe):
    """One visit per page: a desktop in light and dark, then a phone.

    On a phone, axe looks at pages with something that no page before them has.
    """
    problems: list[str] = []
    context = browser.new_context(base_url=served.address, reduced_motion="reduce")
    # 127.0.0.1 is all there is: a request to elsewhere fails, and is reported
    here = urlsplit(served.address).netloc
    foreign: list[str] = []

    def only_here(route):
        if urlsplit(route.request.url).netloc == here:
            return route.continue_()
        foreign.append(route.request.url)
        return route.abort()

    context.route("**/*", only_here)
    known: list[str] = []  # kinds of texts whose colors were looked at
    for number, name in enumerate(served.pages):
        page = context.new_page()
        listen(page, name, problems)
        page.set_viewport_size(DESKTOP)
        page.goto(name)
        if "?q=" in name:
            page.wait_for_selector("#search-results .search li")
        page.evaluate(UNFOLD)
        page.evaluate(axe)
        before = len(known)
        for size, schemes in ((DESKTOP, ("light", "dark")), (PHONE, ("light",))):
            page.set_viewport_size(size)
            known += page.evaluate(ALIKE, known)
            page.evaluate(NEXT_FRAME)
            found = page.evaluate(MISFITS)
            if size == DESKTOP or len(known) > before:
                found += violations(page, *(EVERY if number else FIRST))
            for scheme in schemes if len(known) > before else ():
                page.emulate_media(color_scheme=scheme)
                found += [f"{scheme}: {one}" for one in violations(page, *COLORS)]
            problems += [f"{name} at {size['width']} px: {one}" for one in found]
        page.close()
    context.close()
    assert not problems, "\n".join(problems[:20])
    assert not foreign, f"the pages load from elsewhere: {sorted(set(foreign))}"


def test_the_open_menu_of_a_phone_is_accessible(phone, axe):
    phone.goto("index.html")
    phone.click("[data-toggle='wy-nav-top']")
    phone.wait_for_selector(".wy-nav-side.shift")
    phone.evaluate(axe)
    assert violations(phone, *FIRST) == []


def test_a_wrong_address_shows_the_page_not_found_with_its_style(page):
    answer = page.goto("docs/lessons/no/such/page.html")
    assert answer.status == 404
    assert page.inner_text("h1").startswith("Page not found")
    assert page.evaluate("document.styleSheets.length") > 2
    page.click("text=Glossary >> nth=-1")
    assert "Glossary" in page.inner_text("h1")


# Search


@pytest.mark.nightly
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


COPIED = """async (selector) => {
  const texts = [];
  for (const button of document.querySelectorAll(`${selector} button.copybtn`)) {
    await navigator.clipboard.writeText("");
    button.click();
    let text = "";
    while (!(text = await navigator.clipboard.readText()))
      await new Promise((again) => setTimeout(again));
    texts.push(text);
  }
  return texts;
}"""


def commands_in_source(page_name: str) -> list[str]:
    """The commands of the console blocks of a page, as its author wrote them."""
    source = ROOT / Path(page_name).with_suffix(".rst")
    return [
        "\n".join(line.strip().removeprefix("$ ") for line in directive.body)
        for directive in directives(source)
        if directive.name == "code-block" and directive.argument == "console"
    ]


def check_commands(name: str, texts: list[str]) -> None:
    """What is copied runs: no prompt, no output, and all that the author wrote."""
    for text in texts:
        assert text.strip() and not text.startswith("$"), f"{name}: {text!r}"
        assert "\n$ " not in text, f"{name}: {text!r}"
        bash = subprocess.run(["bash", "-n", "-c", text], capture_output=True)
        assert bash.returncode == 0, f"{name}: {text!r}: {bash.stderr.decode()}"
    flat = [" ".join(text.split()) for text in texts]
    for command in commands_in_source(name):
        assert " ".join(command.split()) in flat, f"{name} does not copy {command}"


def check_python(name: str, text: str) -> None:
    """A listing may begin in the middle of a function, but never with line numbers."""
    code = textwrap.dedent(text)
    for attempt in (code, f"if True:\n{textwrap.indent(code, '    ')}"):
        with contextlib.suppress(SyntaxError):
            ast.parse(attempt)
            return
    pytest.fail(f"{name} copies what is not Python: {text[:200]!r}")


@pytest.mark.nightly
def test_what_is_copied_can_be_run_and_output_is_not_copied(page, served):
    checked = 0
    for name in served.pages_with("highlight-"):
        page.goto(name)
        page.wait_for_function("document.querySelector('.copybtn') !== null")
        assert page.locator(".output button.copybtn").count() == 0, name
        commands = page.evaluate(COPIED, ".highlight-console")
        check_commands(name, commands)
        for text in page.evaluate(COPIED, ".highlight-python"):
            check_python(name, text)
        checked += len(commands)
    assert checked >= 5


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
    page.goto(served.pages_with("<details")[0])
    summary = page.locator("details:not([open]) > summary").first.element_handle()
    is_open = "(summary) => summary.parentElement.open"
    summary.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(is_open, summary)
    page.keyboard.press("Space")
    assert not page.evaluate(is_open, summary)


def test_folded_parts_open_without_javascript(browser, served):
    context = browser.new_context(base_url=served.address, java_script_enabled=False)
    page = context.new_page()
    page.goto(served.pages_with("<details")[0])
    folded = page.locator("details:not([open])").first.element_handle()
    body = folded.query_selector(":scope > :not(summary)")
    assert not body.is_visible()
    folded.query_selector("summary").click()
    assert body.is_visible()
    context.close()


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


def test_paper_has_all_tabs_no_menu_and_only_answers_stay_folded(page, served):
    page.goto("docs/setup.html")
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.locator(".sd-tab-content").evaluate_all(
        "(parts) => parts.filter((part) => part.offsetHeight === 0).length"
    )
    assert hidden == 0
    assert not page.locator(".wy-nav-side").is_visible()
    ink = "getComputedStyle(document.body).color"
    assert page.evaluate(ink) == "rgb(31, 41, 51)", "dark pages are printed light"
    page.goto("docs/lessons/06_checkpoints/2_replace.html")
    heights = {}
    measure = "(all) => all.map((one) => one.offsetHeight)"
    for kind in (".answer", ":not(.answer)"):
        folds = page.locator(f"details{kind}:not([open])")
        heights[kind] = folds.evaluate_all(measure)
    assert heights[".answer"] and max(heights[".answer"]) < 60, "hints and solutions"
    assert heights[":not(.answer)"] and min(heights[":not(.answer)"]) > 200, "listings"
