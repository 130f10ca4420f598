"""Calculator and memory bars: formulas equal to Python's, usable by everybody."""

from __future__ import annotations

import functools
import inspect
import random
import re
import sys

import pytest

from tests.docs import playing
from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "src"))
from common.cost import formulas
from common.cost.formulas import Cluster, Layout, Model

RANDOM = 50  # inputs of each formula
COST = "docs/cost.html"
LESSON = "docs/lessons/15_sharded_data_parallel.html"
PAGE = (ROOT / "docs" / "cost.rst").read_text(encoding="utf-8")
FUNCTIONS = {
    name: function
    for name, function in vars(formulas).items()
    if inspect.isfunction(function) and function.__module__ == formulas.__name__
}

GPT = Model(32, 4096, 32, 2048, 50257)
H100 = Cluster(8, 989e12, 0.5, 450e9, 50e9, 10e-6)


def random_model(dice: random.Random) -> dict:
    heads = dice.randint(1, 128)
    sizes = dice.randint(1, 130), 64 * heads, heads, dice.randint(16, 9000)
    return Model(*sizes, dice.randint(2, 130_000))._asdict()


def random_layout(dice: random.Random) -> dict:
    tensor, pipeline, data = (dice.randint(1, most) for most in (16, 16, 600))
    schedule = dice.choice(["gpipe", "1f1b", "interleaved", "zb-h1"])
    recompute = dice.choice(["none", "selective", "full"])
    counts = dice.randint(1, 16), dice.randint(1, 64), schedule, dice.randint(1, 4)
    axes = tensor, pipeline, data, dice.randint(0, 3)
    last = recompute, dice.random() < 0.5, dice.choice([0, 1, 8, 700])
    return Layout(*axes, *counts, *last)._asdict()


def random_cluster(dice: random.Random) -> dict:
    rates = dice.uniform(1, 2000) * 1e12, dice.uniform(0.1, 1)
    links = dice.uniform(1, 900) * 1e9, dice.uniform(0.1, 100) * 1e9
    return Cluster(dice.randint(1, 16), *rates, *links, dice.random() / 1e4)._asdict()


RANDOM_VALUES = {
    "model": random_model,
    "layout": random_layout,
    "cluster": random_cluster,
    "parameters": lambda dice: dice.randint(1, 10**12),
    "stage": lambda dice: dice.randint(0, 3),
    "stride": lambda dice: dice.randint(1, 20),
    "ranks": lambda dice: dice.randint(1, 2000),
    "recompute": lambda dice: dice.choice(["none", "selective", "full"]),
}
TYPES = {"layers": Model, "tensor": Layout, "per_node": Cluster}


def typed(value):
    """A dict of JavaScript as the type that the Python function takes."""
    if not isinstance(value, dict):
        return value
    return next(kind for name, kind in TYPES.items() if name in value)(**value)


def of_dicts(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*map(typed, arguments))

    return call


@pytest.mark.full
def test_each_formula_gives_the_same_in_javascript(browser):
    dice, calls = random.Random(15), []
    for function in FUNCTIONS.values():
        names = inspect.signature(function).parameters
        for _ in range(RANDOM):
            inputs = tuple(RANDOM_VALUES[name](dice) for name in names)
            calls.append((of_dicts(function), inputs))
    assert len(calls) >= 20 * RANDOM
    with playing.blank_page(browser, "cost-calculator") as page:
        playing.compare(page, calls)
        defined = page.evaluate("Object.keys(play.formulas)")
    assert set(defined) == set(FUNCTIONS), "one of them is in one language only"


# The still table


def expected_row(layout: Layout) -> list[str]:
    """GB of a rank, GB sent along the data axis and along others, seconds, MFU."""
    given = GPT, layout, H100
    numbers = formulas.rank_parameters(GPT, layout)
    held = sum(formulas.state_bytes(numbers, layout.stage, layout.data))
    held += formulas.activation_bytes(GPT, layout)
    others = formulas.tensor_bytes(GPT, layout)
    others += formulas.pipeline_sends(layout) * formulas.stream_bytes(GPT, layout)
    return [
        f"{held / 1e9:.1f}",
        f"{formulas.data_bytes(GPT, layout) / 1e9:.1f}",
        f"{others / 1e9:.1f}",
        f"{formulas.step_seconds(*given):.2f}",
        f"{100 * formulas.mfu(*given):.1f} %",
    ]


def test_the_still_table_has_the_numbers_of_the_formulas():
    common = {"micro_batch": 4, "recompute": "selective"}
    split = {**common, "stage": 1}
    layouts = [Layout(data=64, stage=s, micro_batches=2, **common) for s in (0, 1, 3)]
    layouts += [Layout(tensor=8, data=8, micro_batches=16, **split)]
    layouts += [Layout(pipeline=4, data=16, micro_batches=8, **split)]
    table = PAGE[PAGE.index("* - Layout") : PAGE.index("Three things to try")]
    rows = [re.findall(r"- (.*)", row) for row in table.split("* - ")[2:]]
    assert rows == [expected_row(layout) for layout in layouts]


def test_what_the_page_tells_readers_to_try_is_so():
    split = Layout(micro_batch=4, recompute="selective", stage=1)
    in_node = split._replace(tensor=8, data=8, micro_batches=16)
    over_two = split._replace(tensor=16, data=4, micro_batches=32)
    longer = formulas.step_seconds(GPT, over_two, H100)
    longer /= formulas.step_seconds(GPT, in_node, H100)
    assert f"takes {100 * (longer - 1):.0f} % longer" in PAGE
    start = split._replace(data=64, micro_batches=2, stage=3)
    slow = Cluster(8, 312e12, 0.5, 300e9, 100e9 / 8 / 8, 10e-6)
    ranks = formulas.binding_ranks(GPT, start, slow)
    assert f"*binds* from {ranks} data ranks on" in PAGE
    zero_1 = formulas.data_bytes(GPT, start._replace(stage=1))
    assert formulas.data_bytes(GPT, start) == 3 * zero_1


# In a browser


@pytest.fixture
def opened(browser, site):
    """``opened(name, page)``: the element on its page."""
    players = []

    def open_one(name: str, page_name: str) -> playing.Player:
        players.append(playing.Player(browser, site, name, page_name))
        return players[-1]

    yield open_one
    for player in players:
        player.close()


def type_number(player: playing.Player, label: str, number: str) -> str:
    player.control(label).fill(number)
    return player.press(label, "Enter")


@pytest.mark.full
def test_memory_bars_say_what_fits(opened):
    player = opened("memory-bars", LESSON)
    player.check_everywhere()
    assert "ZeRO-2, FSDP (ZeRO-3), Tensor and Pipeline fit" in player.words
    bars = player.frame.get_by_role("img")
    assert bars.count() == 6
    assert bars.first.get_attribute("aria-label") == (
        "parameters 25.7 GB, gradients 25.7 GB, optimizer state 154 GB, "
        "activations 14.7 GB"
    )
    assert "16 ranks" in player.press("Ranks", "ArrowDown")
    assert bars.count() == 5, "40 heads can't be cut into 16"
    assert "can't cut 40 heads" in player.frame.locator("table").inner_text()
    assert "none of these fits" in type_number(player, "GB of a device", "8")


@pytest.mark.full
def test_the_calculator_says_what_a_layout_costs_and_its_address_keeps_it(opened):
    player = opened("cost-calculator", COST)
    player.check_everywhere()
    held, _, _, seconds, share = expected_row(
        Layout(data=64, stage=3, micro_batch=4, micro_batches=2, recompute="selective")
    )
    assert f"hold {float(held):g} GB each, which fits into 80 GB" in player.words
    assert f"takes {seconds} s, at {share} MFU" in player.words
    group = "HSDP group, 0: none"
    assert "can't form groups of 7" in type_number(player, group, "7")
    said = type_number(player, group, "8")
    assert "64 ranks hold" in said and said != player.press(group, "ArrowUp")
    type_number(player, group, "8")
    assert "HSDP needs ZeRO-3" in player.press("Sharded", "Home")
    type_number(player, group, "0")
    assert "does not fit" in player.press("Sharded", "Home")
    assert "stages need as many layers" in type_number(player, "Stages p", "33")
    assert player.frame.locator("table").count() == 0, "there is nothing to estimate"
    type_number(player, "Stages p", "4")
    said = type_number(player, "Tensor ranks t", "8")
    assert "2,048 ranks" in said
    address = player.page.url
    assert address.endswith("#tensor=8&pipeline=4&stage=0"), address
    player.page.goto("about:blank")
    player.page.goto(address)
    player.page.wait_for_selector("cost-calculator[data-ready]")
    assert player.words == said
    assert player.control("Stages p").input_value() == "4"
    hostile = "#layers=-1&heads=x&stage=9&schedule=zb-h1&nonsense=1&recompute="
    player.page.evaluate("(hash) => { window.location.hash = hash; }", hostile)
    player.page.wait_for_function(
        "document.querySelector('cost-calculator').inputs.schedule === 'zb-h1'"
    )
    inputs = player.element.evaluate("(one) => one.inputs")
    assert (inputs["layers"], inputs["heads"], inputs["stage"]) == (1, 32, 3)
    assert "nonsense" not in inputs and inputs["recompute"] == "selective"
    preset = player.frame.get_by_role("combobox", name="Parameters")
    assert preset.input_value() == "own"
    assert not player.errors
