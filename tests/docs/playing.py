"""What the tests of figures to play with share: a page of each, and what all must do.

    player = playing.Player(browser, site, "ring-player", "docs/lessons/03_....html")
    player.check_everywhere()           # phone, paper, Tab key, names, no JavaScript
    player.press("Next step", "Enter")  # and then what only this one does
    playing.compare(blank, [(ring_sent, (4, 10, 3)), ...])  # JavaScript and Python

A page is loaded once per player, from a file as readers may have it, and once without
JavaScript. The rest of axe is checked for all pages elsewhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}

CONTROLS = "button, input, select, summary"
# Only what holds the element: a hundred open cards would be laid out again and again.
UNFOLD = """(name) => document.querySelectorAll(`details:has(${name})`).forEach(
  (part) => { part.open = true; })"""
TAB_STOPS = f"""(player) => [...player.querySelectorAll("{CONTROLS}")].filter(
  (part) => part.checkVisibility() && (part.type !== "radio" || part.checked))"""
# What is wider than the frame, and what cannot be seen in it.
BEYOND = """(player) => {
  const edge = player.getBoundingClientRect().right;
  return [...player.querySelectorAll("*")].filter((part) =>
    part.getBoundingClientRect().right > edge + 1 ||
    (part.matches("td, th, button, label") && part.scrollWidth > part.clientWidth + 1)
  ).map((part) => `${part.tagName}.${part.className}: ${part.textContent}`);
}"""
# Texts and colored parts with too little contrast against what is behind them: every
# background up to the page's, one over the other.
PALE = """(player) => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (colors) => {
    pen.clearRect(0, 0, 1, 1);
    for (const color of colors) {
      pen.fillStyle = color;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (color) => color.map((part) => part / 255).map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (one, other) => {
    const [light, dark] = [one, other].map(luminance).sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const own = (part) => {
    const { backgroundColor, backgroundImage } = getComputedStyle(part);
    return [backgroundColor, ...(backgroundImage.match(/rgba?\\([^)]*\\)/) ?? [])];
  };
  const behind = (part) => part ? [...behind(part.parentElement), ...own(part)] : [];
  const written = (part) => part.matches("input, select") || [...part.childNodes].some(
    (one) => one.nodeType === Node.TEXT_NODE && one.data.trim());
  const problems = [];
  for (const part of player.querySelectorAll("*")) {
    if (!part.checkVisibility() || part.matches("option")) continue;
    const style = getComputedStyle(part), ground = behind(part);
    const seen = parseFloat(style.fontSize) > 0 && style.opacity > 0;
    const tell = (what, ratio, least) => ratio < least && problems.push(
      `${what} ${part.tagName}.${part.className} ${part.textContent.slice(0, 20)}: ${
        ratio.toFixed(2)}`);
    if (written(part) && seen)
      tell("text", contrast(over([...ground, style.color]), over(ground)), 4.5);
    if (part.matches(COLORED)) {
      const around = over(behind(part.parentElement));
      const edge = parseFloat(style.borderTopWidth) > 0 ? [style.borderTopColor] : [];
      const shown = [[...ground], ...edge.map((color) => [...ground, color])];
      tell("fill", Math.max(...shown.map((one) => contrast(over(one), around))), 3);
    }
  }
  return [...new Set(problems)];
}"""
COLORED = (
    ".blue, .green, .orange, .violet, .gray, "
    ".forward, .backward, .input, .weight, .legend i, .parts i:not(.limit)"
)
WIDER = """() => document.documentElement.scrollWidth -
  document.documentElement.clientWidth"""


@contextmanager
def blank_page(browser, *names: str):
    """An empty page with the scripts of these elements, for their formulas."""
    import play

    page = browser.new_page()
    for script in dict.fromkeys(file for name in names for file in play.scripts(name)):
        page.add_script_tag(path=play.SCRIPTS / script)
    yield page
    page.close()


def same(one, other) -> bool:
    """Equal, in lists as well; two numbers may differ by rounding."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def compare(page, calls: Iterable[tuple[Callable, tuple]]) -> None:
    """``play.formulas`` has each function by its name, and it gives the same."""
    calls = [(function, list(arguments)) for function, arguments in calls]
    found = page.evaluate(
        "(calls) => calls.map(([name, inputs]) => play.formulas[name](...inputs))",
        [[function.__name__, arguments] for function, arguments in calls],
    )
    for (function, arguments), answer in zip(calls, found, strict=True):
        expected = function(*arguments)
        assert same(expected, answer), (
            f"{function.__name__}{tuple(arguments)} is {expected} in Python "
            f"and {answer} in JavaScript"
        )


class Player:
    """The first element of this name on a page of the built site."""

    def __init__(self, browser, site: Path, name: str, page_name: str) -> None:
        self.browser, self.name = browser, name
        self.address = (site / page_name).as_uri()
        self.errors: list[str] = []
        context = browser.new_context(reduced_motion="reduce", viewport=DESKTOP)
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(self.address)
        self.page.wait_for_selector(f"{name}[data-ready]", state="attached")
        self.page.evaluate(UNFOLD, name)
        self.element = self.page.locator(name).first
        self.frame = self.element.locator(".player")
        self.still = self.element.locator(":scope > .still")

    def close(self) -> None:
        self.page.context.close()

    @property
    def words(self) -> str:
        """What the live line says."""
        return self.frame.locator(".state").inner_text()

    def control(self, label: str):
        """The control of this label, or the button with these words."""
        button = self.frame.get_by_role("button", name=label, exact=True)
        return button if button.count() else self.frame.get_by_label(label)

    def press(self, label: str, key: str) -> str:
        """Press a key on a control; what the live line says then."""
        self.control(label).focus()
        self.page.keyboard.press(key)
        return self.words

    # What all of them must do

    def check_everywhere(self) -> None:
        has_still = self.still.locator("> *").count() > 0
        self.check_names()
        self.check_tab_key()
        self.check_colors()
        self.check_phone()
        if has_still:
            self.check_still_figure()
        self.check_paper(has_still)
        self.check_without_javascript(has_still)
        assert not self.errors, self.errors

    def check_names(self) -> None:
        """A screen reader hears what this is, and each change in words."""
        assert self.frame.get_attribute("role") == "group"
        assert len(self.frame.get_attribute("aria-label").split()) >= 2
        assert self.frame.locator(".state").get_attribute("aria-live") == "polite"
        for control in self.frame.locator("input, select").all():
            label = control.evaluate("(one) => one.labels[0]?.textContent ?? ''")
            assert label.strip(), f"{self.name}: a control without a label"

    def check_tab_key(self) -> None:
        """Each control is a stop of the Tab key, in the order of the page."""
        stops = self.frame.evaluate_handle(TAB_STOPS)
        count = stops.evaluate("(stops) => stops.length")
        stops.evaluate("(stops) => stops[0].focus()")
        for place in range(count):
            here = stops.evaluate(
                f"(stops) => stops[{place}] === document.activeElement"
            )
            assert here, f"{self.name}: the Tab key misses control {place}"
            self.page.keyboard.press("Tab")

    def check_colors(self) -> None:
        """As WCAG asks, text has 4.5 to 1 on what is behind it, a fill 3 to 1."""
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme)
            pale = self.frame.evaluate(PALE.replace("COLORED", repr(COLORED)))
            assert not pale, f"{self.name}, {scheme}: {pale}"
        self.page.emulate_media(color_scheme="light")

    def check_phone(self) -> None:
        """Nothing leaves the frame at 390 px, and the page does not scroll sideways."""
        self.page.set_viewport_size(PHONE)
        beyond = self.frame.evaluate(BEYOND)
        wide = self.page.evaluate(WIDER)
        self.page.set_viewport_size(DESKTOP)
        assert not beyond and wide == 0, f"{self.name} on a phone: {beyond}, {wide} px"

    def check_still_figure(self) -> None:
        """It is hidden until a button shows it."""
        assert not self.still.is_visible()
        self.press("Show the whole figure", "Enter")
        assert self.still.is_visible()
        self.press("Hide the whole figure", "Enter")
        assert not self.still.is_visible()

    def check_paper(self, has_still: bool) -> None:
        self.page.emulate_media(media="print")
        player, still = self.frame.is_visible(), self.still.is_visible()
        self.page.emulate_media(media="screen")
        assert not player, f"{self.name} is printed"
        assert still == has_still, f"{self.name}: paper lacks the still figure"

    def check_without_javascript(self, has_still: bool) -> None:
        context = self.browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(self.address)
        element = page.locator(self.name).first
        for folded in page.locator("details", has=element).all():
            folded.locator("> summary").click()
        assert page.locator(f"{self.name} .player").count() == 0
        still = element.locator(":scope > .still")
        assert still.is_visible() == has_still, f"{self.name}: no still figure"
        context.close()
