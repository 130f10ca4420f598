"""Published runs, and what the formulas of src/common/cost say about them.

tools/cost_tables.py writes them into docs/cost_published.inc. Each number was read in
its source; where a source leaves something open, the group's ``assumed`` says what we
took.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
from common.cost import formulas  # noqa: E402
from common.cost.formulas import Cluster, Layout, Model  # noqa: E402

GIB = 2**30
NEAR = 0.15  # what differs by more is a miss

A100 = Cluster(8, 312e12, 0.50, 300e9, 25e9, 10e-6)
FASTER = A100._replace(efficiency=0.60)
H100 = Cluster(8, 989e12, 0.42, 450e9, 50e9, 10e-6)
EAGER = H100._replace(efficiency=0.37)  # without torch.compile
WIDE = H100._replace(efficiency=0.50)  # for products as large as Mixtral 8x22B's

LLAMA_8B = Model(32, 4096, 32, 8192, 128256, kv_heads=8, inner=14336)
LLAMA_70B = Model(80, 8192, 64, 8192, 128256, kv_heads=8, inner=28672)
LLAMA_405B = Model(126, 16384, 128, 8192, 128256, kv_heads=8, inner=53248)
_LARGE = Model(56, 6144, 48, 4096, 32000, kv_heads=8, inner=16384)
MIXTRAL_8X22B = _LARGE._replace(experts=8, chosen=2)
_SMALL = Model(32, 4096, 32, 4096, 32000, kv_heads=8, inner=14336)
MIXTRAL_8X7B = _SMALL._replace(experts=8, chosen=2)
_FINE = Model(28, 3584, 28, 4096, 151646, kv_heads=4, inner=2560)
QWEN2_57B = _FINE._replace(experts=64, chosen=8, shared_experts=8)
_LATENT = Model(61, 7168, 128, 4096, 129280, inner=2048, key_rank=512, query_rank=1536)
_DENSE = _LATENT._replace(dense_layers=3, dense_inner=18432)
DEEPSEEK_V3 = _DENSE._replace(experts=256, chosen=8, shared_experts=1)


@dataclass(frozen=True)
class Run:
    """A number that somebody measured, and the layout that it was measured with."""

    name: str
    unit: str  # one of UNITS below
    published: float
    model: Model
    layout: Layout
    cluster: Cluster

    def predicted(self) -> float:
        """The same number by the formulas."""
        return UNITS[self.unit](self.model, self.layout, self.cluster)

    def error(self) -> float:
        """How much more the formulas say, as a share of the published number."""
        return self.predicted() / self.published - 1

    def share_that_meets(self) -> float:
        """The share of the peak with which the formulas give the published time."""
        low, high = 0.01, 1.0
        slower_is_more = self.unit == "s"
        for _ in range(40):
            middle = (low + high) / 2
            cluster = self.cluster._replace(efficiency=middle)
            above = replace(self, cluster=cluster).error() > 0
            if above == slower_is_more:
                low = middle
            else:
                high = middle
        return low


def _gib(model: Model, layout: Layout, cluster: Cluster) -> float:
    return formulas.rank_bytes(model, layout) / GIB


def _state_gb(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Of 7.5 billion parameters exactly, as the paper has them."""
    return sum(formulas.state_bytes(7.5e9, layout.stage, layout.data)) / 1e9


def _teraflops(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Of each GPU, with what is recomputed, as Megatron-LM counts."""
    flops = formulas.step_flops(model, layout, layout.recompute)
    seconds = formulas.step_seconds(model, layout, cluster)
    return flops / seconds / formulas.all_ranks(layout) / 1e12


def _mfu_percent(model: Model, layout: Layout, cluster: Cluster) -> float:
    return 100 * formulas.mfu(model, layout, cluster)


UNITS = {
    "GiB": _gib,
    "GB of state": _state_gb,
    "tokens/s": formulas.device_tokens,
    "TFLOP/s": _teraflops,
    "s": formulas.step_seconds,
    "% MFU": _mfu_percent,
    "billions": lambda model, *_: formulas.gpt_parameters(model) / 1e9,
    "billions used": lambda model, *_: formulas.used_parameters(model) / 1e9,
}


@dataclass(frozen=True)
class Group:
    """Runs of one source in one unit; all texts are reStructuredText."""

    title: str
    source: str
    assumed: str
    runs: list[Run]


TITAN = "https://github.com/pytorch/torchtitan/blob"
DECEMBER = f"{TITAN}/main/benchmarks/llama3_h100_202412_torchtitan.md"
JUNE = f"{TITAN}/main/benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md"
OLDER = f"{TITAN}/3278a52f5e08/docs/performance.md"


def _fsdp(data: int, size: int, recompute: str, tensor: int = 1) -> Layout:
    split = {"stage": 3, "micro_batch": size, "recompute": recompute}
    return Layout(tensor, data=data, **split, sequence_parallel=tensor > 1)


def _torchtitan() -> list[Group]:
    speed, memory = [], []
    for gpus, cluster, how, tokens, gib in (
        (8, EAGER, "eager", 5762, 82.4),
        (8, H100, "compiled", 6667, 77.0),
        (128, EAGER, "eager", 5605, 67.0),
        (128, H100, "compiled", 6514, 62.0),
    ):
        given = LLAMA_8B, _fsdp(gpus, 2, "ops"), cluster
        name = f"{gpus} GPUs, {how}"
        speed.append(Run(name, "tokens/s", tokens, *given))
        memory.append(Run(name, "GiB", gib, *given))
    source = (
        f"`torchtitan, December 2024 <{DECEMBER}>`__, tables 1 and 3: FSDP, two "
        "sequences of 8,192 tokens on each GPU, every second product recomputed"
    )
    assumed = (
        "37 % of the peak without torch.compile (eager) and 42 % with it, chosen so "
        "that the times on 8 GPUs fit"
    )
    return [
        Group("Llama 3.1 8B on H100, tokens/s of a GPU", source, assumed, speed),
        Group("Llama 3.1 8B on H100, GiB of a GPU", "The same runs", "", memory),
    ]


def _torchtitan_larger() -> list[Group]:
    two_axes = LLAMA_70B, _fsdp(32, 16, "full", tensor=8), H100
    largest = LLAMA_405B, _fsdp(16, 2, "full", tensor=8), EAGER
    smallest = LLAMA_8B, _fsdp(8, 12, "ops", tensor=8), H100
    speed = [
        Run("8B", "tokens/s", 4378, *smallest),
        Run("70B", "tokens/s", 597.3, *two_axes),
        Run("70B, async TP", "tokens/s", 652.4, *two_axes),
        Run("405B", "tokens/s", 109, *largest),
    ]
    source = (
        f"8B on 64 GPUs and 70B on 256: `torchtitan, June 2025 <{JUNE}>`__. 405B on "
        f"128: an `older page <{OLDER}>`__. All have 8 tensor ranks and FSDP over the "
        "rest"
    )
    assumed = "42 % of the peak; the page of 405B names no optimization, so 37 %"
    memory = f"The run of 70B with Float8 on 256 GPUs, `table 4 <{DECEMBER}>`__"
    title = "Llama 3.1 with tensor parallel on H100"
    return [
        Group(f"{title}, tokens/s of a GPU", source, assumed, speed),
        Group(
            f"{title}, GiB of a GPU", memory, "", [Run("70B", "GiB", 71.9, *two_axes)]
        ),
    ]


def _torchtitan_long() -> list[Group]:
    speed, memory = [], []
    for ranks, tokens_each, gib in (
        (1, 3890, 83.9),
        (2, 2540, 84.2),
        (4, 1071, 84.0),
        (8, 548, 84.5),
    ):
        layout = _fsdp(8 // ranks, 1, "full")._replace(context_ranks=ranks)
        given = LLAMA_8B._replace(context=32_768 * ranks), layout, H100
        name = f"{32 * ranks} K, c {ranks}"
        speed.append(Run(name, "tokens/s", tokens_each, *given))
        memory.append(Run(name, "GiB", gib, *given))
    source = (
        f"`torchtitan, December 2024 <{DECEMBER}>`__, table 2: a sequence of 32 to "
        "256 times 1,024 tokens on each group of c context ranks, FSDP over all 8 "
        "GPUs, all layers recomputed. It multiplies in Float8, which the formulas "
        "don't have"
    )
    assumed = "42 % of the peak, as without Float8"
    title = "Llama 3.1 8B with long sequences on 8 H100"
    return [
        Group(f"{title}, tokens/s of a GPU", source, assumed, speed),
        Group(f"{title}, GiB of a GPU", "The same runs", "", memory),
    ]


def _torchtitan_a100() -> list[Group]:
    small, large = _fsdp(64, 1, "ops"), _fsdp(64, 1, "full")
    runs = [
        Run("8B", "tokens/s", 2973, LLAMA_8B, small, FASTER),
        Run("70B", "tokens/s", 331, LLAMA_70B, large, FASTER),
    ]
    source = f"The same `older page <{OLDER}>`__: FSDP on 64 GPUs, a sequence on each"
    assumed = "60 % of the peak, chosen so that 8B fits"
    return [Group("Llama 3 on A100, tokens/s of a GPU", source, assumed, runs)]


# billions, heads, width, layers, tensor ranks, stages, GPUs, batch, TFLOP/s
SC21 = [
    (1.7, 24, 2304, 24, 1, 1, 32, 512, 137),
    (3.6, 32, 3072, 30, 2, 1, 64, 512, 138),
    (7.5, 32, 4096, 36, 4, 1, 128, 512, 142),
    (18.4, 48, 6144, 40, 8, 1, 256, 1024, 135),
    (39.1, 64, 8192, 48, 8, 2, 512, 1536, 138),
    (76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140),
    (145.6, 96, 12288, 80, 8, 8, 1536, 2304, 148),
    (310.1, 128, 16384, 96, 8, 16, 1920, 2160, 155),
    (529.6, 128, 20480, 105, 8, 35, 2520, 2520, 163),
    (1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163),
]


def _megatron() -> list[Group]:
    runs = []
    for billions, heads, width, layers, tensor, stages, gpus, batch, rate in SC21:
        data = gpus // (tensor * stages)
        axes = {"tensor": tensor, "pipeline": stages, "data": data}
        count = {"micro_batches": batch // data, "recompute": "full"}
        given = Model(layers, width, heads, 2048, 51200), Layout(**axes, **count), A100
        name = f"{billions:g} B, t{tensor} p{stages}"
        runs.append(Run(name, "TFLOP/s", rate, *given))
    source = (
        "`Narayanan et al., 2021 <https://arxiv.org/abs/2104.04473>`__, table 1, on 32 "
        "to 3,072 GPUs, all layers recomputed, which counts here"
    )
    assumed = (
        "50 % of the peak, 1F1B, and one sequence in a micro-batch, because the table "
        "names neither"
    )
    title = "Megatron-LM on A100, TFLOP/s of a GPU"
    return [Group(title, source, assumed, runs)]


# name, layers, width, heads, tensor ranks, stages, batch, micro-batch, chunks, seconds
# with everything recomputed, and with attention only
ITERATIONS = [
    ("22 B", 48, 6144, 64, 8, 1, 4, 4, 1, 1.42, 1.10),
    ("175 B", 96, 12288, 96, 8, 8, 64, 1, 3, 18.13, 13.75),
    ("530 B", 105, 20480, 128, 8, 35, 280, 1, 3, 49.05, 37.83),
    ("1 T", 128, 25600, 160, 8, 64, 512, 1, 1, 94.42, 71.49),
]


def _korthikanti(kind: str) -> Group:
    runs = []
    for (
        name,
        layers,
        width,
        heads,
        tensor,
        stages,
        batch,
        size,
        chunks,
        *s,
    ) in ITERATIONS:
        seconds = s[("full", "selective").index(kind)]
        model = Model(layers, width, heads, 2048, 51200)
        schedule = "interleaved" if chunks > 1 else "1f1b"
        axes = {"tensor": tensor, "pipeline": stages, "micro_batch": size}
        counts = {"micro_batches": batch // size, "recompute": kind}
        layout = Layout(**axes, **counts, schedule=schedule, chunks=chunks)
        layout = layout._replace(sequence_parallel=kind == "selective")
        title = f"{name}, t{tensor} p{stages}"
        runs.append(Run(title, "s", seconds, model, layout, FASTER))
    what = {"full": "all layers", "selective": "attention"}[kind]
    source = (
        "`Korthikanti et al., 2022 <https://arxiv.org/abs/2205.05198>`__, table 5, "
        f"with {what} recomputed"
    )
    assumed = "60 % of the peak, chosen so that 175 B fits"
    title = f"Megatron-LM on A100, seconds of a step, {what} recomputed"
    return Group(title, source, assumed, runs)


FOLDING = "https://arxiv.org/abs/2504.14960"

# name, GPUs, tensor ranks, stages, expert ranks, stage of ZeRO, % MFU
EXPERTS_LARGE = [
    ("FSDP", 128, 8, 1, 1, 3, 4.3),
    ("FSDP, e 8", 128, 2, 1, 8, 3, 23.4),
    ("ZeRO-1, e 8", 128, 4, 1, 8, 1, 36.6),
    ("p 8, e 4", 128, 2, 8, 4, 1, 46.3),
]
EXPERTS_FINE = [
    ("FSDP", 64, 2, 1, 1, 3, 9.9),
    ("FSDP, e 8", 64, 1, 1, 8, 3, 25.4),
    ("ZeRO-1, e 4", 64, 4, 1, 4, 1, 23.1),
    ("p 4, e 4", 64, 2, 4, 4, 1, 35.3),
]


def _folding() -> list[Group]:
    source = (
        f"`Liu et al., 2025 <{FOLDING}>`__, table 3: Megatron-Core on H100s, 256 "
        "sequences of 4,096 tokens, dropped tokens so that all experts have as many"
    )
    unnamed = (
        "micro-batches of one sequence, attention recomputed, and a pipeline "
        "interleaved layer by layer, because the paper names none of them"
    )
    groups = []
    for title, model, cluster, table, peak in (
        ("Mixtral 8x22B", MIXTRAL_8X22B, WIDE, EXPERTS_LARGE, "50 %"),
        ("Qwen2 57B-A14B", QWEN2_57B, H100, EXPERTS_FINE, "42 %"),
    ):
        runs = []
        for name, gpus, tensor, stages, spread, stage, share in table:
            data = gpus // (tensor * stages)
            axes = {"tensor": tensor, "pipeline": stages, "data": data}
            counts = {"micro_batches": 256 // data, "recompute": "selective"}
            layout = Layout(**axes, **counts, stage=stage, expert_ranks=spread)
            layout = layout._replace(sequence_parallel=tensor > 1)
            if stages > 1:
                chunks = model.layers // stages
                layout = layout._replace(schedule="interleaved", chunks=chunks)
            runs.append(Run(name, "% MFU", share, model, layout, cluster))
        assumed = f"{peak} of the peak, {unnamed}"
        groups.append(Group(f"{title}, % MFU", source, assumed, runs))
    return groups


def _mixtral() -> list[Group]:
    small, large = MIXTRAL_8X7B, MIXTRAL_8X22B
    runs = [
        Run("8x7B, all", "billions", 46.7, small, Layout(), H100),
        Run("8x7B, of a token", "billions used", 12.9, small, Layout(), H100),
        Run("8x22B, all", "billions", 141, large, Layout(), H100),
        Run("8x22B, of a token", "billions used", 39, large, Layout(), H100),
    ]
    source = (
        "`Mistral's announcements of 8x7B "
        "<https://mistral.ai/news/mixtral-of-experts>`__ and of `8x22B "
        "<https://mistral.ai/news/mixtral-8x22b>`__"
    )
    return [Group("Parameters of Mixtral, billions", source, "", runs)]


def _deepseek() -> list[Group]:
    runs = [
        Run("all", "billions", 671, DEEPSEEK_V3, Layout(), H100),
        Run("of a token", "billions used", 37, DEEPSEEK_V3, Layout(), H100),
    ]
    source = (
        "`DeepSeek-AI, 2024 <https://arxiv.org/abs/2412.19437>`__, section 4.2; sizes "
        "of the dense layers and the vocabulary from `its configuration "
        "<https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/config.json>`__"
    )
    return [Group("Parameters of DeepSeek-V3, billions", source, "", runs)]


def _zero() -> list[Group]:
    none = Model(1, 1, 1, 1, 1)  # the figure counts 7.5 billion parameters
    stages = {0: "DDP", 1: "ZeRO-1", 2: "ZeRO-2", 3: "ZeRO-3"}
    published = {0: 120, 1: 31.4, 2: 16.6, 3: 1.9}
    runs = []
    for stage, gigabytes in published.items():
        layout = Layout(data=64, stage=stage)
        runs.append(Run(stages[stage], "GB of state", gigabytes, none, layout, A100))
    source = (
        "`Rajbhandari et al., 2020 <https://arxiv.org/abs/1910.02054>`__, figure 1, "
        "which is calculated, too: 7.5 billion parameters on 64 GPUs"
    )
    return [Group("State of a rank, GB", source, "", runs)]


GROUPS = [
    *_torchtitan(),
    *_torchtitan_larger(),
    *_torchtitan_long(),
    *_torchtitan_a100(),
    *_folding(),
    *_mixtral(),
    *_deepseek(),
    *_megatron(),
    _korthikanti("full"),
    _korthikanti("selective"),
    *_zero(),
]
