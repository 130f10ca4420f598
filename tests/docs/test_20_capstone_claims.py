"""What docs/lessons/20_capstone states."""

import difflib
import re
import sys
from importlib import import_module
from urllib.parse import parse_qsl

import pytest
import torch

from tests.docs.pages import ROOT, lesson_source

sys.path.insert(0, str(ROOT / "src"))

from common.byte_gpt import ByteGPT, Sizes, batch_of_step, load_text, next_byte_loss
from common.cost.counting import model_parameters
from common.cost.formulas import Cluster, Layout, Model, step_seconds
from common.parallel.mesh import Grid, plan_grid
from workshop.capstone.properties import ALLOWED, PROPERTIES, TOLERANCE

PAGE = lesson_source("20_capstone")
FRAME = (ROOT / "job_scripts/capstone.sbatch").read_text("utf-8")
SOLUTION = ROOT / "solutions" / "capstone"
PLAN = dict(
    re.findall(r"(?m)^(\w+) = ([\d_]+)", (SOLUTION / "capstone.toml").read_text())
)
SIZES = dict(re.findall(r"--(\w+)(?:-size)? (\d+)", FRAME[FRAME.index("model=(") :]))
GPT = Sizes(**{n: int(SIZES[n]) for n in ("width", "heads", "blocks", "context")})
BATCH = int(re.search(r"--batch-size (\d+)", FRAME)[1])


def test_table_has_the_properties_of_the_command_with_their_points():
    rows = re.findall(r"   \* - (.+)\n     - (\d+)\n", PAGE)
    points = [(name, str(number)) for name, (number, _) in PROPERTIES.items()]
    assert rows == points
    assert sum(number for number, _ in PROPERTIES.values()) == 100
    assert f"within {TOLERANCE}" in PAGE and f"{ALLOWED:.0%} off" in PAGE.replace(
        " %", "%"
    )


def test_solution_differs_from_the_frame_only_at_the_marks():
    for name in ("capstone.sbatch", "capstone.pbs", "capstone.toml"):
        text = (ROOT / "job_scripts" / name).read_text()
        frame = [line for line in text.splitlines() if not line.startswith("# [")]
        solved = (SOLUTION / name).read_text().splitlines()
        for kind, start, end, *_ in difflib.SequenceMatcher(
            None, frame, solved
        ).get_opcodes():
            about = "\n".join(frame[max(0, start - 1) : end])
            assert kind == "equal" or "TODO" in about or "${PLAN:-" in about, about
        assert not [line for line in solved if "TODO " in line and "each" not in line]


def test_sizes_and_bytes_are_those_of_the_model():
    """Counted as lesson 16 counts; the run counts the same, to the byte."""
    numbers = model_parameters(GPT)
    assert f"{numbers:,} parameters" in PAGE
    assert f"predicts {16 * numbers // 8:,} bytes" in PAGE
    grid = Grid(data=int(PLAN["data_ranks"]), tensor=int(PLAN["tensor_ranks"]))
    held = import_module("instruments.16_cost").held(GPT, grid, BATCH)
    predicted = sum(held.values()) - held["activations"]
    assert int(PLAN["bytes_on_rank_0"]) == predicted
    assert abs(2 * numbers - predicted) > 3 * ALLOWED * predicted


def test_code_page_has_the_tensor_groups_of_both_meshes():
    ranks = torch.arange(8)
    rows = (ranks.view(4, 2)[0], "(4, 2)"), (ranks.view(2, 4)[:, 0], "(2, 4)")
    for group, mesh in rows:
        said = re.search(rf"\* - ``{re.escape(mesh)}``.*\n +- (.*)\n +- (.*)\n", PAGE)
        assert said[1] == ", ".join(map(str, group.tolist()))
        nodes = dict.fromkeys(f"n{rank // 2 + 1}" for rank in group.tolist())
        assert said[2] == ", ".join(nodes)


def test_run_without_own_code_gets_what_the_page_says():
    points, _ = PROPERTIES["laid out, saved and resumed by your code"]
    assert f"at most {100 - points} of the 100 points" in " ".join(PAGE.split())
    assert sorted(["checkpoint-9", "checkpoint-10"])[-1] == "checkpoint-9"


def test_batch_divides_before_and_after_the_loss():
    assert BATCH == 24 and "batch of 24" in PAGE
    assert BATCH % 4 == BATCH % 3 == 0 and 64 % 7
    assert plan_grid(7 * 4, replicas=1, tensor_ranks=4).data == 7


def test_calculator_gives_these_seconds_for_its_link():
    link = dict(parse_qsl(re.search(r"cost.html#(\S+)>", PAGE)[1]))
    number = {name: int(value) for name, value in link.items()}
    names = ("layers", "width", "heads", "vocabulary")
    model = Model(**{n: number.pop(n) for n in names}, context=2048)
    # what the calculator starts with: the first of its clusters, FSDP
    cluster = Cluster(number.pop("per_node"), 989e12, 0.4, 450e9, 50e9, 10e-6)
    start = {"stage": 3, "recompute": "selective"}
    assert f"{step_seconds(model, Layout(**start, **number), cluster):.3f} s" in PAGE
    number |= {"data": 2, "tensor": 4, "micro_batches": 4}
    assert f"{step_seconds(model, Layout(**start, **number), cluster):.3f} s" in PAGE


def losses(forget_at=None, steps=25):
    torch.manual_seed(0)
    model, (text, _) = ByteGPT(GPT), load_text()
    found = []
    for step in range(steps):
        if step in (0, forget_at):
            optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.01)
        inputs, targets = batch_of_step(text, step, BATCH, GPT.context)
        optimizer.zero_grad()
        loss = next_byte_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.full
def test_forgotten_optimizer_state_shows_within_a_few_steps():
    pairs = list(zip(losses(), losses(forget_at=20), strict=True))
    assert all(one == other for one, other in pairs[:21])
    assert max(abs(one - other) for one, other in pairs[21:]) > TOLERANCE


def test_line_that_seals_the_manifest_is_in_the_log():
    program = (ROOT / "src/20_capstone.py").read_text(encoding="utf-8")
    assert 'log(f"Manifest sealed: {run.manifest.seal()}")' in program
    assert PAGE.count("``Manifest sealed``") == 2
