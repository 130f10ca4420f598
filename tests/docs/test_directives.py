"""The directives of docs/_ext: what they show, and what they refuse."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.sphinx_builds import SphinxBuilds

sys.path[:0] = [str(ROOT / "docs" / "_ext"), str(ROOT)]
pytest.importorskip("sphinx", reason="the site needs Sphinx: make site brings it")
exercise = pytest.importorskip("exercise")
transcript = pytest.importorskip("transcript")

FOOTER = "Recorded with torch 2.13.0 on 2026-07-14"
SOLUTION = '''"""Average a tensor over the ranks.

Every rank calls ``mean`` with its own tensor.

Check your answer with: workshop check 99_mean

The page is docs/lessons/99_mean.rst
"""


def mean(x):
    # TODO 1 of 1: sum, then divide.
    # [start answer 1]
    dist.all_reduce(x)
    return x / world_size
    # [end answer 1]
'''
ENTRY = """
[[exercise]]
name = "99_mean"
title = "A mean"
lesson = "99_mean"
minutes = 15
points = 2
hints = ["first", "second", "third"]
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A site of one page, with the real configuration and one exercise."""
    from workshop.skeleton import skeleton_text

    kept = ("_ext", "_static", "_inventories", "_templates", "figures/readable.py")
    gallery = ("src/common", "gallery")
    for name in ("conf.py", *gallery, *(f"docs/{name}" for name in kept)):
        source = ROOT / name
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    for package in ("workshop", "tools"):
        shutil.copytree(ROOT / package, tmp_path / package)
    for name, text in {
        "exercises/catalog.toml": ENTRY,
        "solutions/99_mean.py": SOLUTION,
        "exercises/99_mean.py": skeleton_text(SOLUTION),
        "docs/transcripts/catalog.toml": (
            '[[transcript]]\nname = "hello"\ncommand = "echo hi"\n'
        ),
        "docs/transcripts/hello.txt": f"$ echo hi\nhi\n{FOOTER}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def page(small: Path, builds: SphinxBuilds) -> Callable[[str], str]:
    """``page(text)``: its HTML, or an AssertionError with what Sphinx says."""

    def html_of(text: str) -> str:
        (small / "index.rst").write_text(f"Page\n====\n\n{text}\n")
        said = builds.build(small, small / "html")
        assert not said, said
        return (small / "html" / "index.html").read_text(encoding="utf-8")

    return html_of


# Transcripts


def test_a_transcript_shows_command_output_and_date(page):
    html = page(".. transcript:: hello")
    assert 'class="command highlight-console' in html
    assert FOOTER in html
    assert 'class="output highlight-text' in html
    assert "last verified with torch 2.13.0 on 2026-07-14" in html


@pytest.mark.full
def test_the_page_ends_with_its_oldest_recording(page, small):
    folder = small / "docs" / "transcripts"
    with (folder / "catalog.toml").open("a") as catalog:
        catalog.write('[[transcript]]\nname = "old"\ncommand = "echo ho"\n')
    old = FOOTER.replace("2026-07-14", "2025-01-02")
    (folder / "old.txt").write_text(f"$ echo ho\nho\n{old}\n")
    html = page(".. transcript:: hello\n\n.. transcript:: old\n")
    assert "the oldest was recorded with torch 2.13.0 on 2025-01-02" in html


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("hello", None, "hello is not recorded"),
        ("other", "", "is not in docs/transcripts/catalog.toml"),
        ("hello", "$ echo hi\nhi\n", "its last line is not"),
        ("hello", f"$ echo ho\nho\n{FOOTER}\n", "does not show 'echo hi'"),
    ],
)
def test_a_transcript_that_was_not_recorded_stops_the_build(
    page, small, name, text, words
):
    path = small / "docs" / "transcripts" / "hello.txt"
    if text is None:
        path.unlink()
    elif text:
        path.write_text(text)
    with pytest.raises(AssertionError, match=words):
        page(f".. transcript:: {name}")


def test_commands_are_told_from_output_that_looks_like_them():
    found = transcript.parse(
        f"$ make tour\n$ torchrun x\nhi\n$ echo a \\\n    b\na b\n{FOOTER}\n",
        ["make tour", "echo a \\\n    b"],
    )
    assert found.steps == [
        ("$ make tour", "$ torchrun x\nhi"),
        ("$ echo a \\\n    b", "a b"),
    ]


# Runs on a GPU

ON_A_GPU = ".. on-a-gpu:: 17_profile\n"
OF_A_CARD = (
    "$ python src/a.py 2\nfast\n$ python src/b.py\n"
    f"{FOOTER}, on NVIDIA H100 80GB HBM3, driver 580.65.06\n"
)


@pytest.fixture
def recorded_on_a_gpu(small):
    """``recorded_on_a_gpu(text)`` plants what the suite for GPUs would have left."""

    def plant(text: str) -> None:
        folder = small / "docs" / "transcripts" / "gpu"
        folder.mkdir()
        (folder / "17_profile.gpu.txt").write_text(text)

    return plant


def test_what_ran_on_a_gpu_is_a_fold_that_names_the_card(page, recorded_on_a_gpu):
    recorded_on_a_gpu(OF_A_CARD)
    html = page(ON_A_GPU)
    assert re.search(
        r'<details[^>]* open="open"[^>]*>\s*<summary[^>]*>On a GPU: NV', html
    )
    assert "On a GPU: NVIDIA H100 80GB HBM3</summary>" in html
    assert html.count('class="command highlight-console') == 2
    assert ", on NVIDIA H100 80GB HBM3, driver 580.65.06</p>" in html


@pytest.mark.full
def test_a_run_on_a_gpu_that_was_not_recorded_stops_the_build(page):
    with pytest.raises(AssertionError, match=r"17_profile\.gpu\.txt is missing: run"):
        page(ON_A_GPU)


@pytest.mark.full
def test_a_run_on_a_gpu_that_names_no_card_stops_the_build(page, recorded_on_a_gpu):
    recorded_on_a_gpu(f"$ python src/a.py\n{FOOTER}\n")
    with pytest.raises(AssertionError, match="its last line names no card"):
        page(ON_A_GPU)


# Exercises


def test_an_exercise_shows_statement_command_hints_and_answer(page):
    html = page(".. exercise:: 99_mean\n\n   Said by the page.\n")
    for words in (
        "Exercise: A mean",
        "15 min",
        "2 points",
        "Said by the page.",
        "Average a tensor over the ranks.",
        "workshop check 99_mean",
        "Hint 1",
        "Hint 3",
        "Solution",
    ):
        assert words in html, words
    assert "[start answer" not in html
    assert html.count("<details") == 5
    assert 'id="exercise-99-mean"' in html


def test_the_statement_leaves_out_what_the_page_says_anyway(small):
    statement = exercise.statement(small / "exercises" / "99_mean.py")
    assert statement.startswith("Average a tensor")
    assert "workshop check" not in statement
    assert "docs/lessons" not in statement


def test_a_page_can_refer_to_an_exercise(page):
    html = page("See :ref:`exercise-99_mean`.\n\n.. exercise:: 99_mean\n")
    assert 'href="#exercise-99-mean"' in html


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "words"),
    [("98_none", "is not an exercise"), ("mean", "is not the whole name")],
)
def test_an_unknown_exercise_stops_the_build(page, name, words):
    with pytest.raises(AssertionError, match=words):
        page(f".. exercise:: {name}")


@pytest.mark.full
def test_a_solution_with_a_broken_marker_stops_the_build(page, small):
    path = small / "solutions" / "99_mean.py"
    path.write_text(path.read_text().replace("# [end answer 1]", ""))
    with pytest.raises(AssertionError, match=r"no \[end answer\]"):
        page(".. exercise:: 99_mean")


# The rest


@pytest.mark.full
def test_a_picture_without_alternative_text_stops_the_build(page, small):
    (small / "x.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    with pytest.raises(AssertionError, match="has no :alt: text"):
        page(".. figure:: x.svg\n\n   Caption.\n")


@pytest.mark.full
def test_a_formula_becomes_mathml_and_a_broken_one_stops_the_build(page):
    html = page(r":math:`\frac{1}{p} \sum_r x_r`")
    assert "<math" in html and "<mfrac>" in html
    with pytest.raises(AssertionError, match="cannot convert the formula"):
        page(r":math:`\fraq{1}{2}`")


@pytest.mark.full
def test_an_unknown_name_stops_the_build(page):
    assert "docs.pytorch.org" in page(":func:`torch.distributed.all_reduce`")
    with pytest.raises(AssertionError, match="reference target not found"):
        page(":func:`torch.distributed.all_redduce`")


def test_a_difference_names_its_files_without_the_folder(page, small):
    (small / "src" / "one.py").write_text("a = 1\n")
    (small / "src" / "two.py").write_text("a = 2\n")
    html = page(".. literalinclude:: src/two.py\n   :diff: src/one.py\n")
    assert "+++ src/two.py" in html
    assert str(small) not in html


def test_a_listing_ends_where_its_code_ends_and_says_nothing_to_shellcheck(page, small):
    said = "  # shellcheck disable=SC2016  # for the task\n"
    code = f"# [start a]\nx=1\n# [start b]\n{said}y=2 # shellcheck\n\n\n# [end a]\n"
    (small / "a.sh").write_text(code)
    options = "   :start-after: [start a]\n   :end-before: [end a]\n"
    html = page(f".. literalinclude:: a.sh\n{options}")
    listing = html.split("<pre>")[1].split("</pre>")[0]
    assert re.sub("<.*?>", "", listing) == "x=1\ny=2 # shellcheck\n"


def test_boxes_that_ask_for_a_prediction_look_alike(page):
    html = page(
        ".. admonition:: Predict first\n   :class: tip\n\n   What?\n\n"
        ".. admonition:: Predict the order\n\n   Which?\n",
    )
    assert len(re.findall(r'<div class="[^"]*(?<=[ "])predict(?=[ "])', html)) == 2


# Figures to play with

STILL = ".. play:: ring-player\n   :ranks: 3\n\n   The still figure.\n"


def test_only_a_page_with_a_player_loads_its_scripts(page, small):
    (small / "docs" / "plain.rst").write_text(":orphan:\n\nPlain\n=====\n")
    html = page(STILL)
    assert '<ring-player class="play" ranks="3">' in html
    assert "The still figure." in html
    plain = (small / "html" / "docs" / "plain.html").read_text(encoding="utf-8")
    for file in ("js/play.js", "js/ring-player.js", "css/play.css"):
        assert html.count(file) == 1 and file not in plain, file


@pytest.mark.full
@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("ring-player", "ring-plyer", "there is no docs/_static/js/ring-plyer.js"),
        (":ranks:", ":rank:", "doesn't read the option 'rank'"),
    ],
)
def test_a_player_or_an_option_that_does_not_exist_stops_the_build(
    page, right, wrong, words
):
    with pytest.raises(AssertionError, match=words):
        page(STILL.replace(right, wrong))


# The first page


@pytest.mark.full
def test_the_clone_line_has_the_address_of_the_configuration(page, small):
    html = page(".. clone::")
    assert (
        "$ git clone" not in html
        and "Ask the person who published them" in " ".join(html.split())
    )
    with (small / "conf.py").open("a") as settings:
        settings.write('repository = "https://example.org/w.git"\n')
    html = re.sub(r"<[^>]+>", "", page(".. clone::"))
    assert "git clone https://example.org/w.git distributed-pytorch\n" in html
    assert html.index("$ make tour\n") < html.index("$ workshop next\n")


@pytest.mark.full
def test_pages_that_read_the_docs_does_not_build_say_how_to_make_a_book(page, small):
    with (small / "conf.py").open("a") as settings:
        settings.write('html_baseurl = ""\n')
    html = " ".join(page(".. books::").split())
    assert "make epub" in html and "_/downloads" not in html


def test_a_path_is_a_card_with_its_stations_hours_and_command(page, small):
    lesson = small / "docs" / "lessons" / "99_mean.rst"
    lesson.parent.mkdir(parents=True)
    lesson.write_text(
        ":orphan:\n\nThe mean\n========\n\n* **Tutorial:** 45 min\n\n"
        ".. exercise:: 99_mean\n"
    )
    with (small / "exercises" / "catalog.toml").open("a") as catalog:
        optional = ENTRY.replace("99_mean", "99_more", 1) + "optional = true\n"
        catalog.write(optional)
        catalog.write('[[path]]\nname = "short"\ntitle = "Brief"\npromise = "All."\n')
        catalog.write('lessons = ["99_mean"]\nexercises = ["99_mean"]\n')
    html = page(".. course-time::\n\n.. learning-paths::\n\n.. lesson-map::\n")
    plain = " ".join(re.sub(r"<[^>]+>", "", html).split())
    for words in (
        "1 lessons, 2 exercises : about 45 min of reading and 30 min of practice",
        "The mean (exercise: A mean )",
        "45 min reading, 15 min exercises. Follow it with workshop next --path short",
    ):
        assert words.replace(" :", ":").replace(" )", ")") in plain, plain
