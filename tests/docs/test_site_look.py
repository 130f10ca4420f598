"""How the pages look: lines, contents, menu, colors, numbers of lessons, weight."""

from __future__ import annotations

import re
import struct
import sys
from html import unescape
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.pages import LESSONS, ROOT, lesson_of, site_pages, sources
from tests.docs.sphinx_builds import ADDRESS
from tools import social_image
from workshop.lesson_pages import first_page, pages_of

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import addresses
import lean_styles

LESSON = "docs/lessons/03_collectives/1_what_they_do.html"
KILOBYTES = 800  # of any page
SEARCHING = 940  # lesson 19 has 52 failures and all known lines; see knowledge.py

in_browser = pytest.mark.full


def text_of(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


# Lesson numbers


def number_of(page: Path) -> str:
    """``05`` of a lesson's first page, ``5.2`` of its second part."""
    lesson = lesson_of(page)[:2]
    part = re.match(r"(\d)_", page.name)
    return f"{int(lesson)}.{part[1]}" if part else lesson


PAGES = [page for lesson in LESSONS for page in pages_of(ROOT, lesson)]


@pytest.mark.parametrize(("before", "source"), [*pairwise([None, *PAGES])])
def test_a_page_of_a_lesson_has_its_number_in_title_menu_breadcrumb_and_buttons(
    site, before, source
):
    """Parts are numbered 5.1, 5.2; the buttons go through them, lesson after lesson."""
    address = source.relative_to(ROOT).with_suffix(".html").as_posix()
    page = (site / address).read_text(encoding="utf-8")
    title = text_of(re.search(r"<h1>(.*?)<a", page)[1])
    assert title.startswith(f"{number_of(source)} ")
    assert f"<title>{title}" in page
    assert text_of(re.search(r'item active">(.*?)</li>', page)[1]) == title
    first = first_page(ROOT, lesson_of(source)).relative_to(ROOT).with_suffix(".html")
    contents = (site / first).read_text(encoding="utf-8")
    link = "#" if source == ROOT / first.with_suffix(".rst") else f"{source.stem}.html"
    menu = re.search(rf'toctree-l.*?href="{link}">(.*?)</a>', contents)
    assert menu and text_of(menu[1]) == title
    if before:
        assert re.search(rf'title="{number_of(before)} [^"]+" accesskey="p"', page)


def test_a_reference_to_a_lesson_reads_as_its_number_and_tells_its_title(site):
    seen = set()
    link = re.compile(r'\.html#lesson-(\d\d)" title="\1 [^"]+">(.*?)</a>', re.S)
    for path in site_pages(site):
        html = path.read_text(encoding="utf-8")
        links = link.findall(html)
        assert len(links) == len(re.findall(r'#lesson-\d\d"', html)), path.name
        for number, words in links:
            if text_of(words) in (f"lesson {number}", f"Lesson {number}"):
                seen.add(text_of(words)[0])
    assert seen == {"l", "L"}


# Addresses, figures, fonts


def test_canonical_and_shared_addresses_follow_from_one_setting(site):
    for path in site_pages(site, "docs"):
        html = path.read_text(encoding="utf-8")
        address = f"{ADDRESS}{path.relative_to(site).as_posix()}"
        assert f'<link rel="canonical" href="{address}" />' in html
        assert f'<meta property="og:url" content="{address}" />' in html


def test_sitemap_names_each_page_and_not_the_one_for_a_wrong_address(site):
    root = ElementTree.parse(site / "sitemap.xml").getroot()
    named = {url.text for url in root.iter(f"{{{addresses.SITEMAP}}}loc")}
    assert named == {
        f"{ADDRESS}{source.relative_to(ROOT).with_suffix('.html').as_posix()}"
        for source in sources()
        if source.name != "404.rst"
    }


def test_shared_link_has_a_picture_of_the_size_that_is_asked_for(site):
    html = (site / "index.html").read_text(encoding="utf-8")
    image = re.search(r'<meta property="og:image" content="([^"]+)"', html)
    assert image and image[1].startswith(ADDRESS)
    picture = (site / image[1].removeprefix(ADDRESS)).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", picture[16:24])
    assert size == (social_image.WIDTH, social_image.HEIGHT)


def test_read_the_docs_shows_versions_and_books(site):
    html = (site / "index.html").read_text(encoding="utf-8")
    assert '<div class="version-switch">' in html
    for kind in ("pdf", "epub"):
        assert f'href="{ADDRESS}_/downloads/en/latest/{kind}/"' in html


def test_a_site_without_an_address_claims_none():
    tag = '<meta property="og:url" content="{}" />\n'
    for address, left in ((None, ""), ("https://a.example/x.html",) * 2):
        page = {"metatags": tag.format("x.html") + "<meta />", "pageurl": address}
        addresses.tell_canonical_address(None, "x", "", page, None)
        assert page["metatags"] == (tag.format(left) if left else "") + "<meta />"


def test_figures_stand_in_their_pages_in_colors_that_have_a_dark_partner(site):
    rules = (site / "_static" / "figures.css").read_text(encoding="utf-8")
    drawings = 0
    for path in site_pages(site):
        html = path.read_text(encoding="utf-8")
        for drawing in re.findall(r'<svg [^>]*class="drawing".*?</svg>', html, re.S):
            drawings += 1
            assert re.search(r'aria-label="[^"]{20,}"', drawing), path.name
            assert "<title" not in drawing
            for use in re.findall(r'(?:fill|stroke)="#[0-9a-f]{6}"', drawing):
                assert f".drawing [{use}]" in rules, f"{path.name}: {use}"
    assert drawings == len(list((ROOT / "docs" / "figures").glob("*.svg")))


def test_code_has_both_themes_in_one_style_sheet(site):
    rules = (site / "_static" / "pygments.css").read_text(encoding="utf-8")
    plain = re.findall(r"^\.highlight [^\n]*: (?!light-dark)#[^\n]*", rules, re.M)
    assert rules.count("light-dark(") > 50
    assert not plain


def test_words_of_code_in_plain_ink_are_plain_text(site):
    html = (site / "docs/lessons/15_sharded_data_parallel/2_by_hand.html").read_text(
        "utf-8"
    )
    assert '<span class="k">def</span> <span class="nf">' in html
    assert not re.search(r'<span class="[npow]">', html)


def test_a_page_weighs_little_without_its_figures(site):
    """All that it names, and the fonts: as files, before a server compresses them."""
    fonts = [*(site / "_static" / "fonts").glob("*.woff2")]
    heavy = {}
    for path in site_pages(site):
        html = path.read_text(encoding="utf-8")
        page = re.sub(r'<svg [^>]*class="drawing".*?</svg>', "", html, flags=re.S)
        files = re.findall(r'_static/([^"?]+\.(?:css|js))', page)
        weight = len(page.encode()) + sum(
            (site / "_static" / name).stat().st_size for name in files
        )
        for font in fonts:
            if "math" not in font.name or "<math" in page:
                weight += font.stat().st_size
        most = SEARCHING if "js/knowledge.js" in page else KILOBYTES
        if weight > most * 1000:
            heavy[path.name] = weight
    assert not heavy


def test_the_font_of_formulas_has_every_character_of_them(site):
    readme = (ROOT / "docs/_static/fonts/README.txt").read_text(encoding="utf-8")
    has = set()
    for first, last in re.findall(
        r"U\+(\w+)(?:-(\w+))?", readme.split("for formulas")[1]
    ):
        has.update(range(int(first, 16), int(last or first, 16) + 1))
    for path in site_pages(site):
        html = path.read_text(encoding="utf-8")
        for formula in re.findall("<math.*?</math>", html, re.S):
            text = unescape(text_of(formula))
            lacks = {char for char in text if ord(char) not in has and char.strip()}
            assert not lacks, f"{path.name}: {lacks} in {text[:60]!r}"


@in_browser
def test_the_fonts_that_a_page_loads_are_ours(page):
    """The parts, that is, and not the whole ones which the theme brings."""
    page.goto(LESSON)
    page.evaluate("document.fonts.ready.then(() => 0)")
    loaded = page.evaluate(
        "performance.getEntriesByType('resource').map((entry) => entry.name)"
        ".filter((name) => name.includes('.woff'))"
    )
    assert loaded
    assert all("/_static/fonts/" in address for address in loaded), loaded


def test_only_rules_that_no_page_can_use_are_dropped():
    sheet = """.used, .un-used .used { a: b } .un-used { c: d }
        p:not(.un-used, .x) > .used::after { e: f } @font-face { g: h }
        @media print { .used { i: j } } @media screen { .un-used { k: l } }"""
    kept = lean_styles.lean(sheet, {"used", "x"})
    for letter in "aegi":
        assert f"{letter}:" in kept
    for letter in "ckl":
        assert f"{letter}:" not in kept
    assert ".un-used .used" not in kept


# In a browser

LINES = """() => [...document.querySelectorAll("section > p")].map((paragraph) => {
  const text = paragraph.innerText;
  const height = parseFloat(getComputedStyle(paragraph).lineHeight);
  const lines = Math.round(paragraph.getBoundingClientRect().height / height);
  return [text.length, lines];
}).filter(([length, lines]) => lines >= 4)"""


@in_browser
def test_a_line_of_prose_has_65_to_80_characters(page):
    page.goto("docs/lessons/14_tensor_parallel/1_columns_and_rows.html")
    paragraphs = page.evaluate(LINES)
    full_lines = sum(lines - 0.5 for _, lines in paragraphs)
    assert len(paragraphs) >= 3
    assert 65 <= sum(length for length, _ in paragraphs) / full_lines <= 80


@in_browser
def test_no_table_of_causes_is_cut_at_its_right(page):
    """They lie in folds, which hide what is wider than they are."""
    page.goto("docs/lessons/19_when_it_breaks/1_find.html")
    page.evaluate(
        "document.querySelectorAll('details').forEach((d) => (d.open = true))"
    )
    wider = page.evaluate(
        "[...document.querySelectorAll('table.causes')]"
        ".map((table) => table.parentElement)"
        ".map((box) => box.scrollWidth - box.clientWidth)"
    )
    assert len(wider) >= 5 and max(wider) == 0, wider


@in_browser
def test_wide_windows_show_the_contents_and_both_menus_follow_the_reader(page):
    page.goto(LESSON)
    contents = page.locator(".page-contents")
    assert not contents.is_visible()
    last = "Collectives without a root"
    current = ".wy-menu-vertical a[aria-current=location]"
    heads = page.locator("h2")
    page.evaluate(
        "document.querySelector('#collectives-without-a-root').scrollIntoView()"
    )
    page.wait_for_selector(f"{current} >> text=Collectives without a root")
    seen = page.locator(current).bounding_box()
    logo = page.locator(".wy-side-nav-search > a.icon").bounding_box()
    search = page.locator("#rtd-search-form input[name=q]").bounding_box()
    assert logo["y"] >= 0 and search["y"] >= 0
    assert search["y"] + search["height"] < seen["y"] < 900
    page.set_viewport_size({"width": 1400, "height": 900})
    assert contents.is_visible()
    assert contents.locator("[aria-current=location]").inner_text() == last
    box, column = contents.bounding_box(), page.locator(".rst-content").bounding_box()
    assert box["x"] >= column["x"] + column["width"]
    assert box["x"] + box["width"] <= 1400
    assert 0 <= box["y"] < 100, "the contents have scrolled away"
    assert page.locator(".page-contents > ul > li > ul > li").count() == heads.count()


PAPER = "getComputedStyle(document.body).backgroundColor"
INK_OF_FIGURE = "getComputedStyle(document.querySelector('.drawing text')).fill"
INK_OF_CODE = "getComputedStyle(document.querySelector('.highlight .k')).color"


@in_browser
def test_the_choice_of_colors_wins_over_the_system_and_is_kept(page):
    page.emulate_media(color_scheme="dark")
    page.goto(LESSON)
    looks = {}
    for choice in ("auto", "light", "dark"):
        page.select_option(".colors select", choice)
        page.reload()
        assert page.input_value(".colors select") == choice
        looks[choice] = tuple(map(page.evaluate, (PAPER, INK_OF_FIGURE, INK_OF_CODE)))
    assert looks["auto"] == looks["dark"]
    for light, dark in zip(looks["light"], looks["dark"], strict=True):
        assert light != dark
    page.select_option(".colors select", "auto")
    page.emulate_media(color_scheme="light")
    assert page.evaluate(PAPER) == looks["light"][0]


@in_browser
def test_a_term_shows_its_definition_to_mouse_and_keyboard(page):
    page.goto(LESSON)
    term = page.locator("a[data-definition]").first
    shown = page.locator(".definition")
    assert not shown.is_visible()
    term.hover()
    assert len(shown.inner_text().split()) >= 4
    assert term.get_attribute("aria-describedby") == shown.get_attribute("id")
    line, box = term.bounding_box(), shown.bounding_box()
    assert 0 <= box["y"] - line["y"] <= 2 * line["height"], "it stands at the term"
    shown.hover()  # and stays while the pointer is on it
    page.wait_for_timeout(300)
    assert shown.is_visible()
    page.mouse.move(0, 0)
    shown.wait_for(state="hidden")
    term.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert shown.is_visible()
    page.keyboard.press("Escape")
    assert not shown.is_visible()


@in_browser
def test_a_term_shows_its_definition_without_javascript(browser, served):
    context = browser.new_context(base_url=served.address, java_script_enabled=False)
    page = context.new_page()
    page.goto(LESSON)
    term = page.locator("a[data-definition]").first
    shown = "(term) => getComputedStyle(term, '::after').content"
    term.hover()
    assert len(term.evaluate(shown).split()) >= 4
    context.close()


@in_browser
def test_a_menu_of_choices_shows_that_it_has_the_focus(page):
    page.goto(LESSON)
    page.locator(".colors select").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    ring = "getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate("document.activeElement.localName") == "select"
    assert page.evaluate(ring) == "3px"


@in_browser
def test_tables_of_sentences_are_cards_on_a_phone(phone):
    phone.goto("docs/lessons/03_collectives/3_deadlocks.html")
    table = phone.locator("table.cards").first
    cells = table.locator("tbody tr").first.locator("td")
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert [box["x"] for box in boxes] == [boxes[0]["x"]] * len(boxes)
    heads = table.locator("thead th").all_text_contents()
    assert [cell.get_attribute("data-label") for cell in cells.all()] == heads
    phone.goto(LESSON)
    figure = phone.locator("figure .larger").first
    assert figure.is_visible()
    phone.goto("docs/lessons/15_sharded_data_parallel/1_keeps.html")
    stages = phone.locator("table.stays-table tbody tr").first.locator("td")
    tops = {cell.bounding_box()["y"] for cell in stages.all()}
    assert len(tops) == 1, "stages of ZeRO are compared column by column"
    phone.goto("docs/which_parallelism.html")
    wide = [
        table.locator(part).first.bounding_box()["width"]
        for table in phone.locator("table.cards:has(caption)").all()
        for part in ("caption", "tbody tr")
    ]
    assert wide and len(set(wide)) == 1, "a caption is as wide as its cards"


@in_browser
def test_the_menu_of_a_phone_opens_and_closes_without_javascript(browser, served):
    context = browser.new_context(
        base_url=served.address,
        java_script_enabled=False,
        viewport={"width": 390, "height": 844},
    )
    page = context.new_page()
    page.goto("docs/setup.html")
    menu = page.locator(".wy-nav-side")
    assert not menu.is_visible()
    page.click(".wy-nav-top .fa-bars")
    assert menu.is_visible() and menu.bounding_box()["x"] == 0
    page.click("text=Close the menu")
    assert not menu.is_visible()
    page.click(".wy-nav-top .fa-bars")
    page.click(".wy-menu-vertical >> text=Glossary")
    assert page.inner_text("h1").startswith("Glossary")
    context.close()
