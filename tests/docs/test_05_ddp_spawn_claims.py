"""What docs/lessons/05_ddp_spawn says about PyTorch, tried out.

What happens inside ranks is in ranks_05_ddp_spawn.py; the grader's engine runs it.
"""

import difflib
import re
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch.distributed as dist
from torch.utils.data import DistributedSampler

from tests.docs.pages import ROOT, checked_page, lesson_source
from tests.in_ranks import assert_right, every_check_in
from tests.launched import environment, left_over

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "docs" / "examples"


on_the_page = checked_page("05_ddp_spawn")
sys.path.insert(0, str(ROOT / "src"))


@pytest.mark.nightly
@every_check_in(HERE / "ranks_05_ddp_spawn.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


def test_two_ranks_are_as_much_faster_as_the_page_says():
    """It quotes the transcript: what a run reaches depends on the machine."""
    text = (HERE.parents[1] / "docs/transcripts/05_it_pays.txt").read_text("utf-8")
    one, two = re.findall(r"([\d,]+) samples/s", text)
    ratio = int(two.replace(",", "")) / int(one.replace(",", ""))
    on_the_page(f"Two ranks with a core each process {ratio:.1f} times as many images")
    on_the_page("The losses above still differ, because the two programs shuffle")
    losses = re.findall(r"^Loss .* -> ([\d.]+)", text, re.M)
    assert len(set(losses)) == 2
    assert ratio >= 1.6  # record it on a machine that has nothing else to do


def test_both_programs_begin_with_equal_weights_and_shuffle_differently():
    """So only the images of a step and dropout make their losses differ."""
    programs = [import_module(name) for name in ("01_single_device", "05_ddp_spawn")]
    assert len({program.SEED for program in programs}) == 1
    assert len({program.DROPOUT for program in programs}) == 1
    one = programs[0].make_loader(range(128), 128)
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        many = programs[1].make_loader(range(128), 128)
    finally:
        dist.destroy_process_group()
    (first,), (second,) = one, many
    assert sorted(first) == sorted(second) and first.tolist() != second.tolist()


def test_five_lines_make_ddp_of_a_program_for_one_device():
    """Beside the docstring and the imports; the ranks print what one process does."""
    on_the_page("by five lines and their imports")
    on_the_page(
        "With two or four ranks, each rank prints ``slope 3.000, offset 1.000``, "
        "just as one process does."
    )
    one, many = (EXAMPLES / f"05_{name}.py" for name in ("one_device", "five_lines"))
    texts = [path.read_text().splitlines() for path in (one, many)]
    added = [line for line in difflib.ndiff(*texts) if line.startswith("+ ")]
    begin = re.compile(r'\+ (import|from|""")')
    lines = [line for line in added if not begin.match(line)]
    assert [line.split("# ")[1][0] for line in sorted(lines, key=number)] == [*"12345"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    starts = {1: [one], 2: [*torchrun, 2, many], 4: [*torchrun, 4, many]}
    for ranks, words in starts.items():
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=200,
        )
        lines = ["slope 3.000, offset 1.000"] * ranks
        assert left_over(done.stdout, lines) == "\n" * ranks, (done.stdout, done.stderr)


KEPT_ALIVE = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
name = "torch.distributed.nn.functional"
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
group = dist.group.WORLD
print(name in sys.modules)
DDP(torch.nn.Linear(1, 1))
print(name in sys.modules)
dist.destroy_process_group()
print(any(kept is group for kept in sys.modules[name].broadcast.__defaults__))
"""


@pytest.mark.nightly
def test_ddp_imports_a_module_that_keeps_the_group_alive(tmp_path):
    """Unless it's imported before: then its functions hold no group."""
    on_the_page("DDP would import that module after the group is made")
    before = "import torch.distributed.nn.functional\n" + KEPT_ALIVE
    for text, said in (KEPT_ALIVE, "False True True"), (before, "True True False"):
        done = run(tmp_path, text, COLD_PYTHON="1")  # a warm one has imported it
        assert done.stdout.split() == said.split()


CHEAT_SHEET = (ROOT / "docs" / "cheat_sheet.rst").read_text("utf-8")


@pytest.mark.parametrize(
    "source", [lesson_source("05_ddp_spawn"), CHEAT_SHEET], ids=["lesson", "sheet"]
)
def test_nccl_is_never_advised_without_a_device(source):
    """NCCL refuses tensors of the CPU, so the name alone would make the lines fail."""
    assert "nccl" not in (EXAMPLES / "05_five_lines.py").read_text()
    text = " ".join(source.split())
    place = text.index('"nccl"')
    around = text[place - 100 : place + 300]
    assert "torch.cuda.set_device(int(os.environ" in around and ".cuda()" in around


def number(line):
    return line.split("# ")[1]


def share(size, world_size, rank=0):
    return list(DistributedSampler(range(size), world_size, rank))


def test_sampler_takes_every_w_th_of_one_shuffled_list():
    whole = share(12, 1)
    assert sorted(whole) == list(range(12)) != whole
    assert [share(12, 4, rank) for rank in range(4)] == [whole[r::4] for r in range(4)]


def in_order(size, world_size, rank):
    return list(DistributedSampler(range(size), world_size, rank, shuffle=False))


def test_table_of_ten_images_is_that_of_the_sampler():
    on_the_page("Without shuffling (``shuffle=False``), ten images are shared out like")
    rows = {(0, 2): "0, 2, 4, 6, 8", (1, 2): "1, 3, 5, 7, 9"}
    rows |= {(0, 3): "0, 3, 6, 9", (1, 3): "1, 4, 7, 0", (2, 3): "2, 5, 8, 1"}
    for (rank, world_size), row in rows.items():
        assert row == ", ".join(map(str, in_order(10, world_size, rank)))
        on_the_page(f"- {row}")


def test_table_of_test_images_adds_up_with_and_without_padding():
    padded = [len(in_order(359, 4, rank)) for rank in range(4)]
    plain = [len(range(rank, 359, 4)) for rank in range(4)]
    for title, counts in (("padded, as in training", padded), ("padding", plain)):
        numbers = [*counts, sum(counts)]
        on_the_page(" - ".join([title, *map(str, numbers)]))


def test_two_training_images_are_read_twice_on_four_ranks():
    read = [index for rank in range(4) for index in share(1438, 4, rank)]
    assert len(read) == 4 * 360
    assert len(read) - len(set(read)) == 2
    assert read[-1] == share(1438, 1)[1], "padded from the beginning of the list"


def test_test_images_are_padded_to_360_on_two_and_on_four_ranks():
    for world_size in (2, 4):
        assert sum(len(share(359, world_size, r)) for r in range(world_size)) == 360


@pytest.mark.parametrize(("ranks", "images", "steps"), [(1, 1438, 45), (2, 719, 23)])
def test_steps_of_an_epoch(ranks, images, steps):
    assert len(share(1438, ranks)) == images
    assert -(-images // 32) == steps


def test_steps_of_an_epoch_on_four_ranks():
    assert len(share(1438, 4)) == 360
    assert -(-360 // 32) == 12


def test_a_taken_port_is_eaddrinuse():
    with socket.socket() as somebody:
        somebody.bind(("", 0))
        somebody.listen()
        port = somebody.getsockname()[1]
        with pytest.raises(dist.DistNetworkError, match="EADDRINUSE"):
            dist.TCPStore("127.0.0.1", port, 1, is_master=True)


def run(tmp_path, text, **variables):
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script)],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=200,
    )


SPAWN = """
import os, sys, time
import torch.multiprocessing as mp
print("imported by", __name__, flush=True)

def work(rank, word, both_here):
    assert "RANK" not in os.environ and "WORLD_SIZE" not in os.environ
    print("rank", rank, word, flush=True)
    if rank == 1:
        both_here.wait()
        raise RuntimeError("out of luck")
    both_here.set()
    time.sleep(150)

if __name__ == "__main__":
    both_here = mp.get_context("spawn").Event()
    mp.spawn(work, args=("works", both_here), nprocs=2)
"""


def test_spawn_gives_the_rank_first_and_ends_all_when_one_fails(tmp_path):
    """The other rank would sleep far longer than the test waits."""
    done = run(tmp_path, SPAWN)
    lines = done.stdout.splitlines()
    assert lines.count("imported by __main__") == 1
    assert lines.count("imported by __mp_main__") == 2, "each process imports the file"
    assert "rank 1 works" in lines
    assert done.returncode != 0
    assert "Process 1 terminated with the following error" in done.stderr
    assert "out of luck" in done.stderr


def test_spawn_outside_of_the_guard_is_refused(tmp_path):
    done = run(tmp_path, SPAWN.replace('if __name__ == "__main__"', "if True"))
    assert done.returncode != 0
    words = "An attempt has been made to start a new process before"
    assert words in " ".join(done.stderr.split())
