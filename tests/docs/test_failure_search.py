"""The search of lesson 19: a pasted line finds its card, by keyboard, on a phone."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.docs import playing
from tests.docs.pages import ROOT
from tools import transcripts
from tools.transcript_catalog import load_catalog, load_gallery
from workshop.common_mistakes import load_mistakes, plain
from workshop.diagnose.words import look_up

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE = "docs/lessons/19_when_it_breaks/1_find.html"
GALLERY = load_gallery()
FOUND = """(player) => [...player.querySelectorAll(".found a")].map(
  (link) => link.hash.replace(/^#(failure-|cause-)?/, "").replaceAll("-", "_"))"""
# Lines put into the field one after the other: what is found, and what is said of it.
EACH = f"""(player, lines) => {{
  const field = player.querySelector("input");
  return lines.map((line) => {{
    field.value = line;
    field.dispatchEvent(new Event("input"));
    return [({FOUND})(player), player.querySelector(".state").innerText];
  }});
}}"""


@pytest.fixture(scope="module")
def search(browser, site):
    """The search on its page, loaded once."""
    player = playing.Player(browser, site, "failure-search", PAGE)
    yield player
    player.close()


def found(search, line: str) -> list[str]:
    """The names of the failures that the search shows for a line, best first."""
    search.control("A line of your log, or what you see").fill(line)
    return search.frame.evaluate(FOUND)


def found_of_each(search, lines: list[str]) -> list[tuple[list[str], str]]:
    """The same for many lines, and the words of each: a tenth of the work of typing."""
    return [(names, words) for names, words in search.frame.evaluate(EACH, lines)]


@pytest.mark.full
def test_lines_that_are_typed_and_lines_that_are_put_there_find_the_same(search):
    lines = ["EADDRINUSE", "zzz qqq", "RuntimeError: Connection closed by peer [x]:1"]
    typed = [(found(search, line), search.words) for line in lines]
    assert found_of_each(search, lines) == typed


def test_everybody_can_use_it(search):
    found(search, "time-out")
    search.check_everywhere()


def test_the_longest_name_of_a_failure_stays_in_the_box_on_a_phone(search):
    longest = "torch.distributed.elastic.multiprocessing.api.SignalException: Process"
    assert found(search, longest)
    search.check_phone()


def test_each_failure_is_a_card_with_its_name_as_address(search):
    cards = search.page.locator("details.failure")
    ids = cards.evaluate_all("(cards) => cards.map((card) => card.id)")
    assert set(ids) == {f"failure-{name.replace('_', '-')}" for name in GALLERY}
    assert search.page.evaluate("document.querySelectorAll('[id]').length") == len(
        search.page.evaluate(
            "[...new Set([...document.querySelectorAll('[id]')].map((e) => e.id))]"
        )
    )


def test_expressions_mean_the_same_in_the_browser(search):
    """Each expression of the catalog on each recorded line."""
    messages = [m for failure in GALLERY.values() for m in failure.messages]
    recorded = [transcripts.body(load_catalog()[f"19_{name}"]) for name in GALLERY]
    lines = sorted(set("".join(recorded).splitlines()))
    here = [[m for m in messages if re.search(m, line)] for line in lines]
    there = search.page.evaluate(
        "([lines, all]) => lines.map((line) => play.formulas.matching(line, all))",
        [lines, messages],
    )
    assert any(here) and here == there


ERROR = re.compile(r"(\[rank\d\]: )?[\w.]*(Error|Exception)\b: .|.*(ERROR|\[E\d{4}) ")
LATER = "That only says that "  # another rank, or a process, has failed


@pytest.mark.parametrize("name", [n for n, one in GALLERY.items() if one.messages])
def test_every_error_of_its_recording_finds_a_failure(search, name):
    """Or is said to be a consequence: at least one of its lines is none."""
    text = transcripts.body(load_catalog()[f"19_{name}"])
    known = [m for m in GALLERY[name].messages if re.search(m, text, re.M)]
    lines = {line for line in text.splitlines() if ERROR.match(line)}
    lines |= {line for line in text.splitlines() if re.search(known[0], line)}
    lines = sorted(lines)
    each = zip(lines, found_of_each(search, lines), strict=True)
    finds = {line: names or words for line, (names, words) in each}
    own = [line for line, names in finds.items() if name in names]
    rest = {line: names for line, names in finds.items() if line not in own}
    assert own and all(str(names).startswith(LATER) for names in rest.values()), rest


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (
            "RuntimeError: CUDA error: device-side assert triggered",
            "device-side assert",
        ),
        ("CUDA error: invalid device ordinal", "invalid device ordinal"),
        (
            "ncclInvalidUsage: Duplicate GPU detected : rank 1 and rank 0",
            "Duplicate GPU",
        ),
    ],
)
def test_line_of_a_table_is_found_first_and_opened(search, line, row):
    found(search, line)
    link = search.frame.locator("a").first
    assert row in link.inner_text()
    link.click()
    opened = search.page.locator(link.get_attribute("href"))
    assert opened.is_visible() and row in opened.inner_text()


CAUSES = tomllib.loads((ROOT / "workshop/diagnose/causes.toml").read_text("utf-8"))
# what launchers and loggers write before a line, with a rank, a time, an address
BEFORE = ("", "[rank3]: ", "3: ", "2026-11-26 10:00:00,123 - train - ERROR - ", "n1: ")


def shown_for(cause) -> set[str]:
    return {cause["name"], *cause.get("gallery", [])}


@pytest.mark.parametrize(
    "cause",
    [c for c in CAUSES["cause"] if c.get("messages") or c.get("maybe")],
    ids=lambda cause: cause["name"],
)
def test_every_known_line_of_a_cause_leads_to_it(search, cause):
    """To its row or its cards; first, if the line is certain."""
    lines = [before + line for line in cause["lines"] for before in BEFORE]
    each = zip(lines, found_of_each(search, lines), strict=True)
    for line, (names, words) in each:
        if cause.get("weight") == 1 and words.startswith(LATER):
            continue
        assert shown_for(cause) & set(names), (line, names)
        assert words.endswith("that message.")


def test_everything_that_the_search_may_name_is_on_the_page(search):
    """Each cause that has messages has a card or a row."""
    missing = search.page.evaluate(
        """() => knowledge.rules.flatMap(([, shown]) => shown)
        .map((number) => knowledge.places[number][0])
        .filter((id) => !document.getElementById(id))"""
    )
    assert missing == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            "[rank0]:[E1126 10:00:00.123 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog "
            "caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE",
            "collective_timeout",
        ),
        (
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
            "too_few_nodes",
        ),
        ("Expected to mark a variable ready only once", "marked_ready_twice"),
        ("Default process group has not been initialized", "no_process_group"),
        ("srun: error: node7: task 3: Out Of Memory", "killed_rank"),
        (
            "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in "
            "name resolution>",
            "no_internet",
        ),
        (
            "WARN Call to ibv_reg_mr failed, Cannot allocate memory",
            "locked_memory",
        ),
        (
            "[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space "
            "left on device",
            "full_dev_shm",
        ),
        (
            "slurmstepd: error: execve(): /tmp/slurmd/job89/slurm_script: No such file "
            "or directory",
            "job_script_lost",
        ),
        ("TypeError: can't pickle Convolution objects", "unpicklable_argument"),
        (
            "(Worker pid=5) RuntimeError: Expected tensor for 'out' to have the same "
            "device as tensor for argument #2 'mat1'; but device 1 does not equal 3",
            "other_device",
        ),
        (
            "slurmstepd: error: pyxis: container start failed with error code: 1",
            "container_start",
        ),
    ],
)
def test_line_from_elsewhere_finds_its_cause_first(search, line, name):
    assert found(search, line)[:1] == [name]


PUBLIC = tomllib.loads((ROOT / "tests/docs/public_lines.toml").read_text("utf-8"))
SAYS = {
    "later": LATER,
    "healthy": "Healthy runs print this line, too.",
    "command": "No failure here has this line. workshop diagnose LOG",
    "own": "An error of the program itself.",
    "near": "No failure here has this line. ",
}


@pytest.fixture(scope="module")
def found_of_public(search):
    """What the search says of each public line: all are put there at one time."""
    lines = [known["line"] for known in PUBLIC["line"]]
    return dict(zip(lines, found_of_each(search, lines), strict=True))


@pytest.mark.parametrize("known", PUBLIC["line"], ids=lambda known: known["source"])
def test_line_of_a_public_thread_finds_its_cause_or_what_to_do(found_of_public, known):
    names, words = found_of_public[known["line"]]
    if known.get("says") != "near":  # which shows what has its words
        assert names[:1] == ([known["finds"]] if known["finds"] else [])
    assert known["finds"] or words.startswith(SAYS[known["says"]])


WORDS = (
    *("The port is taken", "one rank has more batches", "every epoch has one order"),
    *("the job is stuck in a barrier", "zzz qqq", "a(b[c*", "OOM on one rank"),
)


def test_command_and_the_search_answer_alike(search):
    """workshop diagnose --words, and the search: on public lines and on words."""
    lines = [known["line"] for known in PUBLIC["line"]] + [*WORDS]
    answers = [look_up(line, ROOT) for line in lines]
    here = [[[place.id for place in one.cards], one.says] for one in answers]
    there = search.page.evaluate(
        """(lines) => lines.map((line) => knownLines.lookUp(line))
        .map(({ places, says }) => [places.map(({ id }) => id), says])""",
        lines,
    )
    assert here == there


@pytest.mark.parametrize("mistake", load_mistakes(), ids=lambda one: one.row)
def test_row_of_a_lesson_is_found_by_its_own_words(search, mistake):
    """Or by the error line in them, which leads to what the row names."""
    symptom = plain(mistake.symptom).replace("`", "")
    lines = [symptom, *re.findall(r"``(.+?)``", mistake.symptom)]
    names = {name for names, _ in found_of_each(search, lines) for name in names}
    known = next((c for c in CAUSES["cause"] if c["name"] == mistake.known), None)
    wanted = {mistake.row.replace("-", "_"), mistake.known}
    wanted |= set(known.get("gallery", [])) if known else set()
    assert wanted & names, (symptom, names)


def test_result_in_a_lesson_leads_to_its_row(search):
    found(search, "grad can be implicitly created only for scalar outputs")
    address = search.frame.locator(".found a").first.evaluate("(link) => link.href")
    page, _, row = address.removeprefix("file://").partition("#")
    assert "04_data_parallel/2_what_it_costs.html" in page
    assert f'id="{row}"' in Path(page).read_text(encoding="utf-8")


def test_damaged_file_and_ranks_out_of_step_are_both_shown(search):
    """Pickle's words alone don't tell one from the other."""
    names = found(search, "_pickle.UnpicklingError: invalid load key, '\\xc3'.")
    assert {"cut_file", "objects_out_of_step"} <= set(names)


def test_unknown_error_sends_its_reader_to_the_command(search):
    assert found(search, "FooError: qqq zzz") == []
    assert "workshop diagnose LOG" in search.words


def test_line_of_a_healthy_run_is_told_as_one(search):
    line = "[W1126 10:00:00.123 socket.cpp:752] [c10d] qqq zzz"
    assert found(search, line) == []
    assert search.words == "Healthy runs print this line, too."


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("[rank3]: ... message: address already in use", "port_in_use"),
        ("The port is taken", "port_in_use"),
        ("one rank has more batches", "unequal_batches"),
        ("environment variable WORLD_SIZE expected, but not set", "environment_lost"),
    ],
)
def test_message_or_words_find_the_failure_first(search, line, name):
    assert found(search, line)[:1] == [name]
    kind = "that message" if ":" in line or "," in line else "these words"
    assert search.words.endswith(f"{kind}.")


def test_unknown_words_get_a_sentence_and_no_list(search):
    assert found(search, "zzz qqq") == []
    assert search.words == "No failure here has these words. Try other words."


@pytest.mark.parametrize(
    "reason",
    [
        "Connection closed by peer",
        "SIGTERM",
        "NCCL communicator was aborted.",
        "Failed to recv, got 0 bytes",
        "Failed to execute operation Connect from rank 1, retcode 6",
    ],
)
def test_consequence_of_another_ranks_end_is_no_failure_of_its_own(search, reason):
    assert found(search, f"RuntimeError: {reason} [127.0.0.1]:2997") == []
    assert search.words.startswith("That only says that another rank has left.")


def test_expression_characters_are_plain_text(search):
    assert isinstance(found(search, "a(b[c*"), list)
    assert not search.errors


def test_enter_opens_the_first_card_and_its_address_opens_it_again(search):
    page = search.page
    card = page.locator("#failure-port-in-use")
    card.evaluate("(card) => (card.open = false)")
    found(search, "EADDRINUSE")
    search.press("A line of your log, or what you see", "Enter")
    assert card.evaluate("(card) => card.open")
    assert page.url.endswith("#failure-port-in-use")
    page.reload()
    page.wait_for_selector("failure-search[data-ready]")
    assert card.evaluate("(card) => card.open")


def test_card_that_is_opened_by_hand_gives_its_address(search):
    summary = search.page.locator("#failure-send-send > summary")
    summary.click()
    assert search.page.url.endswith("#failure-send-send")


# What the page says


def test_a_rank_waits_for_half_an_hour_by_default():
    from torch.distributed.constants import default_pg_timeout

    assert default_pg_timeout == timedelta(milliseconds=1_800_000)


def test_two_ranks_of_the_first_card_wait_at_two_lines():
    text = transcripts.body(load_catalog()["19_only_rank_0_reduces"])
    lines = re.findall(r'^\[rank(\d)\]:   File "gallery/.* line (\d+)', text, re.M)
    assert len(lines) == 2 and len(set(lines)) == 2
    assert len({line for _, line in lines}) == 2
