"""Calculator and memory bars: formulas equal to Python's, usable by everybody."""

from __future__ import annotations

import functools
import inspect
import itertools
import random
import sys
from urllib.parse import parse_qsl

import pytest

from tests.docs import playing
from tests.docs.pages import ROOT
from tools import cost_tables, published_costs

sys.path.insert(0, str(ROOT / "src"))
from common.cost import formulas, search
from common.cost.formulas import Cluster, Layout, Model

RANDOM = 50  # inputs of each formula
COST = "docs/cost.html"
LESSON = "docs/lessons/15_sharded_data_parallel/1_keeps.html"
PAGE = (ROOT / "docs" / "cost.rst").read_text(encoding="utf-8")
FUNCTIONS = {
    name: function
    for name, function in vars(formulas).items()
    if inspect.isfunction(function) and function.__module__ == formulas.__name__
}

GPT = Model(32, 4096, 32, 2048, 50257)
MIXTRAL = published_costs.MIXTRAL_8X7B._replace(context=2048)
H100 = Cluster(8, 989e12, 0.4, 450e9, 50e9, 10e-6)


RECOMPUTE = ["none", "selective", "ops", "full"]


def random_model(dice: random.Random) -> dict:
    heads = dice.randint(1, 128)
    sizes = dice.randint(1, 130), 64 * heads, heads, dice.randint(16, 9000)
    form = dice.choice([0, 1, heads]), dice.choice([0, 0, dice.randint(64, 30_000)])
    vocabulary = dice.randint(2, 130_000)
    mixture = dice.choice([(0, 1, 0), (8, 2, 0), (64, 8, 8), (7, 9, 1)])
    dense = dice.choice([(0, 0), (3, dice.randint(64, 30_000))])
    latent = dice.choice([(0, 0), (512, 1536), (512, 0)])
    return Model(*sizes, vocabulary, *form, *mixture, *dense, *latent)._asdict()


def random_layout(dice: random.Random) -> dict:
    tensor, pipeline, data = (dice.randint(1, most) for most in (16, 16, 600))
    schedule = dice.choice(["gpipe", "1f1b", "interleaved", "zb-h1"])
    recompute = dice.choice(RECOMPUTE)
    counts = dice.randint(1, 16), dice.randint(1, 64), schedule, dice.randint(1, 4)
    axes = tensor, pipeline, data, dice.randint(0, 3)
    last = recompute, dice.random() < 0.5, dice.choice([0, 1, 8, 700])
    context = dice.choice([1, 1, 2, 3, 8])
    spread = dice.choice([1, 1, 2, 3, 8])
    return Layout(*axes, *counts, *last, context, spread)._asdict()


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
    "recompute": lambda dice: dice.choice(RECOMPUTE),
    "stages": lambda dice: dice.randint(1, 16),
    "count": lambda dice: dice.randint(1, 64),
    "tokens": lambda dice: dice.randint(1, 2**20),
    "of_experts": lambda dice: dice.uniform(0, 300),
    "expert_ranks": lambda dice: dice.choice([1, 2, 3, 8, 64]),
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
    searches = {"layouts_that_fit", "least_bytes"}
    assert set(defined) == set(FUNCTIONS) | searches, "one is in one language only"


# The search


def random_question(dice: random.Random) -> tuple[Model, Cluster, int, float, int]:
    """Model, cluster, nodes, bytes of a device, and a batch that often divides."""
    heads = dice.choice([8, 12, 32, 40, 64, 96])
    tokens = dice.choice([512, 2048, 8192, 9000, 65_536])
    sizes = dice.randint(4, 96), 128 * heads, heads, tokens
    keys, inner = dice.choice([0, 4, 8]), dice.choice([0, 0, 448 * heads])
    mixture = dice.choice([(0, 1, 0), (0, 1, 0), (8, 2, 0), (6, 1, 1)])
    model = Model(*sizes, dice.choice([50257, 128256]), keys, inner, *mixture)
    per_node = dice.choice([1, 4, 6, 8])
    cluster = typed(random_cluster(dice))._replace(per_node=per_node)
    nodes, each = dice.randint(1, 64), dice.choice([1, 2, 3, 16])
    memory = dice.choice([24e9, 80e9, 141e9, 1e15])
    batch = dice.choice([nodes * per_node * each, each, 1024])
    return model, cluster, nodes, memory, batch


def layouts_that_fit(*question) -> list[dict]:
    """What the Python search finds, as JavaScript writes it."""
    found = search.layouts_that_fit(*map(typed, question))
    return [one._asdict() | {"layout": one.layout._asdict()} for one in found]


def least_bytes(*question) -> float:
    return search.least_bytes(*map(typed, question))


@pytest.mark.nightly
def test_the_search_finds_the_same_layouts_in_javascript(browser):
    dice, calls, lengths = random.Random(34), [], []
    for _ in range(RANDOM):
        model, cluster, nodes, memory, batch = random_question(dice)
        where = model._asdict(), cluster._asdict(), nodes
        calls.append((layouts_that_fit, (*where, memory, batch)))
        calls.append((least_bytes, (*where, batch)))
        lengths.append(len(layouts_that_fit(*where, memory, batch)))
    assert 0 in lengths and max(lengths) > 40, "the questions are too much alike"
    with playing.blank_page(browser, "cost-calculator") as page:
        playing.compare(page, calls)


def test_the_search_finds_what_trying_every_layout_finds():
    """By hand, for two nodes of 4: all that divides evenly, fits, and is allowed."""
    model, batch, memory = GPT._replace(layers=12), 16, 40e9
    cluster = H100._replace(per_node=4, between=1e9)
    found = search.layouts_that_fit(model, cluster, 2, memory, batch)
    tried = {}
    stages = [(0, 0), (1, 0), (2, 0), (3, 0), (3, 2), (3, 4)]
    axes = itertools.product((1, 2, 4), (1, 2, 4, 8), stages, (1, 2, 4, 8))
    for tensor, pipeline, (stage, group), size in axes:
        data, left = divmod(8, tensor * pipeline)
        if left or batch % (data * size) or (data == 1 and stage):
            continue
        if group and (group != 4 // tensor or group >= data):
            continue  # a group of HSDP is what a node has
        for recompute, chunks in itertools.product(RECOMPUTE, (1, 2, 4)):
            schedule = "interleaved" if chunks > 1 else "1f1b"
            count = batch // data // size
            kind = schedule, chunks, recompute, tensor > 1, group
            layout = Layout(tensor, pipeline, data, stage, size, count, *kind)
            uneven = chunks > 1 and (pipeline == 1 or count % pipeline)
            held = formulas.rank_bytes(model, layout)
            if pipeline * chunks <= 12 and not uneven and held <= 0.9 * memory:
                same = tensor, pipeline, stage
                seconds = formulas.step_seconds(model, layout, cluster)
                tried[same] = min(seconds, tried.get(same, seconds))
    assert len(found) == len(tried) > 10
    for one in found:
        same = one.layout.tensor, one.layout.pipeline, one.layout.stage
        assert one.seconds == pytest.approx(tried[same], rel=1e-5)
    times = [round(one.seconds, 5) for one in found]
    assert times == sorted(times)


def test_a_layout_that_the_search_finds_uses_all_devices_and_the_whole_batch():
    found = search.layouts_that_fit(GPT, H100, 3, 80e9, 48)
    assert len(found) > 5
    for layout, held, *_ in found:
        assert formulas.all_ranks(layout) == 24
        assert layout.data * layout.micro_batch * layout.micro_batches == 48
        assert held <= 72e9 and not formulas.why_not(GPT, layout)


def test_the_least_memory_is_the_bound_below_which_nothing_fits():
    least = search.least_bytes(GPT, H100, 1, 16)
    assert search.layouts_that_fit(GPT, H100, 1, least / 0.9 * 1.001, 16)
    assert not search.layouts_that_fit(GPT, H100, 1, least / 0.9 * 0.999, 16)
    assert search.least_bytes(GPT._replace(layers=1, heads=7), H100, 1, 1) == 0


def test_only_sequences_that_are_long_are_cut_by_the_search():
    """262,144 tokens of an 8B fit on no GPU that has all of them."""
    model = Model(32, 4096, 32, 8192, 128256, kv_heads=8, inner=14336)
    short = search.layouts_that_fit(model, H100, 1, 80e9, 64)
    assert {one.layout.context_ranks for one in short} == {1}
    long = model._replace(context=262_144)
    found = search.layouts_that_fit(long, H100, 1, 141e9, 2)
    assert {layout.tensor * layout.context_ranks for layout, *_ in found} == {8}
    assert {layout.context_ranks for layout, *_ in found} == {1, 2, 4, 8}


def test_only_experts_are_spread_by_the_search():
    """Each number of expert ranks that divides the experts and the data ranks."""
    dense = GPT._replace(layers=8)
    found = search.layouts_that_fit(dense, H100, 1, 1e15, 64)
    assert {one.layout.expert_ranks for one in found} == {1}
    mixture = dense._replace(experts=12, chosen=2)
    found = search.layouts_that_fit(mixture, H100, 1, 1e15, 64)
    assert {one.layout.expert_ranks for one in found} == {1, 2, 4}  # 8 don't divide 12
    for layout, *_ in found:
        assert layout.data % layout.expert_ranks == 0


def test_on_a_slow_network_the_search_shards_in_groups():
    """Four nodes of 8 A100 GPUs that share 100 Gb/s, as in "Which parallelism?"."""
    slow = Cluster(8, 312e12, 0.5, 300e9, 100e9 / 8 / 8, 10e-6)
    found = search.layouts_that_fit(GPT, slow, 4, 80e9, 512)
    fsdp = next(one for one in found if one.layout.stage == 3)
    assert fsdp.layout.group == 8 and fsdp.layout.tensor == 1
    whole = fsdp.layout._replace(group=0)
    assert formulas.step_seconds(GPT, whole, slow) > fsdp.seconds


def test_of_equally_fast_layouts_the_simplest_is_first():
    """All data ranks of one node hide everything with DDP and with FSDP."""
    small = Model(24, 2048, 16, 2048, 50257)
    first, second, *_ = search.layouts_that_fit(small, H100, 1, 80e9, 256)
    assert [first.layout.stage, second.layout.stage] == [0, 3]
    assert first.seconds == pytest.approx(second.seconds) and first.bytes > second.bytes


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tensor": 3}, "3 tensor ranks can't share 32 heads."),
        ({"tensor": 16}, "16 tensor ranks can't share 8 heads of keys and values."),
        ({"pipeline": 33}, "33 stages need as many layers; there are 32."),
        (
            {"pipeline": 4, "schedule": "interleaved", "chunks": 2, "micro_batches": 6},
            "Interleaving 4 ranks needs a multiple of 4 micro-batches: take 8 instead "
            "of 6.",
        ),
        (
            {"context_ranks": 3},
            "3 context ranks cut a sequence into 6 chunks: take 2052 tokens instead of "
            "2048.",
        ),
        ({"context_ranks": 4}, ""),
        ({"expert_ranks": 2}, "2 expert ranks need a model with experts: take 1."),
        ({"group": 8, "data": 8}, "HSDP needs ZeRO-3."),
        ({"group": 3, "data": 8, "stage": 3}, "8 data ranks can't form groups of 3."),
        ({"tensor": 8, "pipeline": 4, "data": 2}, ""),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_sentence(changed, words):
    model = GPT._replace(kv_heads=8, inner=14336)
    assert formulas.why_not(model, Layout(**changed)) == words


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"expert_ranks": 3, "data": 9}, "3 expert ranks can't share 8 experts."),
        (
            {"expert_ranks": 8, "data": 2, "context_ranks": 2},
            "4 data and context ranks can't form groups of 8.",
        ),
        (
            {"expert_ranks": 8, "data": 16, "stage": 3, "group": 4},
            "A group of 4 that shards can't hold 8 expert ranks.",
        ),
        ({"expert_ranks": 8, "data": 2, "context_ranks": 4}, ""),
    ],
)
def test_experts_that_cannot_be_spread_are_refused_in_one_sentence(changed, words):
    assert formulas.why_not(MIXTRAL, Layout(**changed)) == words


def test_a_token_cannot_choose_more_experts_than_there_are():
    greedy = MIXTRAL._replace(chosen=9)
    assert formulas.why_not(greedy, Layout()) == "A token can't choose 9 of 8 experts."


def test_the_presets_are_the_models_of_the_published_runs():
    text = (ROOT / "docs/_static/js/estimates.js").read_text(encoding="utf-8")
    for name, model in (
        ("Mixtral 8x7B", published_costs.MIXTRAL_8X7B),
        ("Mixtral 8x22B", published_costs.MIXTRAL_8X22B),
        ("Qwen2 57B-A14B", published_costs.QWEN2_57B),
    ):
        sizes = [model.layers, model.width, model.heads, model.inner]
        rest = model.kv_heads, model.vocabulary, model.experts, model.chosen
        numbers = ", ".join(map(str, (*rest, model.shared_experts)))
        assert f'"{name}": mixture({sizes}, {numbers})' in text
    model = published_costs.DEEPSEEK_V3
    sizes = [model.layers, model.width, model.heads, model.inner]
    rest = model.kv_heads, model.vocabulary, model.experts, model.chosen
    numbers = ", ".join(map(str, (*rest, model.shared_experts)))
    names = "dense_layers", "dense_inner", "key_rank", "query_rank"
    more = ", ".join(f"{name}: {getattr(model, name)}" for name in names)
    assert f"...mixture({sizes}, {numbers}),\n      ...{{ {more} }}," in text


def test_expert_ranks_in_a_node_spare_no_slow_link_as_the_page_says():
    slow = Cluster(8, 312e12, 0.5, 300e9, 100e9 / 8 / 8, 10e-6)
    fsdp = Layout(data=64, micro_batch=4, micro_batches=2, stage=3)
    start, fsdp = (fsdp._replace(recompute=kind) for kind in ("selective", "ops"))
    spread = fsdp._replace(expert_ranks=8)
    page = " ".join(PAGE.split())
    held = formulas.rank_bytes(MIXTRAL, start) / 1e9
    assert f"or it needs {held:.1f} GB and doesn't fit" in page and held > 80
    for layout in (fsdp, spread):
        assert formulas.rank_bytes(MIXTRAL, layout) < search.ROOM * 80e9
    assert f"sends {formulas.data_bytes(MIXTRAL, fsdp) / 1e9:.0f} GB in a step" in page
    seconds = formulas.step_seconds(MIXTRAL, fsdp, slow)
    assert f"which takes {seconds:.1f} s. Now set 8 expert ranks" in page
    rest = formulas.data_bytes(MIXTRAL, spread) / 1e9
    rows = formulas.expert_bytes(MIXTRAL, spread) / 1e9
    assert f"only {rest:.0f} GB on the data axis, and {rows:.0f} GB of tokens" in page
    seconds = formulas.step_seconds(MIXTRAL, spread, slow)
    assert f"the step still takes {seconds:.1f} s" in page


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
    field = player.frame.get_by_role("spinbutton", name=label, exact=True)
    field.fill(number)
    field.press("Enter")
    return player.words


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_the_calculator_says_what_a_layout_costs_and_its_address_keeps_it(opened):
    player = opened("cost-calculator", COST)
    player.check_everywhere()
    fsdp = Layout(data=64, stage=3, micro_batch=4, micro_batches=2)
    given = GPT, fsdp._replace(recompute="selective"), H100
    held = formulas.rank_bytes(*given[:2]) / 1e9
    seconds, share = formulas.step_seconds(*given), 100 * formulas.mfu(*given)
    assert f"hold {held:.3g} GB each, which fits into 80 GB" in player.words
    assert f"takes {seconds:.3g} s, at {share:.3g} % MFU" in player.words
    group = "HSDP group, 0: none"
    assert "can't form groups of 7" in type_number(player, group, "7")
    said = type_number(player, group, "8")
    assert "64 ranks hold" in said and said != player.press(group, "ArrowUp")
    type_number(player, group, "8")
    assert "HSDP needs ZeRO-3" in player.press("Sharded", "Home")
    type_number(player, group, "0")
    assert "does not fit" in player.press("Sharded", "Home")
    assert "stages need as many layers" in type_number(player, "Stages p", "33")
    shown = player.frame.locator(".stage table")
    assert shown.count() == 0, "there is nothing to estimate"
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


@pytest.fixture
def calculator(opened):
    return opened("cost-calculator", COST)


def choose_model(player: playing.Player, name: str):
    """Its choice of models; the bar's name has the same word."""
    preset = player.frame.get_by_role("combobox", name="Parameters")
    preset.select_option(name)
    return preset


def answer(player: playing.Player, words: str) -> str:
    """What is said of the layouts that fit, once it has these words."""
    line = player.frame.locator(".answer")
    line.filter(has_text=words).wait_for()
    return line.inner_text()


def spread_experts(player: playing.Player, ranks: int) -> str:
    return type_number(player, "Expert ranks e", str(ranks))


def found_rows(player: playing.Player) -> list[list[str]]:
    rows = player.frame.locator("table.found tr").all()[1:]
    return [row.locator("th, td").all_inner_texts() for row in rows]


@pytest.mark.nightly
def test_the_calculator_lists_the_layouts_that_fit_and_uses_the_chosen_one(calculator):
    """The question that people have: 13 B, 32 H100, sequences of 8,192 tokens."""
    choose_model(calculator, "13 B")
    type_number(calculator, "Tokens T of a sequence", "8192")
    type_number(calculator, "Nodes", "4")
    type_number(calculator, "Sequences per step", "256")
    assert calculator.control("Data ranks d").input_value() == "32"
    assert calculator.control("Micro-batches m").input_value() == "2"  # of 4 sequences
    model = Model(40, 5120, 40, 8192, 50257)
    found = search.layouts_that_fit(model, H100, 4, 80e9, 256)
    words = cost_tables.words(found[0].layout)
    said = answer(calculator, "256 sequences on 32 devices")
    assert f"{len(found)} layouts" in said and f"The fastest is {words}." in said
    rows = found_rows(calculator)
    assert [row[0] for row in rows] == [cost_tables.words(x.layout) for x in found[:10]]
    assert rows[0][1:] == [
        f"{found[0].bytes / 1e9:.3g}",
        f"{found[0].seconds:.3g} s",
        f"{100 * found[0].mfu:.3g} %",
        f"{found[0].tokens:,.0f}",
    ]
    button = calculator.frame.get_by_role("button", name=f"Use {words}", exact=True)
    button.click()
    assert f"takes {found[0].seconds:.3g} s" in calculator.words
    address = calculator.page.url.partition("#")[2]
    expected = cost_tables.address(model, H100, found[0].layout).partition("#")[2]
    assert dict(parse_qsl(address)) == dict(parse_qsl(expected))
    calculator.check_phone()
    assert not calculator.errors


@pytest.mark.full
def test_the_calculator_says_when_no_layout_fits(calculator):
    choose_model(calculator, "Llama 3 405 B")
    type_number(calculator, "Nodes", "1")
    said = answer(calculator, "No layout fits")
    model = Model(126, 16384, 128, 2048, 128256, kv_heads=8, inner=53248)
    least = search.least_bytes(model, H100, 1, 512)
    assert f"the smallest takes {least / 1e9:,.0f} GB of 72 GB" in said
    assert not found_rows(calculator)
    type_number(calculator, "Sequences per step", "7")
    type_number(calculator, "Nodes", "127")  # a prime number, more than the stages
    answer(calculator, "No layout divides 7 sequences on 1,016 devices evenly")


@pytest.mark.full
def test_a_model_that_is_chosen_keeps_the_sequence(calculator):
    type_number(calculator, "Tokens T of a sequence", "4096")
    for model in ("Llama 3 8 B", "Llama 3 70 B", "175 B"):
        preset = choose_model(calculator, model)
        assert preset.input_value() == model
        assert calculator.control("Tokens T of a sequence").input_value() == "4096"


@pytest.mark.full
def test_the_calculator_counts_days_hours_and_a_price(calculator):
    layout = Layout(data=64, stage=3, micro_batch=4, micro_batches=2)
    layout = layout._replace(recompute="selective")
    type_number(calculator, "Tokens in all, billions", "140")
    hours = 140e9 / formulas.device_tokens(GPT, layout, H100) / 3600
    rows = calculator.frame.locator("table.costs").last
    text = rows.inner_text()
    assert f"days\t{hours / 24 / 64:.3g}\n" in text
    assert f"GPU-hours\t{hours:,.0f}" in text and "price" not in text
    type_number(calculator, "Price of a GPU-hour", "2.5")
    assert f"price\t{hours * 2.5:,.0f}" in rows.inner_text()
    calculator.control("Price of a GPU-hour").fill("")
    calculator.page.keyboard.press("Enter")
    assert "price" not in rows.inner_text()


@pytest.mark.full
def test_interleaving_that_the_micro_batches_do_not_allow_is_refused(calculator):
    type_number(calculator, "Stages p", "4")
    type_number(calculator, "Micro-batches m", "6")
    calculator.control("Schedule").select_option("interleaved")
    assert "take 8 instead of 6" in calculator.words
    said = type_number(calculator, "Micro-batches m", "8")
    assert "isn't possible" not in said
    rows = calculator.frame.locator(".stage").inner_text()
    assert "pipeline bubble\t18.8 %" in rows  # 3 / (2 x 8)


@pytest.mark.nightly
def test_a_model_with_experts_says_what_a_token_uses(calculator):
    choose_model(calculator, "Mixtral 8x7B")
    assert "A token uses 12.9 B of the 46.7 B parameters." in calculator.words
    rows = calculator.frame.locator(".stage")
    assert "expert axis" not in rows.inner_text()
    assert "3 expert ranks can't share 8 experts." in spread_experts(calculator, 3)
    spread_experts(calculator, 8)
    layout = Layout(data=64, stage=3, micro_batch=4, micro_batches=2)
    layout = layout._replace(recompute="selective", expert_ranks=8)
    sent = formulas.expert_bytes(MIXTRAL, layout) / 1e9
    seconds = 1000 * formulas.expert_seconds(MIXTRAL, layout, H100)
    assert f"expert axis\t{sent:.3g} GB\t{seconds:.3g} ms" in rows.inner_text()
    held = formulas.rank_bytes(MIXTRAL, layout) / 1e9
    assert f"hold {held:.3g} GB each" in calculator.words
    assert "experts=8&chosen=2" in calculator.page.url
    found = search.layouts_that_fit(MIXTRAL, H100, 8, 80e9, 512)
    words = [cost_tables.words(one.layout) for one in found[:10]]
    answer(calculator, f"{len(found)} layouts")
    assert [row[0] for row in found_rows(calculator)] == words
    assert any("d 64, e 8;" in layout for layout in words)
    choose_model(calculator, "6.7 B")
    assert "8 expert ranks need a model with experts" in calculator.words
    calculator.check_phone()


@pytest.mark.full
def test_the_gathering_of_zero_1_after_the_step_has_a_row(calculator):
    assert "gathered after" not in calculator.frame.locator(".stage").inner_text()
    calculator.control("Sharded").select_option("1")
    layout = Layout(data=64, stage=1, micro_batch=4, micro_batches=2)
    after = 1000 * formulas.gather_seconds(GPT, layout, H100)
    rows = calculator.frame.locator(".stage").inner_text()
    assert f"gathered after the step\t\t{after:.3g} ms" in rows
