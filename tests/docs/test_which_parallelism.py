"""The decision page: each number follows from the formulas, each link fills them in."""

import itertools
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


def layout(t, p, d, stage, size, count, sequence_parallel=False, recompute="selective"):
    axes = {"tensor": t, "pipeline": p, "data": d, "stage": stage}
    batch = {"micro_batch": size, "micro_batches": count, "recompute": recompute}
    return Layout(**axes, **batch, sequence_parallel=sequence_parallel)


ROWS = [
    (GPT_1, A100, layout(1, 1, 8, 0, 4, 8)),
    (GPT_1, A100, layout(1, 1, 8, 1, 4, 8)),
    (GPT_13, H100, layout(1, 1, 64, 1, 2, 8)),
    (GPT_13, H100, layout(1, 1, 64, 3, 2, 8)),
    (GPT_13, H100, layout(8, 1, 8, 1, 4, 32, True)),
    (GPT_175, H100, layout(1, 1, 1024, 3, 1, 2)),
    (GPT_175, H100, layout(1, 1, 1024, 3, 1, 2, recompute="full")),
    (GPT_175, H100, layout(8, 1, 128, 3, 1, 16, True)),
    (GPT_175, H100, layout(8, 1, 128, 3, 4, 4, True)),
    (GPT_175, H100, layout(8, 8, 16, 1, 1, 128, True)),
    (GPT_175, H100, layout(4, 4, 64, 1, 1, 32, True)),
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
    assert fits == [True, True, False, True, True, False, *[True] * 5]
    said = {3: "takes {:.1f} GB", 5: "needs {:.1f} GB with one sequence"}
    said |= {6: "then {:.1f} GB are enough"} | dict.fromkeys(
        (7, 9, 10), "into {:.1f} GB"
    )
    for row, words in said.items():
        assert words.format(whole(ROWS[row][0], ROWS[row][2])) in PROSE


def share_of_peak(row):
    model, cluster, plan = ROWS[row]
    return f"{100 * formulas.mfu(model, plan, cluster):.1f} %"


def test_third_cluster_trains_fastest_as_told():
    said = {6: "at {} MFU", 7: "MFU drops to {}", 8: "a quarter as often: {}"}
    for row, words in (said | {9: "its {} are less", 10: "reach {}, with"}).items():
        assert words.format(share_of_peak(row)) in PROSE
    bubble = formulas.bubble_share(ROWS[10][2])
    assert f"with {100 * bubble:.0f} % of idle slots" in PROSE
    times = {row: formulas.step_seconds(GPT_175, ROWS[row][2], H100) for row in (6, 10)}
    assert f"{100 * (1 - times[10] / times[6]):.0f} % less time than with FSDP" in PROSE
    assert "all powers of two up to 16 tensor ranks and 32 stages" in PROSE
    assert min(fitting_layouts())[1] == ROWS[10][2]


def fitting_layouts():
    """(seconds, layout) of all that train the third cluster's 2,048 sequences."""
    powers = [2**n for n in range(11)]
    grid = itertools.product(powers[:5], powers[:6], range(4), powers[:4])
    for (t, p, stage, size), kind in itertools.product(
        grid, ("none", "selective", "full")
    ):
        d = 1024 // (t * p)
        if count := 2048 // (d * size):
            plan = layout(t, p, d, stage, size, count, t > 1, kind)
            if whole(GPT_175, plan) <= 72:
                yield formulas.step_seconds(GPT_175, plan, H100), plan


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


def test_context_parallel_gathers_unless_told_to_rotate():
    from torch.distributed.tensor.experimental import _attention
    from torch.distributed.tensor.experimental._context_parallel import (
        _attention as module,
    )

    assert "all-gathers by default" in PROSE
    assert module._cp_options.rotate_method is module._RotateMethod.ALL_GATHER
    assert callable(_attention.set_rotate_method)


def test_eight_stages_idle_as_told_with_four_times_as_many_micro_batches():
    bubble = formulas.bubble_share(Layout(pipeline=8, micro_batches=32))
    assert f"still idle for {100 * bubble:.0f} % of the useful time" in PROSE
