"""The decision page: each number follows from the formulas, each link fills them in."""

import re
import sys
from urllib.parse import parse_qsl

import pytest

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "src"))
from common.cost import formulas
from common.cost.formulas import Cluster, Layout, Model

PAGE = (ROOT / "docs" / "which_parallelism.rst").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())
A100 = Cluster(8, 312e12, 0.5, 300e9, 25e9, 10e-6)
H100 = Cluster(8, 989e12, 0.5, 450e9, 50e9, 10e-6)
SHARED = A100._replace(between=100e9 / 8 / 8)  # 100 Gb/s for a node of 8
GPT_1, GPT_13 = Model(24, 2048, 16, 2048, 50257), Model(40, 5120, 40, 2048, 50257)
GPT_7, GPT_175 = Model(32, 4096, 32, 2048, 50257), Model(96, 12288, 96, 2048, 50257)


def layout(t, p, d, stage, size, count, sequence_parallel=False):
    axes = {"tensor": t, "pipeline": p, "data": d, "stage": stage}
    batch = {"micro_batch": size, "micro_batches": count, "recompute": "selective"}
    return Layout(**axes, **batch, sequence_parallel=sequence_parallel)


ROWS = [
    (GPT_1, A100, layout(1, 1, 8, 0, 4, 8)),
    (GPT_1, A100, layout(1, 1, 8, 1, 4, 8)),
    (GPT_13, H100, layout(1, 1, 64, 1, 2, 8)),
    (GPT_13, H100, layout(1, 1, 64, 3, 2, 8)),
    (GPT_13, H100, layout(8, 1, 8, 1, 4, 32, True)),
    (GPT_175, H100, layout(1, 1, 1024, 3, 1, 2)),
    (GPT_175, H100, layout(8, 1, 128, 3, 1, 16, True)),
    (GPT_175, H100, layout(8, 8, 16, 1, 1, 128, True)),
]
# what the calculator shows before anything is changed, in its units
START = {
    **{**GPT_7._asdict(), "per_node": 8, "memory": 80, "peak": 989, "efficiency": 50},
    **{"inside": 450, "between": 50, "latency": 10, "data": 64, "tensor": 1},
    **{"pipeline": 1, "micro_batch": 4, "micro_batches": 2, "stage": 3},
    **{"recompute": "selective", "sequence_parallel": 0, "schedule": "1f1b"},
    **{"chunks": 2, "group": 0},
}
UNITS = {"peak": 1e12, "efficiency": 0.01, "inside": 1e9, "between": 1e9}
UNITS["latency"] = 1e-6


def state(model, plan):
    numbers = formulas.rank_parameters(model, plan)
    return (
        sum(formulas.state_bytes(numbers, plan.stage, formulas.shard_ranks(plan))) / 1e9
    )


def whole(model, plan):
    return state(model, plan) + formulas.activation_bytes(model, plan) / 1e9


def test_link_of_hsdp_fills_in_its_layout():
    address = re.search(
        r"`HSDP\s+in\s+groups\s+of\s+8\s+<cost\.html#(\S+)>", PAGE
    ).group(1)
    plan = layout(1, 1, 32, 3, 4, 4)._replace(group=8)
    texts = {name: str(value) for name, value in START.items()}
    texts |= dict(parse_qsl(address, strict_parsing=True))
    wanted = inputs(GPT_7, SHARED, plan)
    assert all(texts[n] == v or float(texts[n]) == v for n, v in wanted.items())


def inputs(model, cluster, plan):
    """What the calculator's fields must hold for this row."""
    rates = {
        name: round(value / UNITS.get(name, 1), 9)
        for name, value in cluster._asdict().items()
    }
    chosen = plan._asdict() | {"sequence_parallel": int(plan.sequence_parallel)}
    return START | model._asdict() | rates | chosen | {"chunks": 2}


def table():
    rows = PAGE[PAGE.index("* - Layout") : PAGE.index("Each link opens")]
    return [re.findall(r"- (.*)", row) for row in rows.split("* - ")[2:]]


def test_table_has_the_numbers_of_the_formulas():
    assert len(table()) == len(ROWS)
    for row, (model, cluster, plan) in zip(table(), ROWS, strict=True):
        given = model, plan, cluster
        assert row[0:3] == [
            f"{whole(model, plan):.1f}",
            f"{formulas.step_seconds(*given):.2f}",
            f"{100 * formulas.mfu(*given):.1f} %",
        ]


@pytest.mark.parametrize("index", range(len(ROWS)))
def test_link_fills_in_the_row(index):
    address = re.search(r"cost\.html#(\S+)>", table()[index][3]).group(1)
    given = dict(parse_qsl(address, strict_parsing=True))
    assert set(given) <= set(START)
    texts = {name: str(value) for name, value in START.items()} | given
    wanted = inputs(*ROWS[index])
    for name, value in wanted.items():
        if isinstance(value, str):
            assert texts[name] == value
        else:
            assert float(texts[name]) == value, name


def test_start_is_that_of_the_calculator():
    """If the calculator starts elsewhere, the links mean something else."""
    script = (ROOT / "docs/_static/js/cost-calculator.js").read_text(encoding="utf-8")
    start = script[script.index("const START") : script.index("const fitting")]
    for name in ("data", "tensor", "pipeline", "micro_batch", "micro_batches", "stage"):
        assert re.search(rf"\b{name}: {START[name]}\b", start), name
    assert 'models["6.7 B"]' in start and "H100 80 GB, 400 Gb" in start


def test_worked_clusters_fit_or_not_as_told():
    ddp = ROWS[0][2]
    saved = whole(GPT_1, ddp) - state(GPT_1, ddp)
    assert f"takes {state(GPT_1, ddp):.1f} GB, and four sequences" in PROSE
    assert f"of activations {saved:.1f} GB" in PROSE
    unsharded = layout(1, 1, 64, 0, 2, 8)
    assert f"{state(GPT_13, unsharded):.1f} GB of state don't fit" in PROSE
    sequences = {plan.data * plan.micro_batch * plan.micro_batches for *_, plan in ROWS}
    assert sequences == {256, 1024, 2048}
    assert "fits if it takes at most 72 of 80 GB" in PROSE
    fits = [whole(model, plan) <= 72 for model, _, plan in ROWS]
    assert fits == [True, True, False, True, True, False, True, True]
    said = {3: "takes {:.1f} GB", 5: "needs {:.1f} GB with one sequence"}
    for row, words in (said | dict.fromkeys((6, 7), "fit into {:.1f} GB")).items():
        assert words.format(whole(ROWS[row][0], ROWS[row][2])) in PROSE
    share = formulas.mfu(ROWS[6][0], ROWS[6][2], ROWS[6][1])
    assert f"MFU drops to {100 * share:.1f} %" in PROSE
    bubble = formulas.bubble_share(ROWS[-1][2])
    assert f"keep the idle slots at {100 * bubble:.0f} %" in PROSE


def test_wrong_answer_costs_what_the_first_paragraph_says():
    seconds = [formulas.step_seconds(m, plan, c) for m, c, plan in (ROWS[3], ROWS[4])]
    assert f"takes {100 * (seconds[1] / seconds[0] - 1):.0f} % longer" in PROSE


def test_reasons_of_the_five_steps():
    """What a layer waits for, and that the second cluster hides what it gathers."""
    assert "Each layer waits for four all-reduces" in PROSE
    one = GPT_13._replace(layers=1)
    assert formulas.tensor_calls(one, layout(8, 1, 8, 1, 4, 1)) == 4
    assert sum(formulas.state_bytes(1, 0, 1)) == 16 and ":math:`16 P`" in PAGE
    model, cluster, plan = ROWS[3]
    hidden = formulas.hiding_seconds(model, plan, cluster)
    assert formulas.data_seconds(model, plan, cluster) < hidden


def test_slow_network_limits_fsdp():
    for stage, words in ((3, "limits FSDP to {} MFU"), (1, "reaches {}")):
        share = formulas.mfu(GPT_7, layout(1, 1, 32, stage, 4, 4), SHARED)
        assert words.format(f"{100 * share:.1f} %") in PROSE
    hsdp = layout(1, 1, 32, 3, 4, 4)._replace(group=8)
    share = formulas.mfu(GPT_7, hsdp, SHARED)
    assert f"&group=8>`__ reaches {100 * share:.1f} %" in PROSE
    (_, ranks, rounds, part) = formulas.data_rings(hsdp)[1]
    sent = rounds * part * (ranks - 1) / ranks  # of P, between nodes
    assert sent < formulas.data_rounds(layout(1, 1, 32, 1, 4, 4)) * 31 / 32
    rounds = {
        (stage, count): formulas.data_rounds(layout(1, 1, 32, stage, 4, count))
        for stage in (1, 3)
        for count in (1, 4)
    }
    assert rounds[3, 4] == 6 * rounds[1, 4], "a sixth of the bytes"
    assert rounds[3, 1] == 1.5 * rounds[1, 1], "half as much again"


def test_names_of_torch_exist():
    from torch.distributed import fsdp
    from torch.distributed.tensor import experimental

    assert callable(fsdp.fully_shard) and callable(fsdp.FullyShardedDataParallel)
    assert "context_parallel" in experimental.__all__
