"""Write the tables of "What will it cost?" and "Which parallelism?".

    python tools/cost_tables.py

tests/docs/test_cost_tables.py computes them again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # for `python tools/cost_tables.py`
from common.cost import formulas  # noqa: E402
from common.cost.formulas import Cluster, Layout, Model  # noqa: E402
from common.cost.search import Found, layouts_that_fit  # noqa: E402
from tools.published_costs import (  # noqa: E402
    DEEPSEEK_V3,
    GROUPS,
    LLAMA_8B,
    NEAR,
    Group,
    Run,
)

FIRST_LINE = ".. Written by tools/cost_tables.py: change that, not this file.\n\n"
DOCS = ROOT / "docs"
MINUS, NOTHING = "\N{MINUS SIGN}", "\N{EN DASH}"

A100 = Cluster(8, 312e12, 0.5, 300e9, 25e9, 10e-6)
H100 = Cluster(8, 989e12, 0.4, 450e9, 50e9, 10e-6)
MEMORY = 80e9
GPT_1, GPT_7 = Model(24, 2048, 16, 2048, 50257), Model(32, 4096, 32, 2048, 50257)
GPT_13, GPT_175 = Model(40, 5120, 40, 2048, 50257), Model(96, 12288, 96, 2048, 50257)

# What the calculator shows before anything is changed, in its units
START = {
    **GPT_7._asdict(),
    **{"per_node": 8, "memory": 80, "peak": 989, "efficiency": 40},
    **{"inside": 450, "between": 50, "latency": 10},
    **{"data": 64, "tensor": 1, "pipeline": 1, "micro_batch": 4, "micro_batches": 2},
    **{"stage": 3, "recompute": "selective", "sequence_parallel": 0},
    **{"schedule": "1f1b", "chunks": 2, "group": 0, "context_ranks": 1},
    "expert_ranks": 1,
}
UNITS = {"peak": 1e12, "efficiency": 0.01, "inside": 1e9, "between": 1e9}
UNITS["latency"] = 1e-6
STAGES = "DDP", "ZeRO-1", "ZeRO-2", "FSDP"
RECOMPUTED = {
    "none": "nothing recomputed",
    "selective": "attention recomputed",
    "ops": "every second product recomputed",
    "full": "all layers recomputed",
}


def address(model: Model, cluster: Cluster, layout: Layout) -> str:
    """The calculator with these inputs."""
    given = model._asdict() | layout._asdict()
    given["sequence_parallel"] = int(layout.sequence_parallel)
    for name, value in cluster._asdict().items():
        given[name] = f"{round(value / UNITS.get(name, 1), 9):g}"
    if layout.schedule != "interleaved":
        given["chunks"] = START["chunks"]  # means nothing then
    changed = {name: x for name, x in given.items() if str(x) != str(START[name])}
    return f"cost.html#{urlencode(changed)}"


def table(title: str, widths: str, rows: list[list[str]], indent: str = "") -> str:
    """A list-table of these rows, of which the first is the head."""
    lines = [
        f".. list-table:: {title}",
        "   :header-rows: 1",
        f"   :widths: {widths}",
        "",
    ]
    for row in rows:
        for number, cell in enumerate(row):
            start = "* -" if number == 0 else "  -"
            lines.append(f"   {start} {cell}")
    return "\n".join(f"{indent}{line}".rstrip() for line in lines) + "\n"


# The calculator's still table


def still_rows() -> list[list[str]]:
    """Five ways to use 64 devices."""
    common = {"micro_batch": 4, "recompute": "selective"}
    ways = {
        "64 data ranks, DDP": Layout(data=64, micro_batches=2, **common),
        "64 data ranks, ZeRO-1": Layout(data=64, stage=1, micro_batches=2, **common),
        "64 data ranks, ZeRO-3": Layout(data=64, stage=3, micro_batches=2, **common),
        "8 data ranks, 8 tensor ranks, ZeRO-1": Layout(
            tensor=8, data=8, stage=1, micro_batches=16, **common
        ),
        "16 data ranks, 4 stages, ZeRO-1": Layout(
            pipeline=4, data=16, stage=1, micro_batches=8, **common
        ),
    }
    head = ["Layout", "GB of a rank", "GB sent, data axis", "GB sent, other axis"]
    rows = [[*head, "seconds", "MFU"]]
    for name, layout in ways.items():
        other = formulas.tensor_bytes(GPT_7, layout)
        other += formulas.pipeline_bytes(GPT_7, layout)
        rows.append(
            [
                name,
                f"{formulas.rank_bytes(GPT_7, layout) / 1e9:.1f}",
                f"{formulas.data_bytes(GPT_7, layout) / 1e9:.1f}",
                f"{other / 1e9:.1f}",
                f"{formulas.step_seconds(GPT_7, layout, H100):.2f}",
                f"{100 * formulas.mfu(GPT_7, layout, H100):.1f} %",
            ]
        )
    return rows


def still_table() -> str:
    title = (
        "A GPT with 6.7 billion parameters on 64 H100 GPUs with 80 GB each, and 512 "
        "sequences of 2,048 tokens per step"
    )
    return FIRST_LINE + table(title, "32 14 16 16 11 11", still_rows())


# Predicted and published


def published_row(run: Run) -> list[str]:
    error = f"{100 * run.error():+.0f} %".replace("-", MINUS)
    if round(100 * run.error()) == 0:
        error = "0 %"
    shown = error if abs(run.error()) <= NEAR else f"**{error}, miss**"
    timed = run.unit in ("tokens/s", "TFLOP/s", "s", "% MFU")
    share = f"{100 * run.share_that_meets():.0f} %" if timed else NOTHING
    digits = 2 if run.published < 2 else 1
    if run.published >= 100:
        digits = 0
    predicted, published = run.predicted(), run.published
    return [
        run.name,
        f"{predicted:,.{digits}f}",
        f"{published:,.{digits}f}",
        shown,
        share,
    ]


def published_table(group: Group) -> str:
    """A table that a phone shows as a table: its rows have at most 36 characters."""
    rows = [["Run", "Estimate", "Published", "Off by", "Meets"]]
    rows += [published_row(run) for run in group.runs]
    assumed = f" Assumed: {group.assumed}." if group.assumed else ""
    return f"{group.source}.{assumed}\n\n" + table(group.title, "30 18 18 18 16", rows)


def published_tables() -> str:
    return FIRST_LINE + "\n".join(published_table(group) for group in GROUPS)


# The three clusters of "Which parallelism?"


QUESTIONS = {
    "1.3 billion parameters, 8 A100 GPUs, 256 sequences": (GPT_1, A100, 1, 256),
    "13 billion parameters, 64 H100 GPUs, 1,024 sequences": (GPT_13, H100, 8, 1024),
    "175 billion parameters, 1,024 H100 GPUs, 2,048 sequences": (
        GPT_175,
        H100,
        128,
        2048,
    ),
}


def way_of(layout: Layout) -> str:
    """Which axes it uses, in words."""
    if layout.tensor > 1 and layout.pipeline > 1:
        return "all three axes"
    if layout.tensor > 1:
        return "data and tensor ranks"
    if layout.pipeline > 1:
        return "data ranks and stages"
    return f"data ranks only, {STAGES[layout.stage]}"


WAYS = [
    *(f"data ranks only, {stage}" for stage in STAGES),
    "data and tensor ranks",
    "data ranks and stages",
    "all three axes",
]


def words(layout: Layout) -> str:
    """A layout in a few words."""
    axes = {
        "t": layout.tensor,
        "c": layout.context_ranks,
        "p": layout.pipeline,
        "d": layout.data,
        "e": layout.expert_ranks,
    }
    sizes = [f"{axis} {ranks}" for axis, ranks in axes.items() if ranks > 1]
    parts = [", ".join(sizes)]
    if layout.group:
        parts.append(f"HSDP in groups of {layout.group}")
    elif formulas.shard_ranks(layout) > 1:
        parts.append(STAGES[layout.stage])
    parts.append(f"micro-batch {layout.micro_batch}")
    if layout.schedule == "interleaved":
        parts.append(f"{layout.chunks} chunks")
    return "; ".join([*parts, RECOMPUTED[layout.recompute]])


def best_of_each_way(question: tuple) -> dict[str, Found | None]:
    """The fastest that fits, for each way; those that don't fit are the last."""
    model, cluster, nodes, batch = question
    best: dict[str, Found | None] = {}
    for found in layouts_that_fit(model, cluster, nodes, MEMORY, batch):
        best.setdefault(way_of(found.layout), found)
    return best | {way: None for way in WAYS if way not in best}


BestOf = Callable[[tuple], dict[str, "Found | None"]]  # of a question

# and its two with long sequences and with experts

LONG_OR_EXPERTS = {
    "8 billion parameters, 131,072 tokens, 64 H100 GPUs, 32 sequences": (
        LLAMA_8B._replace(context=131072),
        H100,
        8,
        32,
    ),
    "671 billion parameters with experts, 2,048 H100 GPUs, 16,384 sequences": (
        DEEPSEEK_V3,
        H100,
        256,
        16384,
    ),
}
ONLY_DATA = "data ranks only"
ROWS = 6  # of such a table


def axes_of(layout: Layout) -> str:
    """Which axes it has beside data ranks, in words."""
    sizes = {
        "context": layout.context_ranks,
        "expert": layout.expert_ranks,
        "tensor": layout.tensor,
    }
    kinds = [kind for kind, ranks in sizes.items() if ranks > 1]
    found = [f"{' and '.join(kinds)} ranks"] if kinds else []
    if layout.pipeline > 1:
        found.append("stages")
    return ", ".join(found) or ONLY_DATA


def best_with_each_axis(question: tuple) -> dict[str, Found | None]:
    """The fastest that fits with each choice of axes, the best first, and of data."""
    model, cluster, nodes, batch = question
    best: dict[str, Found | None] = {}
    for found in layouts_that_fit(model, cluster, nodes, MEMORY, batch):
        best.setdefault(axes_of(found.layout), found)
    first = dict(list(best.items())[: ROWS - 1])
    return first | {ONLY_DATA: best.get(ONLY_DATA)}


def which_rows(question: tuple, best: dict[str, Found | None]) -> list[list[str]]:
    model, cluster, _, _ = question
    rows = [["Axes", "The fastest that fits", "GB of a rank", "seconds", "MFU"]]
    for way, found in best.items():
        if found is None:
            rows.append([way, "none fits", NOTHING, NOTHING, NOTHING])
            continue
        link = address(model, cluster, found.layout)
        held, share = found.bytes / 1e9, 100 * found.mfu
        layout = f"`{words(found.layout)} <{link}>`__"
        rows.append(
            [way, layout, f"{held:.1f}", f"{found.seconds:.2f}", f"{share:.1f} %"]
        )
    return rows


def tables_of(questions: dict[str, tuple], best_of: BestOf) -> str:
    parts = [
        table(title, "22 42 13 12 11", which_rows(question, best_of(question)))
        for title, question in questions.items()
    ]
    return FIRST_LINE + "\n".join(parts)


def which_tables() -> str:
    return tables_of(QUESTIONS, best_of_each_way)


def long_or_experts_tables() -> str:
    return tables_of(LONG_OR_EXPERTS, best_with_each_axis)


FILES = {
    "cost_layouts.inc": still_table,
    "cost_published.inc": published_tables,
    "which_parallelism.inc": which_tables,
    "which_long_or_experts.inc": long_or_experts_tables,
}

if __name__ == "__main__":
    for name, write in FILES.items():
        (DOCS / name).write_text(write(), encoding="utf-8")
