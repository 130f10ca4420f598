"""What a card of lesson 19 leaves out of a recorded output, and what it must keep."""

import re
import sys
from types import SimpleNamespace

import pytest

from tests.docs.pages import ROOT, lesson_source, sources
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
    own = re.findall(r'^.*File "gallery/.*', text, re.M)
    assert re.findall(r'^.*File "gallery/.*', short, re.M) == own
    assert "site-packages/torch" not in re.sub(r"^.*(Error|WARN|Warn).*", "", short)
    assert "ChildFailedError" not in short
    status = re.findall(r"^\[exit status \d+\]\Z", text.rstrip("\n"), re.M)
    assert short.splitlines()[-1:] == status or not status


@pytest.mark.parametrize("name", GALLERY)
def test_card_says_why_a_rank_prints_nothing(gallery, name):
    """One that a launcher ended, or whose node is off, has no line of its own."""
    text = gallery.shortened(transcripts.body(load_catalog()[f"19_{name}"]))
    marked = set(re.findall(r"^\[rank(\d)\]:", text, re.M))
    told = marked | set(re.findall(r"^rank (\d): torch", text, re.M))
    ended = "Terminating process" in text
    if re.search("=2 |two_nodes", GALLERY[name].command) and marked:
        ended = told != {"0", "1"}
    assert GALLERY[name].note or not ended
    card = gallery.FailuresDirective._text(
        SimpleNamespace(_difference=str), GALLERY[name]
    )
    assert gallery.markup(GALLERY[name].note) in card


def test_card_says_what_is_only_played():
    assert "only plays its own" in GALLERY["clock_behind"].note


def test_short_output_is_as_it_was_recorded(gallery):
    assert gallery.shortened("$ x\nrank 0: done\n[exit status 1]") == (
        "$ x\nrank 0: done\n[exit status 1]"
    )


def test_a_page_shows_the_failures_of_each_symptom():
    text = "".join(page.read_text(encoding="utf-8") for page in sources())
    shown = re.findall(r"^\.\. failures:: (.+)$", text, re.M)
    assert sorted(shown) == sorted(SYMPTOMS)


# The row of a page's Common mistakes whose cause the gallery shows: its first words.
ROWS = {
    "01_one_device": {"Everything is slow": "too_many_threads"},
    "02_ranks": {
        "On two nodes, each waits": "nobody_listens",
        "``EADDRINUSE``": "port_in_use",
        "In a batch script": "world_size_typed_in",
    },
    "03_collectives": {"SIGABRT on one rank": "unequal_shapes"},
    "04_data_parallel": {"A model with BatchNorm": "local_batch_norm"},
    "05_ddp_spawn": {"``Expected to have finished": "skipped_branch"},
    "06_checkpoints": {"Rank 0 hangs in a barrier": "only_rank_0_reduces"},
    "07_torchrun": {
        "Restarts end with ``Connection refused``": "stale_store",
        "``error_file: <N/A>``": "killed_rank",
    },
    "08_many_nodes": {"``timed out ... while trying": "dropped_port"},
    "09_slurm": {"Two jobs train fine alone": "port_in_use"},
    "10_pbs": {"Two jobs on one host": "port_in_use"},
    "11_mpi_and_containers": {"``unable to allocate shared": "full_dev_shm"},
    "12_model_parallel": {"Both ranks block forever": "send_send"},
    "13_pipeline_parallel": {"GPipe runs, 1F1B hangs": "send_send"},
    "15_sharded_data_parallel": {"The evaluation hangs": "only_rank_0_reduces"},
    "17_speed": {"Rank 0's trace says": "straggler"},
    "18_scaling": {"More ranks on one machine": "too_many_threads"},
    "21_long_sequences": {
        "The loss differs from that of one device": "local_positions",
        "Gradients of queries are right": "keys_without_gradients",
    },
    "22_experts": {
        "All ranks have the same experts": "averaged_experts",
        "The run hangs when a rank has no token": "skipped_all_to_all",
    },
    "23_loose_coupling": {
        "A rank that was started again": "joined_without_momentum",
    },
    "20_capstone": {"``the disturbed run started from scratch``": "node_off"},
}


@pytest.mark.parametrize("page", ROWS)
def test_row_of_a_common_mistake_links_to_the_failure_that_shows_it(page):
    text = lesson_source(page)
    rows = re.split(r"\n +\* - ", text.partition("\nCommon mistakes\n")[2])
    for words, name in ROWS[page].items():
        (row,) = [row for row in rows if row.startswith(words)]
        assert f"<failure-{name}>" in row, f"{page}: {words!r} links to no {name}"
