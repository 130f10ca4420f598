"""What docs/lessons/21_long_sequences says: numbers, formulas, mistakes, torch."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.docs.pages import ROOT, checked_page
from tests.in_ranks import assert_right, every_check_in

sys.path.insert(0, str(ROOT / "src"))
from common.byte_gpt import Embed, Sizes
from common.parallel import context_parallel as cp

cost = import_module("instruments.21_cost")

pytestmark = pytest.mark.full

TRANSCRIPTS = ROOT / "docs" / "transcripts"
on_the_page = checked_page("21_long_sequences")


@every_check_in(Path(__file__).resolve().parent / "ranks_21_long_sequences.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


def test_a_million_tokens_of_a_model_of_width_4096():
    width, blocks, tokens, two_bytes = 4096, 32, 1_000_000, 2
    parameters = 12 * width**2 * blocks
    on_the_page(f"have {parameters / 1e9:.1f} billion parameters")
    on_the_page(f"take {parameters * two_bytes / 1e9:.0f} GB in 16 bits")
    inputs = width * blocks * tokens * two_bytes
    on_the_page(f"the inputs of its blocks alone take {inputs / 1e9:.0f} GB")
    on_the_page(f"on eight ranks, each one keeps {inputs / 8e9:.0f} GB")


def pairs_of(rank, c, zigzag):
    cut = cp.Cut(c, rank, zigzag)
    return sum(len(list(cut.pairs(sender, True))) for sender in range(c))


def test_pairs_of_chunks_that_the_mask_leaves():
    for c in (2, 3, 4, 8):
        assert [pairs_of(r, c, False) for r in range(c)] == [
            4 * r + 3 for r in range(c)
        ]
        assert {pairs_of(r, c, True) for r in range(c)} == {2 * c + 1}
    on_the_page(r"rank :math:`r` computes :math:`4 r + 3` pairs")
    on_the_page(r"every rank computes :math:`2 c + 1` pairs")
    on_the_page("Rank 0 has 3 pairs to compute, rank 3 has 15: five times as many")
    assert pairs_of(3, 4, False) == 5 * pairs_of(0, 4, False) == 15
    on_the_page("Seven times: half a square of queries and keys on rank 0, three and a")
    seen = torch.ones(4096, 4096).tril().chunk(4)  # by the queries of each rank
    assert seen[3].sum() / seen[0].sum() == pytest.approx(7, rel=1e-2)
    many = 1000
    assert pairs_of(many - 1, many, False) / pairs_of(0, many, True) > 1.99


def test_recorded_products_are_those_of_the_formulas():
    text = (TRANSCRIPTS / "21_costs.txt").read_text()
    recorded = re.findall(r"per block: (.+)", text)
    assert recorded == [
        ", ".join(str(pairs_of(r, 4, zigzag)) for r in range(4))
        for zigzag in (False, True)
    ]


def test_recorded_cpu_time_rises_with_the_pairs_and_is_even_with_zigzag():
    text = (TRANSCRIPTS / "21_zigzag.txt").read_text()
    found = re.findall(r"per block: (.+)\n.*milliseconds: (.+)", text)
    (pairs, in_order), (even, zigzag) = (
        ([int(n) for n in counts.split(", ")], [int(n) for n in times.split(", ")])
        for counts, times in found
    )
    assert pairs == [pairs_of(rank, 4, False) for rank in range(4)]
    assert set(even) == {9}
    assert sorted(in_order) == in_order
    assert max(zigzag) < max(in_order)
    assert max(zigzag) / min(zigzag) < 1.2 < max(in_order) / min(in_order)


def test_zigzag_computes_two_of_four_pairs_with_each_other_rank():
    for c in (2, 4, 8):
        for rank in range(c):
            cut = cp.Cut(c, rank, True)
            others = [sender for sender in range(c) if sender != rank]
            assert {len(list(cut.pairs(sender, True))) for sender in others} == {2}
    on_the_page("each step of the ring has half the operations and the same bytes")
    on_the_page("so a rank needs twice as many: 40,000.")


def test_gathering_sends_less_than_ulysses_if_queries_share_keys():
    """Of q, k, v and the output, only k and v are g times smaller."""
    for g in (1, 2, 8, 16):
        for c in (2, 3, 4, 8, 16, 17):
            gathering = cost.BLOCK_SENDS["gather"](c, 960) / g
            ulysses = cost.BLOCK_SENDS["Ulysses"](c, 960) * (2 + 2 / g) / 4
            assert (gathering < ulysses) == (c <= g), (g, c)
    on_the_page("gathering sends less than Ulysses on up to :math:`g` ranks")


def test_recorded_bytes_are_those_of_the_table():
    text = (TRANSCRIPTS / "21_costs.txt").read_text()
    assert "they differ" not in text
    sent = re.findall(r"sent in a step +([\d,]+)", text)
    methods = ["ring", "ring", "gather", "Ulysses"]
    expected = [cost.sent(Sizes(), 16, 4, method) for method in methods]
    assert [int(number.replace(",", "")) for number in sent] == expected


def test_recorded_losses_are_those_of_one_device():
    text = (TRANSCRIPTS / "21_train.txt").read_text()
    losses = re.findall(r"^Step \d+ \| loss ([\d.]+)$", text, re.M)
    assert len(losses) == 9
    assert losses[:3] == losses[3:6] == losses[6:]
    grid = (TRANSCRIPTS / "21_grid.txt").read_text()
    assert re.findall(r"^Step \d+ \| loss ([\d.]+)$", grid, re.M) == losses[:3]


def test_bytes_when_the_ranks_double():
    """The ring sends about as much, close to 6 B T H numbers; Ulysses about half."""
    whole = 1_000_000_000  # bytes of all keys
    for c in (16, 32, 64):
        now, then = (
            {m: cost.BLOCK_SENDS[m](n, whole // n) for m in ("ring", "Ulysses")}
            for n in (c, 2 * c)
        )
        assert then["ring"] == pytest.approx(now["ring"], rel=0.03)
        assert now["ring"] == pytest.approx(6 * whole, rel=0.05)
        assert then["Ulysses"] == pytest.approx(now["Ulysses"] / 2, rel=0.04)


def test_ulysses_sends_least_on_more_than_two_ranks():
    for c in (2, 3, 4, 8, 64):
        sent = {method: send(c, 960) for method, send in cost.BLOCK_SENDS.items()}
        least = sent.pop("Ulysses")
        assert (least < min(sent.values())) == (c > 2), c
        assert sent["ring"] == max(sent.values())


def test_tokens_per_rank_that_hide_a_message():
    """4 B (T/c)^2 H operations, 4 B (T/c) H bytes: 20,000 for 1e15 and 50 GB/s."""
    batch, own, width = 3, 20_000, 4096
    operations, size = 4 * batch * own**2 * width, 2 * 2 * batch * own * width
    assert operations / 1e15 == pytest.approx(size / 50e9)
    on_the_page("20,000 tokens per rank")


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def two_parts():
    """Queries, and attention to the first and the last keys, and to all of them."""
    torch.manual_seed(0)
    query, key, value = drawn(3, 1, 2, 8, 4)
    halves = zip(key.chunk(2, 2), value.chunk(2, 2), strict=True)
    parts = [cp.attend(query, k, v, False) for k, v in halves]
    return query, key, parts, F.scaled_dot_product_attention(query, key, value)


def test_merged_parts_are_the_whole_and_their_mean_is_not():
    _, _, parts, whole = two_parts()
    assert torch.allclose(cp.merge(*parts).out, whole, atol=1e-12, rtol=0)
    assert torch.allclose(cp.merge(*reversed(parts)).out, whole, atol=1e-12, rtol=0)
    assert not torch.allclose((parts[0].out + parts[1].out) / 2, whole)
    assert not torch.allclose(parts[0].out + parts[1].out, whole)


def test_weights_with_the_log_sum_of_one_part_add_up_to_more_than_1():
    query, key, parts, _ = two_parts()
    scores = cp.scores_of(query, key, False)
    assert torch.all((scores - parts[0].log_sum).exp().sum(-1) > 1)
    merged = cp.merge(*parts).log_sum
    sums = (scores - merged).exp().sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums))


def test_two_parts_without_a_key_are_nan_and_one_is_not():
    query, _, parts, _ = two_parts()
    nothing = cp.nothing_yet(query)
    assert cp.merge(nothing, nothing).out.isnan().all()
    assert torch.equal(cp.merge(nothing, parts[0]).out, parts[0].out)
    on_the_page("A query saw no key of a part")


def test_places_that_start_from_0_fail_silently():
    torch.manual_seed(0)
    embed = Embed(Sizes(width=12, heads=2, blocks=1, context=16))
    tokens = torch.randint(256, (2, 16))
    for rank in range(2):
        cut = cp.Cut(2, rank)
        own = cut.take(embed(tokens))
        assert torch.equal(cp.CutEmbed(embed, cut)(cut.take(tokens)), own)
        from_0 = embed(cut.take(tokens))
        assert torch.equal(from_0, own) == (rank == 0)
