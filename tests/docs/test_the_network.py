"""The page "The network": its rates, NCCL's lines, and what was measured here."""

import re

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "production" / "the_network.rst").read_text(encoding="utf-8")
RECORDED = (ROOT / "docs" / "transcripts" / "network_link.txt").read_text("utf-8")
LINES = (ROOT / "docs" / "production" / "nccl_info.txt").read_text("utf-8").splitlines()
FLAT = " ".join(PAGE.split())
LINK = 0.125  # GB/s of 1 Gbit/s
# The beginning of each line, in the format strings of NCCL 2.28 (src/transport/*.cc)
FORMATS = [
    r"NET/IB : Using( \[\d\]\w+:\d/(IB|RoCE))+ \[RO\]; OOB \S+",
    r"Using network IB",
    r"Channel \d\d/\d : \d+\[\d\] -> \d+\[\d\] \[receive\] via NET/\w+/\d/GDRDMA",
    r"Channel \d\d/\d : \d+\[\d\] -> \d+\[\d\] via P2P/CUMEM",
    r"NVLS multicast support is not available on dev \d",
    r"\d+ coll channels, \d+ nvls channels, (\d+ p2p channels(, | per peer)){2}",
    r"NET/IB : No device found\.",
    r"NET/Socket : Using( \[\d\]\w+:\S+)+",
    r"Using network Socket",
]


def rows(heading):
    """The rows of the first table below a heading, each a list of its cells."""
    table = PAGE.split(f"\n{heading}\n")[1].split("list-table::")[1]
    table = re.split(r"\n\n\S", table)[0]
    cells = [re.split(r"\n     - ", row) for row in table.split("\n   * - ")[1:]]
    return [[" ".join(cell.split()) for cell in row] for row in cells]


@pytest.mark.parametrize(
    ("cards", "gbit", "row"),
    [(8, 400, "InfiniBand NDR"), (8, 800, "InfiniBand XDR"), (32, 100, "AWS EFA v2")],
)
def test_rate_of_a_gpu_is_that_of_its_cards(cards, gbit, row):
    """GB/s of one of 8 GPUs, from the cards of a node and their Gbit/s."""
    (given,) = [
        cells[1] for cells in rows("Know the links") if cells[0].startswith(row)
    ]
    assert float(given) == cards * gbit / 8 / 8


def test_factor_of_nine_between_the_links_of_an_h100():
    given = {cells[0]: cells[1] for cells in rows("Know the links")}
    nvlink = float(given["NVLink 3 (A100), 4 (H100), 5 (B200)"].split(", ")[1])
    assert nvlink / float(given["InfiniBand NDR"]) == 9
    assert 32 * 100 == 16 * 200 == 3200  # Gbit/s of EFA v2 and v3
    assert 18 * 4 == 72  # nodes of an NVL72, of 4 GPUs each


def test_gain_of_nvls_is_the_ratio_of_the_two_measurements():
    for _, algorithm, busbw, without, gain in rows("Let the switch add")[1:]:
        assert float(gain) == pytest.approx(float(busbw) / float(without), abs=0.006)
        assert (algorithm == "Ring") == (float(gain) == 1.0)


@pytest.mark.parametrize(("line", "form"), [*zip(LINES, FORMATS, strict=True)])
def test_line_of_nccl_has_the_form_of_its_code(line, form):
    assert re.fullmatch(f"NCCL INFO {form}", line)


def test_ring_between_nodes_is_as_fast_as_all_cards_of_a_node():
    """All rings together send a ring's bytes out of a node, through all its cards."""
    (card,) = [
        float(row[1]) for row in rows("Know the links") if row[0] == "InfiniBand NDR"
    ]
    tensor, ranks, cards = 8.0, 16, 8  # GB; two nodes
    factor = 2 * (ranks - 1) / ranks
    seconds = factor * tensor / (cards * card)
    busbw = tensor / seconds * factor
    assert f"for NDR {cards} x {card:.0f} = {busbw:.0f} GB/s." in FLAT
    # The factor 2 (N - 1)/N that the page gives is 0 for N = 1.
    assert "the ``busbw`` of a single GPU is 0." in FLAT


def measured(nodes):
    """Seconds of 16 MiB over these nodes, in the transcript."""
    found = rf"over {nodes} ranks.*\n.*\n +16 MiB: +([\d.]+) ms"
    return float(re.search(found, RECORDED)[1]) / 1000


def test_table_of_the_practice_cluster_is_the_recorded_run():
    table = rows("The same on the practice cluster")[1:]
    assert [row[0] for row in table] == ["2", "4"]
    for nodes, algbw, factor, busbw, share in table:
        count = int(nodes)
        rate = 16 * 2**20 / measured(nodes) / 1e9
        assert float(factor) == 2 * (count - 1) / count
        assert algbw == f"{rate:.3f}"
        assert busbw == f"{rate * float(factor):.3f}"
        assert share == f"{rate * float(factor) / LINK:.0%}".replace("%", " %")


def test_busbw_stays_and_algbw_falls():
    two, four = 1 / measured(2), 1 / measured(4)
    assert four < two
    assert 0.7 * LINK < 16 * 2**20 * two / 1e9 < LINK
    assert 0.7 * LINK < 16 * 2**20 * 1.5 * four / 1e9 < LINK


def test_prediction_is_the_rule_for_a_ring():
    assert 150 * (2 * 3 / 4) / (2 * 1 / 2) == 225
    assert ":answer: 225" in PAGE and "takes 150 ms" in PAGE
    assert measured(2) == pytest.approx(0.150, rel=0.1)
