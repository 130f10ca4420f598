"""What docs/lessons/12_model_parallel says, tried out.

What happens inside ranks is in ranks_12_model_parallel.py; the grader's engine runs it.
Some of the common mistakes are known wrong answers of the exercises, and are tried out
with those.
"""

import json
import mmap
import re
import sys
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from runpy import run_path

import pytest
import torch
from torch import nn

from tests.docs.pages import checked_page, lesson_source
from tests.in_ranks import assert_right, every_check_in

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "src"))

from common.cost.counting import model_states  # noqa: E402
from common.data import make_model  # noqa: E402
from common.parallel.model_parallel import make_loader  # noqa: E402
from common.parallel.pipeline import SCHEDULES  # noqa: E402
from workshop.author.answers import read_answers  # noqa: E402

cost = import_module("instruments.12_cost")
layer_parameters, numel_between = cost.layer_parameters, cost.numel_between
timeline = import_module("instruments.12_timeline")
STEPS = timeline.STEPS
idle_share = timeline.idle_share
shortest = timeline.shortest
slots = timeline.slots

PAGE = " ".join(lesson_source("12_model_parallel").split())
on_the_page = checked_page("12_model_parallel")


def recorded(name):
    return (ROOT / f"docs/transcripts/{name}.txt").read_text()


@pytest.mark.nightly
@every_check_in(HERE / "ranks_12_model_parallel.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


# What is held and what travels


def test_table_of_the_layers_is_that_of_the_model():
    image = torch.zeros(1, 1, 8, 8)
    for number, layer in enumerate(make_model(), start=1):
        image = layer(image)
        output = " x ".join(map(str, image.shape[1:]))
        row = rf"\* - {number} - {type(layer).__name__}[^*]* - {output} - "
        assert re.search(row + rf"{layer_parameters(layer):,} ", PAGE), row


def test_table_of_the_cuts_is_right():
    on_the_page("A cut after the pooling sends the fewest bytes")
    rows = re.findall(
        r"\* - (\d) (?:Conv2d|MaxPool2d), (\d)\D(?:ReLU|\s*7)?"
        r" - ([\d,]+) - ([\d,]+) - ([\d,]+)",
        PAGE,
    )
    found = {}
    for first, second, *numbers in rows:
        for cut in range(int(first), 8 if first == "5" else int(second) + 1):
            found[cut] = [int(number.replace(",", "")) for number in numbers]
    model = make_model()
    held = [4 * layer_parameters(layer) for layer in model]
    counts = numel_between(model)
    assert found == {
        cut: [sum(held[:cut]), sum(held[cut:]), 4 * 32 * counts[cut]]
        for cut in range(1, 8)
    }


def test_seven_billion_parameters_take_112_gigabytes():
    on_the_page("a model with 7 billion parameters takes 112 GB")
    states = model_states(7_000_000_000)
    assert sum(states.values()) == 112e9 == 16 * 7e9


def test_example_that_cuts_the_graph_has_the_gradients_of_the_whole(capsys):
    """Both parts have them, and the second part alone leaves none in the first."""
    on_the_page("Here ``detach()`` cuts the graph in two")
    example = run_path(str(ROOT / "docs" / "examples" / "12_cut_the_graph.py"))
    example["main"]()
    assert float(capsys.readouterr().out.split()[-1]) < 1e-15
    first, second = nn.Linear(3, 4), nn.Linear(4, 2)
    numbers = first(torch.ones(5, 3)).detach().requires_grad_()
    second(numbers).sum().backward()
    assert first.weight.grad is None and numbers.grad is not None


def test_nearly_all_multiplications_are_in_the_second_convolution():
    pixels = 8 * 8
    work = [pixels * 16 * 9, pixels * 32 * 16 * 9, 512 * 10]
    share = 100 * work[1] / sum(work)
    on_the_page(f"the second convolution does {share:.0f} % of the multiplications")


def test_recorded_tables_agree_with_the_formulas_and_the_figure():
    rows = re.findall(r"^(\D+) ([\d,]+) +([\d,]+)$", recorded("12_cost"), re.MULTILINE)
    assert len(rows) == 10 and all(measured == said for _, measured, said in rows)
    figure = (ROOT / "docs/figures/12_split.svg").read_text()
    for _, measured, _ in rows:
        assert measured in figure and measured in PAGE


def test_both_ways_print_the_same_losses():
    on_the_page("The losses equal those of the one-process run above, up to rounding.")
    losses = [
        re.search(r"Loss (\S+) -> (\S+)", recorded(name)).groups()
        for name in ("12_two_processes", "12_one_process")
    ]
    assert [float(x) for x in losses[0]] == pytest.approx(
        [float(x) for x in losses[1]], abs=2e-3
    )


def test_replicas_make_as_many_steps_and_another_loss():
    on_the_page("take as many steps as one device with 32")
    on_the_page("group the images into different batches, so the losses differ")
    replicas, one = recorded("12_replicas"), recorded("12_one_process")
    assert "Batch size 16 | Steps 45" in replicas
    assert "Batch size 32 | Steps 45" in one
    rates = [re.search(r"\| ([\d,]+) samples/s", run)[1] for run in (replicas, one)]
    on_the_page(f"{rates[0]} images per second, where one process reached {rates[1]}")
    slow, fast = (1000 * 32 / int(rate.replace(",", "")) for rate in rates)
    assert slow > fast, "the page says that replicas are slower"
    on_the_page(f"A step takes {slow:.1f} ms instead of {fast:.1f}")


def test_loaders_of_two_ranks_draw_the_same_batches():
    on_the_page("Both loaders shuffle with the same seed, so both ranks draw the same")
    loaders = [make_loader(range(20), 6) for _ in range(2)]
    drawn = [[batch.tolist() for batch in loader] for loader in loaders]
    assert drawn[0] == drawn[1] and drawn[0][0] != list(range(6))


def test_autograd_records_a_move_to_another_device():
    on_the_page("autograd records the copy like any other operation")
    moved = torch.ones(2, requires_grad=True).to("meta")
    assert type(moved.grad_fn).__name__ == "ToCopyBackward0"


def test_slice_keeps_the_names_of_its_layers():
    on_the_page("A slice of an ``nn.Sequential`` keeps the names of its layers")
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    joined = model[:2].state_dict() | model[2:].state_dict()
    assert joined.keys() == model.state_dict().keys()


# Who waits


def forward_then_backward(devices, micro_batches):
    numbers = range(micro_batches)
    return [[*(f"F{n}" for n in numbers), *(f"B{n}" for n in numbers)]] * devices


@pytest.mark.parametrize("devices", [2, 3, 4, 5])
@pytest.mark.parametrize("micro_batches", [1, 2, 4, 7, 32])
def test_idle_share_of_the_schedule(devices, micro_batches):
    """(p - 1)/(m + p - 1), for each device as for all."""
    rows = slots(forward_then_backward(devices, micro_batches))
    predicted = Fraction(devices - 1, micro_batches + devices - 1)
    assert idle_share(rows) == predicted
    assert all(idle_share([row]) == predicted for row in rows)
    assert len(rows[0]) == 2 * (micro_batches + devices - 1)


def test_slots_of_two_devices():
    rows = slots(forward_then_backward(2, 2))
    assert rows == [
        ["F0", "F1", "", "", "B0", "B1"],
        ["", "F0", "F1", "B0", "B1", ""],
    ]


def test_idle_shares_on_the_page():
    on_the_page("1/2 with one micro-batch on two devices, 1/5 with four, 1/33 with 32")
    shares = [idle_share(slots(forward_then_backward(2, m))) for m in (1, 4, 32)]
    assert shares == [Fraction(1, 2), Fraction(1, 5), Fraction(1, 33)]


def step_time(devices, micro_batches, forward, backward):
    """When the last task ends, each beginning as soon as it can."""
    ends, free = {}, [0] * devices
    for kind, takes, order in (
        ("F", forward, range(devices)),
        ("B", backward, range(devices - 1, -1, -1)),
    ):
        before = -1 if kind == "F" else 1
        for number in range(micro_batches):
            for device in order:
                needed = ends.get((kind, number, device + before), 0)
                free[device] = max(free[device], needed) + takes
                ends[kind, number, device] = free[device]
    return max(free)


@pytest.mark.parametrize("devices, micro_batches", [(2, 1), (2, 4), (4, 3), (3, 8)])
def test_a_longer_backward_changes_nothing(devices, micro_batches):
    on_the_page("stays the same if a backward takes longer than a forward")
    for backward in (1, 2, 3):
        whole = step_time(devices, micro_batches, 1, backward)
        idle = 1 - Fraction(micro_batches * (1 + backward), whole)
        assert idle == Fraction(devices - 1, micro_batches + devices - 1)


def test_the_shortest_of_so_many_steps_is_drawn():
    on_the_page(f"the shortest of {STEPS}")
    steps = [
        [[("F0", a, a + b)], [("F0", a, a + 1.0)]] for a, b in [(5, 9.0), (7, 3.0)]
    ]
    assert shortest(steps) == [[("F0", 0.0, 3.0)], [("F0", 0.0, 1.0)]]


def test_one_after_the_other_is_no_better_than_one_piece():
    on_the_page("Device 0 must start on the next micro-batch before the gradient")
    on_the_page("or the devices take turns as before")
    tasks = [f"{kind}{number}" for number in range(4) for kind in "FB"]
    assert idle_share(slots([tasks, tasks])) == Fraction(1, 2)


def test_an_order_that_alternates_idles_no_longer_if_it_starts_ahead():
    """1F1B: device 0 has a second forward before its first backward."""
    on_the_page(":ref:`lesson-13` has an order that alternates, and needs less memory.")
    names = {"forward": "F", "backward": "B"}
    orders = [
        [f"{names[what]}{number}" for what, number in SCHEDULES["1f1b"](rank, 2, 4)]
        for rank in range(2)
    ]
    assert orders[0][:4] == ["F0", "F1", "B0", "F2"]
    assert idle_share(slots(orders)) == Fraction(1, 5)


def test_devices_that_wait_for_each_other_are_reported():
    with pytest.raises(ValueError, match="wait for each other"):
        slots([["B0", "F0"], ["F0", "B0"]])


def recorded_steps():
    for micro_batches in (1, 4):
        path = ROOT / f"docs/figures/12_timeline_{micro_batches}.json"
        yield micro_batches, json.loads(path.read_text())["devices"]


def test_recorded_order_is_that_of_the_schedule():
    for micro_batches, devices in recorded_steps():
        orders = [[task for task, _, _ in events] for events in devices]
        assert orders == forward_then_backward(2, micro_batches)
        ends = [{task: end for task, _, end in events} for events in devices]
        for device, events in enumerate(devices):
            for task, begins, _ in events:
                other = 1 - device
                if (task[0] == "F") == (device == 1):  # it needs the other's
                    assert ends[other][task] <= begins, f"{task} on device {device}"


def test_times_on_the_page_are_those_of_the_figure():
    whole = [
        max(end for events in devices for *_, end in events)
        for _, devices in recorded_steps()
    ]
    one, four = (round(time) for time in whole)
    on_the_page(f"the step with 4 micro-batches takes {four} ms instead of {one}")
    promised = round(one * 5 / 8)
    on_the_page(f"five eighths of {one}, which is {promised}")


def test_in_one_piece_no_two_devices_compute_at_once():
    _, (first, second) = next(recorded_steps())
    both = sorted((begins, ends) for _, begins, ends in [*first, *second])
    assert all(a[1] <= b[0] for a, b in pairwise(both))


def test_recorded_transcript_counts_what_the_page_says():
    text = recorded("12_timeline")
    assert "Idle slots: 1/2 of all; (p-1)/(m+p-1) is 1/2" in text
    assert "Idle slots: 1/5 of all; (p-1)/(m+p-1) is 1/5" in text


# Common mistakes


def test_message_about_two_devices_is_in_the_library():
    """It takes two devices to cause it, which not every machine has."""
    on_the_page("``Expected all tensors to be on the same device``")
    words = b"Expected all tensors to be on the same device"
    for library in (Path(torch.__file__).parent / "lib").glob("libtorch*"):
        with library.open("rb") as file:
            size = library.stat().st_size
            if size:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                if content.find(words) >= 0:
                    return
    pytest.fail("no library of torch has this message any more")


@pytest.mark.parametrize(
    "answer, sentence",
    [
        (
            "12_split_network/recv_without_requires_grad",
            "The received tensor has no gradient",
        ),
        ("12_split_network/first_part_never_goes_back", "The first part never learns"),
        ("12_split_network/first_rank_receives_first", "Both ranks block forever"),
        ("12_micro_batches/mean_of_each", "Gradients are m times too large"),
        (
            "12_micro_batches/only_the_last_is_kept",
            "the tensors of the last micro-batch only",
        ),
        ("12_micro_batches/one_after_the_other", "Micro-batches don't make it faster"),
    ],
)
def test_mistake_is_a_known_wrong_answer(answer, sentence):
    on_the_page(sentence)
    exercise, name = answer.split("/")
    known = read_answers(ROOT / "tests/exercises" / exercise / "answers.md", exercise)
    assert [a.is_right for a in known if a.name == name] == [False]
