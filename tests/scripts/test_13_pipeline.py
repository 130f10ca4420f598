"""src/13_pipeline_by_hand.py and src/13_pipeline.py against one process."""

import argparse
import json
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import pytest

from common.byte_gpt import ByteGPT, Sizes
from common.distributed import BadInput
from common.parallel.pipeline import (
    SCHEDULES,
    Action,
    bubble,
    cut,
    gpipe,
    most_live,
    one_f_one_b,
    slots,
)
from tests.in_ranks import assert_right, every_check_in
from tests.scripts.trainings import script, sentence, torchrun

check_micro_batches = import_module("13_pipeline").check_micro_batches
name_layers = import_module("instruments.13_cost").name_layers

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[1] / "src"


@pytest.mark.nightly
@every_check_in(HERE / "ranks_13_pipeline.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


# Schedules, without any ranks


@pytest.mark.parametrize("name", SCHEDULES)
def test_bubble_and_live_micro_batches_for_many_p_and_m(name):
    for p in range(1, 7):
        for m in range(1, 13):
            orders = [list(SCHEDULES[name](rank, p, m)) for rank in range(p)]
            assert bubble(orders) == Fraction(p - 1, m)
            for rank, order in enumerate(orders):
                assert len(order) == len(set(order)) == 2 * m
                live = m if name == "gpipe" else min(m, p - rank)
                assert most_live(order) == live


def test_orders_as_the_papers_draw_them():
    """Narayanan et al., 2021, figure 4, the first 8 actions of device 1 of 4."""
    letters = [f"{what[0]}{k + 1}" for what, k in one_f_one_b(0, 4, 8)]
    assert " ".join(letters[:8]) == "f1 f2 f3 f4 b1 f5 b2 f6"
    last = [f"{what[0]}{k + 1}" for what, k in one_f_one_b(3, 4, 8)]
    assert " ".join(last[:6]) == "f1 b1 f2 b2 f3 b3"
    assert [what for what, _ in gpipe(2, 4, 3)] == ["forward"] * 3 + ["backward"] * 3


def test_both_schedules_are_equally_long():
    for p, m in ((2, 2), (3, 5), (4, 8)):
        lengths = {
            max(
                slot
                for mine in slots([list(s(r, p, m)) for r in range(p)])
                for slot in mine.values()
            )
            for s in SCHEDULES.values()
        }
        assert lengths == {2 * (m + p - 1) - 1}


def test_orders_that_can_never_end_are_refused():
    forward, backward = Action("forward", 0), Action("backward", 0)
    with pytest.raises(ValueError, match="rank 0 for backward 0, rank 1 for forward 0"):
        slots([[backward, forward], [forward, backward]])


# Stages


def model(blocks, width=12):
    return ByteGPT(Sizes(width=width, heads=3, blocks=blocks, context=5))


@pytest.mark.parametrize(
    ("stages", "lengths"), [(2, [3, 3]), (3, [2, 2, 2]), (4, [2, 1, 1, 2])]
)
def test_default_model_is_cut_into_stages_of_equal_work(stages, lengths):
    whole = ByteGPT(Sizes())
    spans = cut(whole, stages)
    assert [len(span) for span in spans] == lengths
    assert [number for span in spans for number in span] == list(range(6))


def test_more_stages_than_blocks_are_refused():
    with pytest.raises(BadInput, match="--blocks 4 cannot be cut into 7 stages"):
        cut(model(4), 7)


def test_layers_in_words():
    assert name_layers(range(0, 2), 6) == "embedding, block 1"
    assert name_layers(range(2, 4), 6) == "blocks 2 to 3"
    assert name_layers(range(5, 6), 6) == "head"


# The commands

SMALL = ["--width", "12", "--heads", "3", "--context", "8", "--batch-size", "8"]


def numbers(path):
    return json.loads(path.read_text())


@pytest.mark.nightly
def test_scripts_have_the_losses_of_one_device(tmp_path):
    done = script(tmp_path, "13_train_gpt.py", 3, *SMALL, "--metrics", "one.json")
    assert done.returncode == 0, done.stderr
    for name, ranks, options in (
        ("13_pipeline_by_hand.py", 3, ["--micro-batches", 3]),
        ("13_pipeline.py", 2, ["--schedule", "interleaved"]),
    ):
        more = ["--micro-batches", 8, *options, "--metrics", "many.json"]
        done = torchrun(tmp_path, ranks, SRC / name, 3, *SMALL, *more)
        assert done.returncode == 0, done.stderr
        tests = [
            json.loads((tmp_path / f).read_text()) for f in ("one.json", "many.json")
        ]
        assert abs(tests[0]["test_loss"] - tests[1]["test_loss"]) < 1e-4
        assert tests[1]["world_size"] == ranks


@pytest.mark.parametrize(
    ("name", "ranks", "options"),
    [
        ("13_pipeline_by_hand.py", 3, ["--micro-batches", 3]),
        ("13_pipeline.py", 2, ["--schedule", "interleaved"]),
    ],
)
def test_cost_of_each_rank_is_what_the_formula_says(tmp_path, name, ranks, options):
    command = [SRC / "instruments/13_cost.py", SRC / name, 3, *SMALL, *options]
    done = torchrun(tmp_path, ranks, *command)
    assert done.returncode == 0, done.stderr
    assert "they differ" not in done.stdout, done.stdout
    for quantity in ("parameters", "activations", "sent in a step"):
        assert done.stdout.count(f"\n{quantity} ") == ranks, done.stdout


def test_timeline_of_three_ranks(tmp_path):
    run = SRC / "13_pipeline_by_hand.py", 3, *SMALL, "--micro-batches", 3
    program = SRC / "instruments/13_timeline.py", "--json", "t.json"
    done = torchrun(tmp_path, 3, *program, *run)
    assert done.returncode == 0, done.stderr
    assert "rank 0, micro-batches held 3: F0 F1 F2 B0 B1 B2\n" in done.stdout
    assert "Idle over useful slots 2/3, (p-1)/m = 2/3\n" in done.stdout
    timeline = json.loads((tmp_path / "t.json").read_text())
    assert timeline["schedule"] == "1f1b"
    for rank, events in enumerate(timeline["ranks"]):
        order = [Action(event["what"], event["micro_batch"]) for event in events]
        assert order == list(one_f_one_b(rank, 3, 3))
        times = [moment for e in events for moment in (e["begin"], e["end"])]
        assert times == sorted(times) and times[0] >= 0


@pytest.mark.parametrize(
    ("schedule", "batch_size", "micro_batches", "words"),
    [
        ("gpipe", 16, 3, "--batch-size 16 cannot be divided among 3 micro-batches"),
        ("1f1b", 16, 2, "--micro-batches 2 is fewer than the 3 stages"),
        ("interleaved", 14, 14, "into 4 equal rounds, .* choose a multiple of 3"),
    ],
)
def test_what_torchs_schedules_cannot_do_is_refused(
    schedule, batch_size, micro_batches, words
):
    args = argparse.Namespace(
        schedule=schedule, batch_size=batch_size, micro_batches=micro_batches
    )
    with pytest.raises(BadInput, match=words):
        check_micro_batches(args, 3)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("13_pipeline_by_hand.py", ["--blocks", 1], "--blocks 1 cannot be cut into 3"),
        ("13_pipeline.py", ["--micro-batches", 3], "--batch-size 8 cannot"),
    ],
)
def test_what_cannot_be_divided_is_one_sentence(name, options, words, tmp_path):
    done = torchrun(tmp_path, 3, SRC / name, 1, *SMALL, *options)
    said = [line for line in done.stderr.splitlines() if ": error: " in line]
    assert len(said) == 1 and words in said[0], done.stderr
    assert done.returncode != 0


def test_more_micro_batches_than_pieces_are_refused_before_ranks_meet(tmp_path):
    options = [*SMALL, "--micro-batches", 9]
    said = sentence(script(tmp_path, "13_pipeline_by_hand.py", 1, *options))
    assert "--micro-batches 9 is more than --batch-size 8" in said
