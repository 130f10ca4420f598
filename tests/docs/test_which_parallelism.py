"""The decision page: each number follows from the formulas, each link fills them in."""

import re
import sys
from urllib.parse import parse_qsl

import pytest

from tests.docs.pages import ROOT
from tools import cost_tables
from tools.cost_tables import A100, GPT_1, GPT_7, GPT_13, GPT_175, H100

sys.path.insert(0, str(ROOT / "src"))
from common.cost import formulas, search
from common.cost.formulas import Layout

PAGE = (ROOT / "docs" / "which_parallelism.rst").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())
SHARED = A100._replace(between=100e9 / 8 / 8)  # 100 Gb/s for a node of 8


def layout(t, p, d, stage, size, count, sequence_parallel=False, recompute="selective"):
    axes = {"tensor": t, "pipeline": p, "data": d, "stage": stage}
    batch = {"micro_batch": size, "micro_batches": count, "recompute": recompute}
    return Layout(**axes, **batch, sequence_parallel=sequence_parallel)


ONE_NODE, EIGHT_NODES, MANY_NODES = cost_tables.QUESTIONS.values()
LONG, EXPERTS = cost_tables.LONG_OR_EXPERTS.values()


def best_of(question) -> dict:
    """The fastest layout of each way that fits, the best first."""
    best = cost_tables.best_of_each_way(question)
    return {way: found for way, found in best.items() if found}


def state(model, plan):
    numbers = formulas.rank_parameters(model, plan)
    ranks = formulas.shard_ranks(plan)
    return sum(formulas.state_bytes(numbers, plan.stage, ranks)) / 1e9


def whole(model, plan):
    return formulas.rank_bytes(model, plan) / 1e9


def test_link_of_hsdp_fills_in_its_layout():
    address = re.search(
        r"`HSDP\s+in\s+groups\s+of\s+8\s+<cost\.html#(\S+)>", PAGE
    ).group(1)
    plan = layout(1, 1, 32, 3, 4, 4)._replace(group=8)
    expected = cost_tables.address(GPT_7, SHARED, plan).partition("#")[2]
    assert dict(parse_qsl(address)) == dict(parse_qsl(expected))


def test_the_tables_are_those_of_the_search():
    for name in ("which_parallelism.inc", "which_long_or_experts.inc"):
        assert f".. include:: {name}" in PAGE
    assert "fits if it takes at most 72 of 80 GB" in PROSE
    assert search.ROOM * cost_tables.MEMORY == 72e9


def test_one_node_needs_no_sharding():
    best = best_of(ONE_NODE)
    way, first = next(iter(best.items()))
    assert way == "data ranks only, DDP" and first.layout.recompute == "none"
    assert f"takes {state(GPT_1, first.layout):.1f} GB, and the rest of" in PROSE
    assert f"{first.bytes / 1e9:.1f} GB is one sequence" in PROSE
    assert first.layout.micro_batch == 1
    slowest = max(found.seconds for found in best.values()) / first.seconds
    assert f"as fast or up to {100 * (slowest - 1):.0f} % slower" in PROSE


def test_eight_nodes_are_best_with_fsdp():
    best = best_of(EIGHT_NODES)
    way, first = next(iter(best.items()))
    assert way == "data ranks only, FSDP" and first.layout.recompute == "none"
    unsharded = layout(1, 1, 64, 0, 2, 8)
    assert f"{state(GPT_13, unsharded):.1f} GB of state don't fit" in PROSE
    assert "data ranks only, DDP" not in best
    assert f"FSDP takes {first.bytes / 1e9:.1f} GB" in PROSE
    given = GPT_13, first.layout, H100
    assert formulas.data_seconds(*given) < formulas.hiding_seconds(*given)
    zero_1 = best["data ranks only, ZeRO-1"].layout
    assert zero_1.recompute == "selective"
    assert not formulas.exposed_seconds(*given)
    after = formulas.gather_seconds(GPT_13, zero_1, H100)
    assert formulas.exposed_seconds(GPT_13, zero_1, H100) == after > 0


def test_many_nodes_are_best_with_fsdp_that_recomputes():
    best = best_of(MANY_NODES)
    way, first = next(iter(best.items()))
    assert way == "data ranks only, FSDP" and first.layout.recompute == "ops"
    kinds = {
        kind: first.layout._replace(recompute=kind)
        for kind in ("none", "selective", "full")
    }
    assert f"it would need {whole(GPT_175, kinds['none']):.1f} GB" in PROSE
    alone = whole(GPT_175, kinds["selective"])
    assert f"isn't enough ({alone:.1f} GB)" in PROSE and alone > 72
    longer = formulas.step_seconds(GPT_175, kinds["full"], H100) / first.seconds
    assert f"takes {100 * (longer - 1):.0f} % more time" in PROSE
    axes = best["all three axes"].seconds / first.seconds
    assert f"together are {100 * (axes - 1):.0f} % slower" in PROSE
    assert {way for way in cost_tables.WAYS if way not in best} == {
        f"data ranks only, {stage}" for stage in ("DDP", "ZeRO-1", "ZeRO-2")
    }


def test_gathering_for_each_micro_batch_is_a_trap():
    many, few = layout(8, 1, 128, 3, 1, 16, True), layout(8, 1, 128, 3, 4, 4, True)
    for plan, words in ((many, "drops to {}"), (few, "a quarter as often: {}")):
        share = 100 * formulas.mfu(GPT_175, plan, H100)
        assert words.format(f"{share:.1f} %") in PROSE
    sent = [formulas.data_bytes(GPT_175, plan) for plan in (many, few)]
    assert sent[0] == pytest.approx(4 * sent[1])


def test_a_long_sequence_needs_context_ranks():
    model, cluster, nodes, batch = LONG
    best = cost_tables.best_with_each_axis(LONG)
    way, first = next(iter(best.items()))
    assert way == "context ranks" and first.layout.context_ranks == 8
    assert best[cost_tables.ONLY_DATA] is None and batch < nodes * cluster.per_node
    alone = Layout(data=batch, stage=3, recompute="full")
    assert f"takes {whole(model, alone):.1f} GB, even if all layers" in PROSE
    scores = formulas.head_bytes(model, alone) / 1e9
    assert f"Of these, {scores:.1f} GB are the scores" in PROSE
    assert f"{batch} sequences aren't enough for 64 devices" in PROSE
    assert f"it takes {state(model, first.layout):.1f} GB of a rank" in PROSE
    assert f"everything takes {first.bytes / 1e9:.1f} GB" in PROSE
    tensor = best["tensor ranks"]
    assert tensor.layout.tensor == 8
    assert f"are {100 * (tensor.seconds / first.seconds - 1):.0f} % slower" in PROSE


def test_a_loss_that_keeps_few_scores_lets_a_long_sequence_fit(monkeypatch):
    model, _, _, batch = LONG
    alone = Layout(data=batch, stage=3, recompute="full")
    room = search.ROOM * cost_tables.MEMORY / 1e9
    assert whole(model, alone) > room
    monkeypatch.setattr(formulas, "head_bytes", lambda *_: 0.0)
    again = formulas.layer_activations(model, alone._replace(recompute="selective"))
    words = (
        f"takes about {whole(model, alone):.0f} GB, of which {again / 1e9:.0f} GB are"
    )
    assert words in PROSE
    assert whole(model, alone) < room


def binds(model, plan, cluster) -> bool:
    """Whether the links can't hide the gathering."""
    given = model, plan, cluster
    return formulas.data_seconds(*given) > formulas.hiding_seconds(*given)


def test_question_2_is_answered_by_what_the_links_can_hide():
    """Yes for FSDP on both large clusters; no for HSDP's, and for all experts."""
    assert "and can the links hide the gathering?" in PROSE
    for question in (EIGHT_NODES, MANY_NODES):
        model, cluster, *_ = question
        plan = best_of(question)["data ranks only, FSDP"].layout
        assert not binds(model, plan, cluster)
    fsdp = layout(1, 1, 32, 3, 4, 4)
    assert binds(GPT_7, fsdp, SHARED)
    assert not binds(GPT_7, fsdp._replace(group=8), SHARED)
    model, cluster, *_ = EXPERTS
    alone = cost_tables.best_with_each_axis(EXPERTS)[cost_tables.ONLY_DATA]
    assert binds(model, alone.layout, cluster)


def test_four_chunks_are_four_stages_on_a_rank():
    assert "With *4 chunks*, each rank of a pipeline has four short stages" in PROSE
    tables = (ROOT / "docs" / "which_parallelism.inc").read_text(encoding="utf-8")
    assert "; 4 chunks; " in tables


def test_many_experts_need_expert_ranks():
    model, cluster, *_ = EXPERTS
    best = cost_tables.best_with_each_axis(EXPERTS)
    alone, cut = best[cost_tables.ONLY_DATA], best["expert ranks"]
    assert alone.layout.micro_batch == 1 and alone.layout.micro_batches == 8
    assert f"which makes {alone.seconds:.1f} s" in PROSE
    two = alone.layout._replace(micro_batch=2, micro_batches=4)
    room = search.ROOM * cost_tables.MEMORY / 1e9
    assert f"need {whole(model, two) - room:.1f} GB too much" in PROSE
    seconds = formulas.step_seconds(model, two, cluster)
    assert f"would still take {seconds:.1f} s" in PROSE
    assert (cut.layout.expert_ranks, cut.layout.micro_batch) == (2, 4)
    assert f"a quarter as often: {cut.seconds:.1f} s" in PROSE
    whole_layer = cut.layout._replace(expert_ranks=1)
    sent = [formulas.data_bytes(model, one) for one in (cut.layout, whole_layer)]
    assert sent[0] / sent[1] == pytest.approx(0.5, abs=0.02), "half of the experts"
    assert next(iter(best)) == "tensor ranks, stages"


def test_a_batch_smaller_than_the_devices_needs_another_axis():
    model, cluster, nodes, _ = MANY_NODES
    found = search.layouts_that_fit(model, cluster, nodes, cost_tables.MEMORY, 512)
    assert found
    assert "512 sequences on these 1,024 devices, at least two devices must" in PROSE
    assert nodes * cluster.per_node == 2 * 512
    assert all(one.layout.tensor * one.layout.pipeline > 1 for one in found)


def test_wrong_answer_costs_what_the_first_paragraph_says():
    """Eight tensor ranks in each node, instead of FSDP over all 64 devices."""
    model, cluster, nodes, batch = EIGHT_NODES
    first, *others = search.layouts_that_fit(
        model, cluster, nodes, cost_tables.MEMORY, batch
    )
    eight = next(found for found in others if found.layout.tensor == 8)
    assert f"takes {100 * (eight.seconds / first.seconds - 1):.0f} % longer" in PROSE
    assert f"Eight tensor ranks take {eight.seconds:.2f} s" in PROSE


def test_reasons_of_the_five_steps():
    """What a layer waits for, and what a parameter needs."""
    assert "Each layer waits for four all-reduces" in PROSE
    one = GPT_13._replace(layers=1)
    assert formulas.tensor_calls(one, layout(8, 1, 8, 1, 4, 1)) == 4
    assert sum(formulas.state_bytes(1, 0, 1)) == 16 and ":math:`16 P`" in PAGE


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
