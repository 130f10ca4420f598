"""What a card of lesson 19 leaves out of a recorded output, and what it must keep."""

import re
import sys

import pytest

from tests.docs.pages import ROOT, sources
from tools import transcripts
from tools.transcript_catalog import load_catalog, load_gallery

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
SYMPTOMS = {failure.symptom for failure in load_gallery().values()}
GALLERY = load_gallery()


@pytest.fixture
def gallery():
    """The extension, as Sphinx imports it."""
    import gallery

    return gallery


@pytest.mark.parametrize("name", GALLERY)
def test_card_keeps_what_the_failure_shows_and_the_learners_lines(gallery, name):
    text = transcripts.body(load_catalog()[f"19_{name}"])
    short = gallery.shortened(text)
    assert re.search(GALLERY[name].shows, short, re.M)
    own = re.findall(r'^.*File "src/gallery/.*', text, re.M)
    assert re.findall(r'^.*File "src/gallery/.*', short, re.M) == own
    assert "site-packages/torch" not in re.sub(r"^.*(Error|WARN|Warn).*", "", short)
    assert "ChildFailedError" not in short
    status = re.findall(r"^\[exit status \d+\]\Z", text.rstrip("\n"), re.M)
    assert short.splitlines()[-1:] == status or not status


def test_short_output_is_as_it_was_recorded(gallery):
    assert gallery.shortened("$ x\nrank 0: done\n[exit status 1]") == (
        "$ x\nrank 0: done\n[exit status 1]"
    )


def test_a_page_shows_the_failures_of_each_symptom():
    text = "".join(page.read_text(encoding="utf-8") for page in sources())
    shown = re.findall(r"^\.\. failures:: (.+)$", text, re.M)
    assert sorted(shown) == sorted(SYMPTOMS)
