"""What docs/lessons/18_scaling says: its numbers follow from its transcripts."""

import math
import re
import sys

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.docs.pages import ROOT, lesson_source

sys.path.insert(0, str(ROOT / "src"))
from common.cost.formulas import Layout, Model, step_flops

PAGE = " ".join(lesson_source("18_scaling").split())
ROW = re.compile(r"^ +(\d+) +(\d+) +([\d.]+) +\d+ to \d+ +\d+ +([\d.]+) +(\d+)%$", re.M)


@pytest.fixture(scope="module")
def speedups():
    """("strong" or "weak", ranks) -> speedup, as recorded."""
    text = (ROOT / "docs/transcripts/18_scaling.txt").read_text("utf-8")
    strong, weak = text.split("Strong scaling")[1].split("Weak scaling")
    parts = {"strong": strong, "weak": weak}
    return {
        (kind, int(ranks)): float(speedup)
        for kind, part in parts.items()
        for ranks, _, _, speedup, _ in ROW.findall(part)
    }


def amdahl(share, ranks):
    return 1 / (share + (1 - share) / ranks)


def karp_flatt(speedup, ranks):
    return (1 / speedup - 1 / ranks) / (1 - 1 / ranks)


def test_speedups_of_the_page_are_the_recorded_ones(speedups):
    two, four = speedups["strong", 2], speedups["strong", 4]
    assert f"two ranks on two cores are {two:.2f} times as fast" in PAGE
    share = karp_flatt(two, 2)
    assert f"The speedup of {two:.2f} on two ranks gives f = {share:.2f}." in PAGE
    law = f"The law promises {amdahl(share, 4):.2f} on four ranks, but"
    assert f"{law} we measured {four:.2f}" in PAGE
    limit = f"1 / {share:.2f} = {1 / round(share, 2):.1f}"
    assert f"the speedup would approach {limit} and no more, if the law held" in PAGE


def test_share_of_a_program_that_follows_the_law_is_found():
    for share in (0.01, 0.2, 0.5):
        for ranks in (2, 4, 64):
            assert karp_flatt(amdahl(share, ranks), ranks) == pytest.approx(share)
            assert amdahl(share, ranks) < 1 / share


def test_four_ranks_on_two_cores_gain_nothing_over_two(speedups):
    """Within a fifth: the machine had two cores."""
    for kind in ("strong", "weak"):
        assert speedups[kind, 4] < 1.2 * speedups[kind, 2]


def test_intensity_of_a_product_and_of_a_sum():
    """n/6 operations for each byte, and one for 12 bytes, in 32 bits."""
    for n in (64, 512):
        a = torch.ones(n, n)
        with FlopCounterMode(display=False) as counter:
            b = a @ a
        intensity = counter.get_total_flops() / (2 * a.nbytes + b.nbytes)
        assert intensity == pytest.approx(n / 6)
        assert 3 * a.nbytes / a.numel() == 12  # two are read, one is written
    assert "so I = n/6" in PAGE and "does one operation for 12 bytes" in PAGE


def test_copying_the_weights_keeps_few_rows_below_the_roof():
    """From 2 rows on, the recorded times are a part for all rows, and one for each."""
    text, width = recorded("18_roofline")[0], 4096
    bandwidth = 1e9 * float(re.search(r"([\d.]+) GB/s", text)[1])
    found = re.findall(r"^ *(\d+) +[\d.]+ +([\d.]+) +([\d.]+)$", text, re.M)
    table = {int(rows): (float(roof), float(got)) for rows, roof, got in found}
    shares = [table[rows][1] / table[rows][0] for rows in (2, 4, 8, 16)]
    words = f"2 to 16 rows reach only {min(shares):.0%} to {max(shares):.0%} of the"
    assert words.replace("%", " %") in PAGE
    rows = torch.tensor([n for n in table if n > 1], dtype=torch.float64)[:, None]
    rates = torch.tensor([table[n][1] for n in table if n > 1], dtype=torch.float64)
    times = 2e3 * rows * width**2 / (1e9 * rates[:, None])  # ms
    line = torch.hstack([torch.ones_like(rows), rows])
    fixed, each = torch.linalg.lstsq(line / times, torch.ones_like(rows)).solution
    assert (line @ torch.stack([fixed, each]) / times - 1).abs().max() < 0.1
    assert f"{float(fixed):.1f} ms, and {float(each):.2f} ms for each row" in PAGE
    reading = 1e3 * 4 * width**2 / bandwidth
    assert f"takes {reading:.1f} ms of these {float(fixed):.1f}" in PAGE
    assert "BLAS_INFO=mkl" in torch.__config__.show() and "MKL, which mult" in PAGE


def recorded(name):
    """The text of a transcript, and [(method, error in percent)] in its order."""
    text = (ROOT / f"docs/transcripts/{name}.txt").read_text("utf-8")
    found = re.findall(r"^(\w[\w ]*?) +[\d.]+ +[\d.]+ +([+-]\d+)%$", text, re.M)
    return text, [(method, int(error)) for method, error in found]


def test_how_far_the_line_misses_a_size():
    pairs = re.findall(
        r"bytes +(\d+) us, .* says +(\d+)$", recorded("18_cost")[0], re.M
    )
    misses = [max(int(t) / int(line), int(line) / int(t)) for t, line in pairs]
    assert len(misses) == 8
    ping = re.search(r"there and back: (\d+) us", recorded("18_cost")[0])[1]
    words = (
        f"The ping takes {ping} µs, and an all-reduce of four bytes {pairs[0][0]} µs"
    )
    assert words in PAGE


def test_predictions_of_the_page_are_the_recorded_ones():
    _, errors = recorded("18_cost")
    methods = ["DDP", "FSDP", "TP", "PP"]
    assert [method for method, _ in errors] == [*methods, *methods, "FSDP x TP"]
    two, four = (error for method, error in errors if method == "DDP")
    words = f"off by {abs(two)} % on two ranks and by {abs(four)} % on four"
    assert max(abs(two), abs(four)) < 20  # the goal
    two, four = (error for method, error in errors if method == "PP")
    words += f", for a pipeline by {abs(two)} % and {abs(four)} %"
    assert f"For DDP the prediction is {words}" in PAGE
    low = [-error for method, error in errors if method not in ("DDP", "PP")]
    assert len(low) == 2 + 3  # FSDP and TP, and then also their grid
    few, many = (f"{min(part)} % to {max(part)} %" for part in (low[:2], low[2:]))
    words = f"prediction is {few} too low on two ranks, and {many} on four"
    assert words in PAGE


def test_other_numbers_of_the_small_gpt_are_the_recorded_ones():
    text, _ = recorded("18_cost")
    alone = float(re.search(r"sends nothing: ([\d.]+) ms", text)[1])
    predicted = float(re.search(r"^DDP +([\d.]+)", text, re.M)[1])
    used = re.search(r"MFU against that: (\d+)% alone", text)[1]
    assert f"the small GPT reaches {used} %" in PAGE
    messages = f"only {predicted - alone:.0f} of {predicted:.0f} ms"
    assert messages in PAGE
    promised = re.search(r"^DDP +([\d.]+)$", text, re.M)[1]
    taken = re.findall(r"^DDP +[\d.]+ +([\d.]+) ", text, re.M)[1]
    assert f"promises {promised} ms with DDP. Four ranks take {taken} ms" in PAGE


def test_messages_in_a_row_of_a_ring_and_of_a_tree():
    ranks = 1024
    ring, tree = 2 * (ranks - 1), 2 * math.ceil(math.log2(ranks))
    assert f"{tree} instead of {ring:,} for {ranks:,} ranks" in PAGE


def test_megatrons_share_without_what_it_recomputes():
    """Its table counts each layer's forward twice: arXiv 2104.04473, section 5.1."""
    found = []
    for layers, width, heads, teraflops in (
        (24, 2304, 24, 137),
        (128, 25600, 160, 163),
    ):
        gpt, layout = Model(layers, width, heads, 2048, 51200), Layout(data=8)
        needed = step_flops(gpt, layout) / step_flops(gpt, layout, "full")
        found.append(f"{100 * needed * teraflops / 312:.0f} %")
    assert f"its MFU is {found[0]} to {found[1]}" in PAGE


def test_over_a_link_of_a_known_rate():
    text, errors = recorded("18_slow_link")
    assert "workshop cluster rate 200mbit" in text
    least = 8 * 8 * 2**20 / 200e6  # of two ranks, each sends all of its bytes
    assert f"less than {1e3 * least:.0f} ms" in PAGE
    largest = float(re.search(r"^8,388,608 bytes +(\d+) us", text, re.M)[1])
    assert least < largest / 1e6 < 1.1 * least
    assert f"The largest message took {largest / 1e3:.0f} ms" in PAGE
    rate, true = float(re.search(r"1/beta ([\d.]+) MB/s", text)[1]), 200 / 8
    compared = f"{rate} MB/s, {rate / true - 1:.0%}".replace("%", " %")
    assert f"The fitted rate is {compared} above the true rate of {true:.0f}" in PAGE
    ddp, fsdp, tp, pp = (error for _, error in errors)
    off = f"{abs(ddp)} % for DDP, by {abs(fsdp)} % for FSDP and by {abs(tp)} % for"
    assert f"off by {off} tensor parallel" in PAGE
    assert max(abs(ddp), abs(fsdp), abs(tp)) < 20  # "Over the slow link, that's enough"
    assert f"For the pipeline, the prediction is {pp} % too high" in PAGE


def test_times_follow_from_the_published_rates():
    sizes = {2**15: 0.82, 2**20: 22.82, 2**34: 275.58}  # bytes: GB/s of the algorithm
    small, medium, large = (n / rate / 1e9 for n, rate in sizes.items())
    assert (
        f"{1e6 * small:.0f} µs, {1e6 * medium:.0f} µs and {1e3 * large:.0f} ms" in PAGE
    )
    assert (
        f"32 times as large takes only {medium / small - 1:.0%}".replace("%", " %")
        in PAGE
    )
    for rate in sizes.values():
        assert f"{rate} GB/s" in PAGE
    bus = 2 * (8 - 1) / 8 * sizes[2**34]  # nccl-tests: for rings
    assert f"The 16 GiB above reached {bus:.0f} GB/s, but NVLink has only 450" in PAGE


def test_torchtitan_keeps_97_percent_of_its_speed():
    """Tokens per second and GPU on 128 GPUs and on 8, from lesson 15."""
    kept = f"{5605 / 5762:.0%}".replace("%", " %")
    assert f"From 8 to 128 GPUs, torchtitan keeps {kept} of its speed per GPU" in PAGE
    assert "miss the real loss of 3 % entirely" in PAGE


def test_elements_of_the_job_array_take_turns_on_slurm_only():
    """Slurm runs one at a time; PBS has no such limit, so the page keeps them apart."""
    scripts = [ROOT / f"job_scripts/scaling_array.{end}" for end in ("sbatch", "pbs")]
    slurm, pbs = (path.read_text(encoding="utf-8") for path in scripts)
    assert "#SBATCH --array=1-2%1\n" in slurm and "#PBS -J 1-2\n" in pbs
    assert "#PBS -l place=scatter\n" in pbs
    apart = "``qsub -l place=scatter:excl job_scripts/scaling_array.pbs``"
    assert (
        f"both may run at the same time, so keep them off each other's hosts: {apart}"
        in PAGE
    )
