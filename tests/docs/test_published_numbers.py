"""Numbers of others stand beside their source, and what follows from them is right."""

import pytest

from tests.docs.pages import lesson_source

HOROVOD = "https://github.com/horovod/horovod/blob/master/docs/benchmarks.rst"
TORCHTITAN = (
    "https://github.com/pytorch/torchtitan/blob/main/benchmarks/"
    "llama3_h100_202412_torchtitan.md"
)
PUBLISHED = [
    ("05_ddp_spawn", "https://arxiv.org/abs/2006.15704", ["38.0", "35.2", "26.8 %"]),
    ("08_many_nodes", HOROVOD, ["512 GPUs", "90 %", "68 %"]),
    (
        "15_sharded_data_parallel",
        "https://arxiv.org/abs/1910.02054",
        ["120 GB", "31.4 GB", "16.6 GB", "1.9 GB"],
    ),
    ("15_sharded_data_parallel", TORCHTITAN, ["5,762", "5,605", "97 %"]),
    ("15_sharded_data_parallel", TORCHTITAN, ["96 GB", "82.4 GiB", "67.0 GiB"]),
    ("17_speed", TORCHTITAN, ["5,762", "6,667", "8 H100"]),
    (
        "16_two_dimensions",
        "https://arxiv.org/abs/2104.04473",
        ["137 (44 %", "163 (52 %"],
    ),
]


@pytest.mark.parametrize(("lesson", "source", "numbers"), PUBLISHED)
def test_published_numbers_stand_beside_their_source(lesson, source, numbers):
    """In the paragraph with the link, or in the table below it."""
    page = lesson_source(lesson)
    place = page.index(f"<{source}>")
    near = page[place - 500 : place + 700]
    assert [number for number in numbers if number not in near] == []


def test_published_run_of_fsdp_does_not_fit_on_80_gb():
    page = lesson_source("15_sharded_data_parallel")
    taken = 82.4 * 2**30 / 1e9
    assert f"82.4 GiB ({taken:.1f} GB)" in " ".join(page.split()) and taken > 80
