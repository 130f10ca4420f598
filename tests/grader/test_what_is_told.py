"""What a message says of where a check ran, and what ranks are told and return."""

from __future__ import annotations

import pytest

from tests.grader.support import grade_code
from workshop.grader.verdicts.verdict import Kind

ONE_PROCESS = """
import pytest
from workshop.grader import expect

@pytest.mark.ranks({ranks}, init=False)
def test_answer(exercise, seed):
    \"\"\"The answer is 5.\"\"\"
    expect.equal(exercise.answer(), 5, "the answer")
"""
PLACES = """
import os, pytest
from workshop.grader import expect

NAMES = ("RANK", "LOCAL_RANK", "GROUP_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE")

@pytest.mark.ranks({ranks}, init=False)
def test_answer(exercise, rank):
    \"\"\"Each rank is told its place.\"\"\"
    place = [int(os.environ[name]) for name in NAMES]
    expect.equal(place, exercise.PLACES[rank], "the place")
"""
WRITES = """
import pytest
import torch.distributed as dist
from workshop.grader import expect, races

@pytest.mark.ranks({ranks})
def test_answer(exercise, rank, world_size, shared_dir):
    \"\"\"Rank 0 writes, and all wait.\"\"\"
    with races.slow_writes(shared_dir) as written:
        exercise.answer(shared_dir / "a.pt")
    there = races.complete(shared_dir / "a.pt")
    everyone = [None] * world_size
    dist.all_gather_object(everyone, sorted(written))
    expect.equal(everyone, [["a.pt"]] + [[]] * (world_size - 1), "what ranks wrote")
    expect.that(there, "too early")
"""
WRITE = """
import time, torch
import torch.distributed as dist

def answer(path):
    if dist.get_rank() == 0:
        torch.save({"a": torch.ones(3)}, path)
"""


def test_message_of_one_process_names_no_rank(engine, tmp_path):
    code = "def answer():\n    return 4\n"
    verdict = grade_code(engine, tmp_path, code, check=ONE_PROCESS, ranks=1)
    assert verdict.lines == [
        "wrong value: the answer",
        "  is 4, expected 5",
        "check, with seed 1: The answer is 5.",
    ]
    verdict = grade_code(engine, tmp_path, code, check=ONE_PROCESS, ranks=3)
    assert "  ranks 0, 1 and 2: is 4, expected 5" in verdict.lines
    assert verdict.lines[-1] == "check, on 3 ranks with seed 1: The answer is 5."


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        ("int", "torch.tensor(5)", "returned Tensor, expected int"),
        ("int | None", "torch.tensor([5])", "returned Tensor, expected int | None"),
        ("object", "torch.tensor(5)", "is a tensor, expected the int 5"),
        ("int", "5", ""),
    ],
)
def test_tensor_where_a_number_is_promised_is_wrong(
    engine, tmp_path, hint, value, words
):
    code = f"import torch\ndef answer() -> {hint}:\n    return {value}\n"
    verdict = grade_code(engine, tmp_path, code, check=ONE_PROCESS, ranks=1)
    assert verdict.kind is (Kind.WRONG_VALUE if words else Kind.RIGHT), verdict.message
    assert words in verdict.message


def test_more_than_two_ranks_are_on_several_nodes(engine, tmp_path):
    places = [[0, 0, 0, 2, 3], [1, 1, 0, 2, 3], [2, 0, 1, 1, 3]]
    code = f"PLACES = {places}\n"
    verdict = grade_code(engine, tmp_path, code, check=PLACES, ranks=3)
    assert verdict.kind is Kind.RIGHT, verdict.message
    code = "PLACES = [[0, 0, 0, 2, 2], [1, 1, 0, 2, 2]]\n"
    verdict = grade_code(engine, tmp_path, code, check=PLACES, ranks=2)
    assert verdict.kind is Kind.RIGHT, verdict.message


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        ("    dist.barrier()\n", ""),
        ("    time.sleep(2)\n", "too early"),
        ("    while not path.exists():\n        time.sleep(0.01)\n", "too early"),
        ("    torch.save({}, path)\n    dist.barrier()\n", "what ranks wrote"),
        ("    open(path, 'ab').close()\n    dist.barrier()\n", "what ranks wrote"),
    ],
)
def test_who_does_not_wait_for_the_writer_comes_too_early(
    engine, tmp_path, waiting, words
):
    verdict = grade_code(engine, tmp_path, WRITE + waiting, check=WRITES)
    assert verdict.kind is (Kind.WRONG_VALUE if words else Kind.RIGHT), verdict.message
    assert words in verdict.message
