"""What the pages say beside "On a GPU" follows from the runs that they show there."""

import re
from pathlib import Path

import pytest

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
    gain = tokens["compile"] / tokens["checkpoint"]
    assert "Compiling gains 27 %, about what checkpointing has cost before" in page
    assert gain == pytest.approx(1.27, abs=0.005)
    assert gain * tokens["checkpoint"] / tokens["fused"] == pytest.approx(1, abs=0.03)
    assert "checkpointing needs 3.6 GB instead of 10.7. Of both, 2.4 GB are" in page
    peak = {name: row[4] for name, row in table.items() if len(row) > 5}
    assert [round(peak[name], 1) for name in ("checkpoint", "fused")] == [3.6, 10.7]
    parameters = 12 * (12 * 1024**2 + 13 * 1024) + (2 * 256 + 1024) * 1024
    assert 16 * parameters / 1e9 == pytest.approx(2.4, abs=0.05)
    assert "16 bits are 2.4 times as fast" in text_of(SPEED / "1_data_and_steps.rst")


def test_copies():
    page = text_of(SPEED / "1_data_and_steps.rst")
    pageable, pinned = (rows("loading")[kind] for kind in ("pageable", "pinned"))
    assert "From ordinary memory, the call returned only when nearly all" in page
    assert pageable[1] > 0.99 * pageable[0] and pinned[1] < 0.01 * pinned[0]
    assert "the copy took six times as long" in page
    assert round(pageable[0] / pinned[0]) == 6


def test_small_model_gains_nothing():
    assert "The rows hardly differ" in text_of(SPEED / "1_data_and_steps.rst")
    assert all(0.8 < row[1] < 1.2 for row in rows("17_speed").values())


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
    assert "Against the 989 TFLOP/s of the `data sheet" in page
    assert "it's 51 %" in page and round(100 * reached / 989) == 51
    share = {
        int(name): row[2] / row[1]
        for name, row in rows("18_roofline").items()
        if name.isdigit()
    }
    few = [share[n] for n in (2, 4, 8, 16, 32)]
    assert "a layer with 2 to 32 rows reaches 54 % to 67 % of its roof" in page
    assert [round(100 * edge) for edge in (min(few), max(few))] == [54, 67]
    assert "from 64 rows on at least 93 %" in page
    assert min(share[n] for n in (64, 128, 256)) >= 0.93


def test_step_of_the_cost_program():
    page = text_of(DOCS / "lessons" / "18_scaling" / "2_link.rst")
    assert "The step reaches 1 % of what the card can do in 32 bits" in page
    assert "MFU against that: 1%" in (SHOWN / "18_cost.gpu.txt").read_text()
