"""Figures to play with: formulas equal to the programs', usable by everybody."""

from __future__ import annotations

import math
import random

import pytest

from tests.docs import played, playing
from tests.docs.pages import all_directives

RING = "docs/lessons/03_collectives/2_ring.html"
PREDICT = "docs/lessons/02_ranks/1_say_hello.html"
BUCKETS = "docs/lessons/05_ddp_spawn/3_gradients.html"
PIPELINE = "docs/lessons/13_pipeline_parallel/2_order.html"
GRID = "docs/lessons/16_two_dimensions/1_grid.html"
NAMES = [
    "bucket-timeline",
    "pipeline-player",
    "predict-first",
    "rank-grid",
    "ring-player",
]
RANDOM = 50  # inputs of each formula


@pytest.fixture(scope="module")
def blank(browser):
    """An empty page with all formulas."""
    with playing.blank_page(browser, *NAMES) as page:
        yield page


@pytest.fixture
def playing_with(browser, site):
    """``playing_with(name, page)``: a player on its page, closed in the end."""
    opened = []

    def open_one(name: str, page_name: str) -> playing.Player:
        opened.append(playing.Player(browser, site, name, page_name))
        return opened[-1]

    yield open_one
    for player in opened:
        player.close()


# The ring


def ring_inputs(seed: int):
    """Random (ranks, elements, steps that are done), any number of them or none."""
    dice = random.Random(seed)
    for _ in range(RANDOM):
        ranks = dice.randint(2, 8)
        # at least one element for each chunk, so that chunks have places of their own
        yield ranks, dice.randint(ranks, 100), dice.randint(0, 2 * (ranks - 1))


@pytest.mark.full
def test_the_ring_player_holds_and_sends_what_the_program_does(blank):
    calls = []
    for ranks, elements, steps in ring_inputs(3):
        last_step = 2 * (ranks - 1) - 1
        calls += [
            (played.ring_held, (ranks, steps)),
            (played.ring_sends, (ranks, min(steps, last_step))),
            (played.ring_sent, (ranks, elements, steps)),
        ]
    playing.compare(blank, calls)


@pytest.mark.nightly
def test_the_ring_player_can_be_stepped_read_and_printed(playing_with):
    player = playing_with("ring-player", RING)
    player.check_everywhere()
    assert "Start" in player.words
    assert "step 1 of 6" in player.press("Next step", "Enter")
    assert "step 2 of 6" in player.press("Step", "ArrowRight")
    assert "step 1 of 6" in player.press("Previous step", "Space")
    end = player.press("Step", "End")
    assert "whole sum" in end and "6/4" in end
    cells = player.frame.locator("td:not(.number)").all_inner_texts()
    assert cells == ["sum"] * 16
    assert player.press("Next step", "Enter") == end, "there is no step after the last"
    assert "Start" in player.press("Ranks", "ArrowRight")
    assert player.frame.locator("tr").count() == 1 + 5
    player.press("Ranks", "End")
    player.control("Step").fill("4")
    player.check_phone()


# Pipelines

SCHEDULES = "gpipe", "1f1b", "interleaved", "zb-h1"


def pipeline_inputs(seed: int, schedule: str):
    """Random (schedule, ranks, micro-batches, chunks) that the player may have."""
    dice = random.Random(seed)
    for _ in range(RANDOM):
        ranks, micro_batches = dice.randint(2, 16), dice.randint(1, 64)
        if schedule == "interleaved":
            rounds = -(-micro_batches // ranks)
            yield schedule, ranks, ranks * rounds, dice.randint(2, 4)
        else:
            yield schedule, ranks, micro_batches, 1


@pytest.mark.nightly
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_pipeline_player_counts_as_programs_and_pytorch_do(blank, schedule):
    dice, calls = random.Random(13), []
    for inputs in pipeline_inputs(13, schedule):
        rank = dice.randrange(inputs[1])
        calls += [
            (played.pipeline_order, (schedule, rank, *inputs[1:])),
            (played.pipeline_starts, inputs),
            (played.pipeline_bubble, inputs),
            (played.pipeline_peaks, inputs),
        ]
    playing.compare(blank, calls)


@pytest.mark.parametrize(
    ("schedule", "share"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("zb-h1", 3)]
)
def test_the_bubble_is_that_of_the_papers_when_there_is_enough_work(schedule, share):
    """(p - 1) / m; interleaved divides it by v, and zero bubble by 3."""
    for ranks, micro_batches in ((2, 2), (4, 8), (8, 16), (3, 9)):
        chunks = 2 if schedule == "interleaved" else 1
        bubble = played.pipeline_bubble(schedule, ranks, micro_batches, chunks)
        assert bubble == pytest.approx((ranks - 1) / micro_batches / share)


@pytest.mark.full
def test_the_pipeline_player_can_be_changed_read_and_printed(playing_with):
    player = playing_with("pipeline-player", PIPELINE)
    player.check_everywhere()
    assert "3/8 (37.5%)" in player.words and "at most 4 micro-batches" in player.words
    assert "GPipe" in player.press("Schedule", "ArrowUp")
    assert "3/8" in player.words and "at most 8 micro-batches" in player.words
    chunks = player.control("Stages per rank v")
    assert not chunks.is_visible()
    player.control("Schedule").select_option("zb-h1")
    assert "1/8 (12.5%)" in player.words
    player.control("Schedule").select_option("interleaved")
    assert "3/16" in player.words and chunks.is_visible()
    refused = "a multiple of 4 micro-batches: take 12 instead of 9"
    assert refused in player.press("Micro-batches m", "ArrowRight")
    assert player.frame.locator("table").count() == 0, "there is nothing to show"


@pytest.mark.nightly
def test_the_pipeline_player_goes_to_16_ranks_and_64_micro_batches(playing_with):
    player = playing_with("pipeline-player", PIPELINE)
    for label in ("Ranks p", "Micro-batches m"):
        player.press(label, "End")
    assert "16 ranks and 64 micro-batches" in player.words and "15/64" in player.words
    player.control("Schedule").select_option("interleaved")
    assert "4" in player.control("Stages per rank v").get_attribute("max")
    said = player.press("Stages per rank v", "End")
    assert "15/256 (5.9%)" in said
    lanes = player.frame.locator(".lane").all()
    assert len(lanes) == 16
    assert lanes[0].locator("span").count() == 2 * 64 * 4
    player.check_phone()
    assert not player.errors


# Meshes


@pytest.mark.full
def test_the_grid_has_the_groups_of_a_device_mesh(blank):
    dice, calls = random.Random(16), []
    for _ in range(RANDOM):
        sizes = [dice.randint(1, 4) for _ in range(dice.randint(1, 3))]
        rank = dice.randrange(math.prod(sizes))
        calls.append((played.mesh_groups, (sizes, rank)))
    playing.compare(blank, calls)


@pytest.mark.full
def test_the_grid_can_be_walked_read_and_printed(playing_with):
    player = playing_with("rank-grid", GRID)
    player.check_everywhere()
    assert "Rank 6 is" in player.words
    assert "tensor group is ranks 4, 5, 6 and 7, within node 1" in player.words
    assert "data group is ranks 2 and 6, across nodes 0 and 1" in player.words
    assert "Rank 7 is" in player.press("rank 6", "ArrowRight")
    assert player.frame.locator("label.green").inner_text().split("\n") == [
        "rank 3",
        "data",
    ]
    player.press("Ranks per node", "End")
    assert "data group is ranks 3 and 7, within node 0" in player.words
    player.frame.get_by_text("rank 1", exact=True).hover()
    assert "Rank 1 is" in player.words


# Predictions


@pytest.mark.full
def test_a_prediction_is_right_as_far_as_the_page_allows(blank):
    dice, calls = random.Random(2), []
    for _ in range(RANDOM):
        answer, within = dice.choice([7, 23, 1.5, -4, 0]), dice.choice([0, 0.05, 0.5])
        prediction = answer * dice.choice([0.4, 0.5, 0.96, 1, 1.04, 1.5, 1.6])
        calls.append((played.is_right, (prediction, answer, within)))
    assert len({played.is_right(*inputs) for _, inputs in calls}) == 2
    playing.compare(blank, calls)


@pytest.mark.full
def test_a_prediction_is_asked_for_before_the_answer_opens(playing_with):
    player = playing_with("predict-first", PREDICT)
    player.check_everywhere()
    label = "The rank of local rank 1 on node rank 2"
    answer = player.page.locator(".admonition:has(predict-first) + details").first
    is_open = "(answer) => answer.open"
    answer.evaluate("(answer) => { answer.open = false; }")
    answer.locator("> summary").click()
    assert not answer.evaluate(is_open) and "Predict first" in player.words
    answer.locator("> summary").click()
    assert answer.evaluate(is_open), "a second click opens it without a number"
    answer.evaluate("(answer) => { answer.open = false; }")
    assert "Type a number" in player.press(label, "Enter")
    assert not answer.evaluate(is_open)
    player.control(label).fill("9")
    assert "You predicted 9, but it's 7" in player.press(label, "Enter")
    assert answer.evaluate(is_open)
    player.control(label).fill("7")
    assert "7 is right" in player.press("Compare with the answer", "Space")


def test_every_question_for_a_number_has_its_answer_in_the_next_box():
    asked = [one for one in all_directives("play") if one.argument == "predict-first"]
    assert asked
    for ask in asked:
        lines = ask.page.read_text(encoding="utf-8").splitlines()[ask.line :]
        boxes = [line.strip() for line in lines if ".. admonition::" in line]
        assert boxes[0] == ".. admonition:: Answer", f"{ask.place}: no answer follows"


# Buckets


@pytest.mark.full
def test_the_timeline_has_the_buckets_that_pytorch_lays_out(blank):
    dice, calls = random.Random(5), []
    for _ in range(RANDOM):
        size = 4 * dice.randint(1, 1000)
        cap = dice.choice([size, size - 1, size + 1, dice.randint(1, 20_000)])
        inputs = dice.randint(1, 12), size, cap
        link = dice.uniform(0, 9), dice.uniform(0, 9), dice.uniform(100, 5000)
        calls += [
            (played.bucket_layers, inputs),
            (played.bucket_times, (*inputs, *link)),
        ]
    playing.compare(blank, calls)


@pytest.mark.full
def test_the_timeline_of_buckets_can_be_changed_read_and_printed(playing_with):
    player = playing_with("bucket-timeline", BUCKETS)
    player.check_everywhere()
    bars = player.frame.locator(".orange")
    assert "2 MiB: 3 all-reduces" in player.words and bars.count() == 3
    assert "averaged after 33.1 ms" in player.words
    one = player.press("Bucket size, MiB", "End")
    assert "one all-reduce, 7.3 ms in total, of which 0 ms overlap" in one
    assert "averaged after 37.3 ms" in one
    costly = player.press("Fixed cost, ms", "End")
    assert "averaged after 46.3 ms" in costly
    assert "6 all-reduces" in player.press("Bucket size, MiB", "Home")
    assert "averaged after 71.3 ms" in player.words, "small buckets lose now"
