"""What docs/lessons/13_pipeline_parallel says, tried out.

What happens inside ranks is in ranks_13_pipeline_parallel.py; the grader's engine runs
it. What the scripts do is tested in tests/scripts/test_13_pipeline.py.
"""

import inspect
import json
import re
import subprocess
import sys
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from statistics import median

import pytest
import torch.distributed as dist
from torch.distributed.pipelining import schedules

from tests.docs.pages import ROOT, checked_page
from tests.in_ranks import every_check_in
from workshop.grader.verdicts.verdict import Kind

sys.path.insert(0, str(ROOT / "src"))

from common.byte_gpt import Sizes, load_text
from common.cost.counting import FLOAT32, model_parameters, model_states
from common.gpt_training import Batches
from common.parallel.pipeline import SCHEDULES, Action, bubble, most_live, slots

boundary_bytes = import_module("instruments.13_cost").boundary_bytes

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
on_the_page = checked_page("13_pipeline_parallel")


@pytest.mark.nightly
@every_check_in(HERE / "ranks_13_pipeline_parallel.py")
def test_claim(check, verdict_of):
    verdict = verdict_of(check)
    if check.function == "test_hangs_1f1b_with_a_send_that_waits":
        assert verdict.kind is Kind.HANG, verdict.message
        assert verdict.message.count("waits in send") == 2, verdict.message
    elif check.function == "test_fails_when_m_does_not_divide_the_batch":
        assert verdict.kind is Kind.HANG, verdict.message
        assert "rank 1: waits in" in verdict.message, verdict.message
    else:
        assert verdict.kind is Kind.RIGHT, verdict.message


def test_eight_stages_of_seven_billion_parameters():
    """14 GB instead of 112; an eighth of the time, with 56 micro-batches 8/9 of it."""
    on_the_page("each device needs 14 GB for weights, gradients and AdamW state")
    states = sum(model_states(7_000_000_000).values())
    assert (states, states / 8) == (112e9, 14e9)
    on_the_page("each device computes for only one eighth of the time")
    on_the_page("With 56 micro-batches it computes for eight ninths.")
    for micro_batches, useful in ((1, Fraction(1, 8)), (56, Fraction(8, 9))):
        for schedule in SCHEDULES.values():
            orders = [list(schedule(rank, 8, micro_batches)) for rank in range(8)]
            assert 1 / (1 + bubble(orders)) == useful


def test_four_ranks_and_eight_micro_batches():
    """22 slots, of which a rank uses 16; rank 0 holds 8 with GPipe, 4 with 1F1B."""
    on_the_page("Both take 22 slots, of which a rank uses 16.")
    for name, held in (("gpipe", [8] * 4), ("1f1b", [4, 3, 2, 1])):
        orders = [list(SCHEDULES[name](rank, 4, 8)) for rank in range(4)]
        placed = slots(orders)
        assert 1 + max(slot for mine in placed for slot in mine.values()) == 22
        assert {len(order) for order in orders} == {16}
        assert bubble(orders) == Fraction(3, 8)
        assert [most_live(order) for order in orders] == held


@pytest.mark.parametrize("name", SCHEDULES)
def test_recorded_timeline_is_that_of_the_schedule(name):
    """The figure is drawn from the order in which four ranks really worked."""
    path = ROOT / "docs" / "figures" / f"13_{name}.json"
    recorded = json.loads(path.read_text())
    assert recorded["schedule"] == name
    for rank, events in enumerate(recorded["ranks"]):
        order = [Action(event["what"], event["micro_batch"]) for event in events]
        assert order == list(SCHEDULES[name](rank, 4, 8))
    # no rank computed with what it had not received yet
    began = {
        (event["what"], rank, event["micro_batch"]): event
        for rank, events in enumerate(recorded["ranks"])
        for event in events
    }
    for (what, rank, k), event in began.items():
        before = (what, rank - 1 if what == "forward" else rank + 1, k)
        if before in began:
            assert began[before]["end"] <= event["begin"]


def test_backwards_that_take_longer_leave_the_bubble():
    """A backward takes about twice as long; the ratio stays (p - 1) / m."""
    for schedule in SCHEDULES.values():
        for p, m in ((3, 4), (4, 8), (2, 5)):
            orders = [list(schedule(rank, p, m)) for rank in range(p)]
            length = duration(orders, {"forward": 1, "backward": 2})
            assert Fraction(length - 3 * m, 3 * m) == Fraction(p - 1, m)


def test_a_backward_took_about_twice_as_long_in_the_recorded_runs():
    ratios = []
    for name in SCHEDULES:
        path = ROOT / "docs" / "figures" / f"13_{name}.json"
        ranks = json.loads(path.read_text())["ranks"]
        events = [event for own in ranks for event in own]
        times = {
            what: median(e["end"] - e["begin"] for e in events if e["what"] == what)
            for what in ("forward", "backward")
        }
        ratios.append(times["backward"] / times["forward"])
    assert all(1.5 < ratio < 2.5 for ratio in ratios), ratios


def test_a_stage_with_more_work_makes_the_others_wait_more():
    """One rank is always busy, the others wait more than (p - 1) / m."""
    p, m = 3, 6
    for schedule in SCHEDULES.values():
        orders = [list(schedule(rank, p, m)) for rank in range(p)]
        equal, slow = {"forward": 1, "backward": 2}, {"forward": 2, "backward": 4}
        length = duration(orders, equal, {1: slow})
        assert Fraction(length - 3 * m, 3 * m) > 2 * Fraction(p - 1, m)
        assert Fraction(length - 6 * m, 6 * m) < Fraction(p - 1, m)


def duration(orders, lengths, of_rank=None):
    """How long a step takes; ``of_rank`` has the lengths of ranks that differ."""
    at, ended, free = [0] * len(orders), {}, [0] * len(orders)
    while any(place < len(mine) for place, mine in zip(at, orders, strict=True)):
        for rank, mine in enumerate(orders):
            if at[rank] < len(mine):
                what, k = mine[at[rank]]
                neighbor = rank - 1 if what == "forward" else rank + 1
                inside = 0 <= neighbor < len(orders)
                if inside and (what, neighbor, k) not in ended:
                    continue
                begin = max(free[rank], ended.get((what, neighbor, k), 0))
                length = (of_rank or {}).get(rank, lengths)[what]
                ended[(what, rank, k)] = free[rank] = begin + length
                at[rank] += 1
    return max(free)


def test_numbers_of_bytes_on_the_page():
    """DDP would send 2.7 MB, the rank in the middle sends 0.8 MB; what changes them."""
    sizes = Sizes()

    def ddp(sizes):
        return Fraction(4, 3) * FLOAT32 * model_parameters(sizes)

    assert round(float(ddp(sizes)) / 1e6, 1) == 2.7
    assert round(2 * boundary_bytes(sizes, 16) / 1e6, 1) == 0.8
    assert boundary_bytes(sizes, 64) == 4 * boundary_bytes(sizes, 16)
    larger = Sizes(blocks=8)
    assert boundary_bytes(larger, 16) == boundary_bytes(sizes, 16)
    assert 1.8 < ddp(larger) / ddp(sizes) < 2


INTERLEAVED = """
import sys
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B
from torch.testing._internal.distributed.fake_pg import FakeStore

ranks, v = map(int, sys.argv[1:])
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
cpu, layer = torch.device("cpu"), nn.Linear(1, 1)
stages = [PipelineStage(layer, k * ranks, v * ranks, cpu) for k in range(v)]
schedule = ScheduleInterleaved1F1B(stages, 4 * ranks, loss_fn=nn.functional.mse_loss)
live = most = 0
for action in schedule.pipeline_order[0]:
    if action is not None:
        live += 1 if action.computation_type.name == "FORWARD" else -1
        most = max(most, live)
print(most)
"""


@pytest.mark.parametrize(("ranks", "more"), [(2, 0.25), (8, 0.4375)])
def test_interleaving_costs_memory(ranks, more):
    """Rank 0 holds 1 + (p - 1) / (p v) times as much: with 1F1B p micro-batches."""
    stages = 2
    command = [sys.executable, "-c", INTERLEAVED, str(ranks), str(stages)]
    most = int(subprocess.check_output(command, text=True))
    assert most / stages / ranks == 1 + more == 1 + (ranks - 1) / (ranks * stages)


def test_interleaving_sends_more_messages_and_none_is_smaller():
    """Two stages on each of two ranks: three boundaries instead of one."""
    on_the_page("sends three times as many messages and three times the bytes")
    on_the_page("A message is as large as before: :math:`B T H / m` numbers.")
    text = (ROOT / "docs" / "transcripts" / "13_interleaved.txt").read_text()
    sent = re.findall(r"^sent in a step +([\d,]+) ", text, re.MULTILINE)
    sizes, batch, parts = Sizes(), 16, 8
    message = FLOAT32 * batch * sizes.context * sizes.width // parts
    assert boundary_bytes(sizes, batch) == parts * message
    sent = [int(number.replace(",", "")) for number in sent]
    assert sent == [3 * parts * message] * 2


SPLITS = re.compile(r"BACKWARD_WEIGHT|\bW\b|enable_zero_bubble=True")


def test_torch_has_three_zero_bubble_schedules():
    """Those that order the two halves of a backward on their own."""
    on_the_page("PyTorch has three such schedules.")
    source = {
        name: inspect.getsource(kind)
        for name, kind in vars(schedules).items()
        if name.startswith("Schedule")
    }
    found = {name for name, text in source.items() if SPLITS.search(text)}
    assert found == {
        "ScheduleInterleavedZeroBubble",
        "ScheduleZBVZeroBubble",
        "ScheduleDualPipeV",
    }
    for name in found:
        on_the_page(f"``{name}``")


DUAL = """
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
layer = torch.nn.Linear(1, 1)
stages = [PipelineStage(layer, k, 8, torch.device("cpu")) for k in (0, 7)]
schedule = schedules.ScheduleDualPipeV(stages, 8, loss_fn=torch.nn.functional.mse_loss)
print(*schedule.pipeline_order[0])
"""


def test_dual_pipe_pairs_a_forward_with_a_backward_of_the_other_stage():
    on_the_page("has the same V, and pairs a forward of one stage with a backward of")
    order = subprocess.check_output([sys.executable, "-c", DUAL], text=True)
    pairs = re.findall(r"\((\d)F\d;(\d)B\d\)", order)
    assert {tuple(sorted(pair)) for pair in pairs} == {("0", "7")}
    on_the_page("PyTorch runs the two `one after the other")
    runtime = inspect.getsource(schedules._PipelineScheduleRuntime)
    assert re.search(r"for sub_a in action.sub_actions:\s+_perform_action", runtime)


def test_backward_of_two_slots_leaves_the_bubble_as_it_is():
    on_the_page("the step above then takes 33 slots instead of 22, a rank uses 24")
    ranks, parts = 4, 8
    total, used = (ranks - 1 + parts) * 3, parts * 3
    assert (total, used) == (33, 24) and (total - used) / used == 3 / 8


def test_both_cures_of_a_send_that_blocks_the_queue_are_in_use():
    """A batch in PyTorch's 1F1B and in the ring; a group for each direction by hand."""
    on_the_page("With NCCL, ``isend`` alone isn't enough.")
    assert "dist.batch_isend_irecv(" in inspect.getsource(schedules._batch_p2p)
    one = inspect.getsource(schedules.Schedule1F1B)
    assert "_batch_p2p(fwd_sends + bwd_recvs" in one
    assert "batch_isend_irecv(" in (ROOT / "src/03_ring_all_reduce.py").read_text()
    by_hand = (ROOT / "src/13_pipeline_by_hand.py").read_text()
    assert "self.group = dist.new_group()" in by_hand


def test_torch_warns_of_two_groups_at_once():
    on_the_page("``wait()`` on what is pending in one group before you use another")
    warning = " ".join(dist.new_group.__doc__.split())
    assert "by calling `work.wait()` before using another process group" in warning
    [address] = re.findall(r"concurrently <(https:\S+)>", warning)
    on_the_page(f"<{address}>`__")


def test_text_is_that_of_the_python_that_runs():
    """Another version has another text; no rank compares it with the others'."""
    on_the_page("your losses differ from those here, which are of Python 3.11.7.")
    recorded = (ROOT / "docs/transcripts/13_train_gpt.txt").read_text()
    number = re.search(r"([\d,]+) bytes of Python's standard library", recorded)[1]
    if sys.version_info[:3] == (3, 11, 7):
        assert f"{len(load_text()[0]):,}" == number
    for part in (load_text, Batches.__init__):
        assert "dist." not in inspect.getsource(part)


IDLE = """
import sys
from runpy import run_path
import torch.distributed as dist
from torch.distributed.pipelining import schedules
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
count = run_path(sys.argv[1])["count"]
for name in ("Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"):
    for parts in (4, 8):
        print(*count(getattr(schedules, f"Schedule{name}"), parts)[:2], sep=";")
"""


def test_zero_bubble_idles_a_third_as_long():
    """A rank has 16 actions of 3 slots each, with 4 micro-batches half as many."""
    on_the_page("Each rank computes in 48 slots. Interleaved 1F1B idles in another 9")
    on_the_page("both zero-bubble schedules in 3.")
    on_the_page("with only four micro-batches, ``ScheduleZBVZeroBubble`` idles in 6")
    example = ROOT / "docs" / "examples" / "13_idle_slots.py"
    command = [sys.executable, "-c", IDLE, str(example)]
    printed = subprocess.check_output(command, text=True).splitlines()
    idle = [(4, 9), (8, 9), (4, 3), (8, 3), (4, 6), (8, 3)]
    useful = {4: 24, 8: 48}
    expected = [f"{useful[parts] + more};{[more] * 4}" for parts, more in idle]
    assert printed == expected


def test_v_has_the_first_and_the_last_stage_on_rank_0():
    recorded = (ROOT / "docs/transcripts/13_zero_bubble.txt").read_text("utf-8")
    order = recorded.partition("ZBVZeroBubble")[2]
    assert " 0F0 " in order and " 7F0 7I0 7W0 " in order


def test_loss_of_the_figure_falls_below_the_frequencies_within_40_steps():
    run = json.loads((ROOT / "docs" / "figures" / "13_loss.json").read_text())
    losses, entropy = run["losses"], run["unigram_entropy"]
    assert len(losses) == 300 and 5.5 < losses[0] < 6.5
    assert round(entropy, 2) == 3.14 and round(run["test_loss"], 2) == 2.18
    assert all(loss < entropy for loss in losses[40:])
    assert 1.8 < sum(losses[-20:]) / 20 < 2.3
