"""What the pages say beside "On a GPU" follows from the runs that they show there."""

import json
import re
from pathlib import Path

import pytest
import torch

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
SHOWN = DOCS / "transcripts" / "gpu"
SPEED = DOCS / "lessons" / "17_speed"


def text_of(path: Path) -> str:
    """A page on one line."""
    return " ".join(path.read_text(encoding="utf-8").split())


def rows(name: str) -> dict[str, list[float]]:
    """First word of a line -> the numbers that follow it."""
    found = {}
    for line in (SHOWN / f"{name}.gpu.txt").read_text(encoding="utf-8").splitlines():
        first, *rest = line.split() or [""]
        numbers = [word.strip("%,").replace(",", "") for word in rest]
        if numbers and re.fullmatch(r"[\d.-]+", numbers[0]):
            found[first] = [float(n) for n in numbers if re.fullmatch(r"-?[\d.]+", n)]
    return found


def test_recipe():
    page = text_of(DOCS / "production" / "a_tuned_recipe.rst")
    table = rows("17_recipe")
    tokens = {name: row[0] for name, row in table.items()}
    assert "TF32 makes a step three times as fast" in page
    assert tokens["tf32"] / tokens["nothing"] == pytest.approx(3, abs=0.05)
    assert "16 bits 2.4 times as fast again" in page
    assert tokens["bf16"] / tokens["tf32"] == pytest.approx(2.4, abs=0.01)
    assert "``fused`` gains 4 %, and the allocator nothing" in page
    assert tokens["fused"] / tokens["bf16"] == pytest.approx(1.04, abs=0.005)
    assert tokens["allocator"] <= tokens["compile"]
    assert "Checkpointing makes a step 23 % longer, and compiling makes up for" in page
    assert tokens["fused"] / tokens["checkpoint"] == pytest.approx(1.23, abs=0.005)
    assert tokens["compile"] / tokens["fused"] == pytest.approx(1, abs=0.03)
    assert "a step needs 3.5 GB instead of 10.7. In either, 1.8 GB are" in page
    before, after = table["fused"][4], table["compile"][3]
    assert [round(before, 1), round(after, 1)] == [10.7, 3.5]
    parameters = 12 * (12 * 1024**2 + 13 * 1024) + (2 * 256 + 1024) * 1024
    state = (4 + 8) * parameters / 1e9
    assert state == pytest.approx(1.8, abs=0.05)
    assert "holds a batch about five times as large" in page
    assert (before - state) / (after - state) == pytest.approx(5, abs=0.5)


def test_copies():
    page = text_of(SPEED / "1_data_and_steps.rst")
    pageable, pinned = (rows("loading")[kind] for kind in ("pageable", "pinned"))
    assert "From ordinary memory, the call returned only when nearly all" in page
    assert pageable[1] > 0.99 * pageable[0] and pinned[1] < 0.01 * pinned[0]
    assert "the copy took six times as long" in page
    assert round(pageable[0] / pinned[0]) == 6


def test_small_model_gains_nothing():
    page = text_of(SPEED / "1_data_and_steps.rst")
    assert "No row is more than 5 % faster than the first" in page
    table = rows("17_speed")
    assert max(row[1] for row in table.values()) <= 1.05
    assert "a step of 195 ms" in page  # 16 pieces
    assert round(1000 * 16 / table["nothing"][0]) == 195
    accumulation = rows("17_fsdp_accumulation")["nothing"][0]
    assert "took 88 ms for as many pieces" in page
    assert round(1000 * 16 / accumulation) == 88 < 195 / 2
    assert "3.22 GFLOP instead of 2.87" in page and table["nothing"][-1] == 3.22


def test_all_recordings_are_shown_or_claimed():
    shown = set()
    for page in DOCS.rglob("*.rst"):
        shown |= set(re.findall(r"\.\. on-a-gpu:: (\S+)", page.read_text()))
    assert shown == {path.name[:-8] for path in SHOWN.glob("*.gpu.txt")}


@pytest.mark.parametrize("name", ["train_ddp", "train_fsdp"])
def test_resumed_starters(name):
    """The numbers of the runs in which any kernel was allowed."""
    page = text_of(DOCS / "lessons" / "06_checkpoints" / "1_save_and_restore.rst")
    assert "After 900 steps, each had the same bits" in page
    found = json.loads((SHOWN / f"resumed_{name}.json").read_text())
    assert found["machine"]["card"] == "NVIDIA H200"
    steps_and_bits = {"steps": 900, "same_bits": True, "largest_difference": 0.0}
    assert found["found"] == steps_and_bits


def test_attention_of_a_gpu_saves_where_its_random_numbers_begin():
    page = text_of(DOCS / "lessons" / "13_pipeline_parallel" / "4_pytorch.rst")
    assert "the seed and the offset of its dropout" in page
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention.default
    saved = [value.name for value in kernel._schema.returns]
    assert saved[2:] == ["philox_seed", "philox_offset"]
    measured, formula = rows("one_rank_13_cost")["activations"]
    assert "16 bytes in each of these four blocks" in page
    assert measured - formula == 4 * 16


def test_precisions():
    page = text_of(SPEED / "2_bits_and_memory.rst")
    assert "Here a step is six times as fast" in page
    assert rows("precisions")["bf16"][1] == pytest.approx(6, abs=0.05)
    assert "six times as fast (:doc:" in text_of(SPEED / "1_data_and_steps.rst")


def test_timers():
    page = text_of(DOCS / "production" / "a_tuned_recipe.rst")
    shown = (SHOWN / "timers.gpu.txt").read_text()
    assert "the wrong clock shows 0.8 of 429.9 ms" in page
    assert re.search(
        r"without synchronize +0\.8 ms\nwith synchronize +429\.9 ms", shown
    )


def test_memory():
    page = text_of(SPEED / "2_bits_and_memory.rst")
    assert "A GPU's allocator counts the same within 1 %" in page
    for way in ("remember", "recompute"):
        predicted, saved, peak = rows("checkpointing")[way]
        assert saved == pytest.approx(predicted, rel=0.01) and peak > saved


def test_profile():
    page = text_of(SPEED / "3_where_is_my_time.rst")
    assert "On the GPU, the kernels take 0.6 of 15.9 ms" in page
    (line,) = (
        line
        for line in (SHOWN / "17_profile.gpu.txt").read_text().splitlines()
        if line.startswith("rank 0")
    )
    assert line.split()[2:4] == ["15.9", "0.6"]


def test_plan():
    page = text_of(DOCS / "lessons" / "18_scaling" / "4_plan.rst")
    text = (SHOWN / "mfu.gpu.txt").read_text()
    reached = float(re.search(r"^reached +(\d+) TFLOP", text, re.M)[1])
    assert "Half of it, 989, is for dense ones, and against that it's 51 %" in page
    assert round(100 * reached / 989) == 51
    share = {
        int(name): row[2] / row[1]
        for name, row in rows("18_roofline").items()
        if name.isdigit()
    }
    few = [share[n] for n in (2, 4, 8, 16, 32)]
    assert "A layer with 2 to 32 rows reaches 54 % to 67 % of its roof" in page
    assert [round(100 * edge) for edge in (min(few), max(few))] == [54, 67]
    assert "from 64 rows on at least 93 %" in page
    assert min(share[n] for n in (64, 128, 256)) >= 0.93


def test_step_of_the_cost_program():
    page = text_of(DOCS / "lessons" / "18_scaling" / "2_link.rst")
    assert "The step reaches 1 % of what the card can do in 32 bits" in page
    assert "MFU against that: 1%" in (SHOWN / "18_cost.gpu.txt").read_text()
