"""The page "A tuned GPU recipe": what it says about lines, clocks and the recording."""

import importlib.util
import re
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/production/a_tuned_recipe.rst").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())
PROGRAM = (ROOT / "src/instruments/17_recipe.py").read_text(encoding="utf-8")


def source_of(file: str) -> str:
    """A file of PyTorch, which doesn't have to be imported for it."""
    spec = importlib.util.find_spec("torch")
    assert spec and spec.origin
    text = (Path(spec.origin).parent / file).read_text(encoding="utf-8")
    return " ".join(text.split())


def test_compiling_gained_16_percent_in_the_published_runs():
    assert "5,762" in PAGE and "6,667" in PAGE and "16 % more" in PAGE
    assert round(100 * (6667 / 5762 - 1)) == 16


def test_table_of_the_page_has_the_lines_of_the_program_in_its_order():
    listed = re.search(r"^LINES = \{\n(.*?)^\}", PROGRAM, re.M | re.S)
    assert listed
    names = re.findall(r'^    "(\w+)":', listed[1], re.M)
    assert re.findall(r"^   \* - ``(\w+)``:", PAGE, re.M) == names
    assert (
        f"on this page you switch on {['', 'seven'][len(names) == 7]}" in FLAT.lower()
    )


def test_three_steps_are_left_out():
    assert "the first three, in which" in FLAT
    assert re.search(r"^WARM_UP = 3 ", PROGRAM, re.M)


def test_pytorch_promises_what_the_page_says_of_numa():
    assert "1 to 10 % for typical jobs" in FLAT
    assert "1-10% overall performance improvements" in source_of("numa/binding.py")
    assert "--numa-binding=node" in PAGE
    assert '"--numa-binding"' in source_of("distributed/run.py")


def test_numa_binding_needs_numactl_and_binds_cores():
    assert "It fails where ``numactl`` isn't installed" in FLAT
    binding = source_of("numa/binding.py")
    assert '"numactl CLI is required for NUMA binding"' in binding
    assert "should_fall_back_if_binding_fails: bool = False" in binding
    assert '"numactl", f"--physcpubind=' in binding and "--membind" not in binding
    assert "the rank's threads stay on the NUMA node of its GPU" in FLAT


def test_second_shape_compiles_again_and_no_later_one():
    import torch

    compiled = []

    def backend(graph, _):
        compiled.append(graph)
        return graph.forward

    layer = torch.compile(torch.nn.Linear(3, 3), backend=backend)
    counts = []
    for batch in (8, 8, 5, 8, 8, 5, 7):  # two epochs with a smaller last batch
        layer(torch.ones(batch, 3))
        counts.append(len(compiled))
    assert counts == [1, 1, 2, 2, 2, 2, 2]
    assert "a second shape compiles again, this time for any size in its place" in FLAT
    assert "the last step of the *first* epoch is as slow as the first step" in FLAT


def test_tf32_keeps_10_of_23_bits():
    assert "10 of the 23 bits" in FLAT
    assert "10 mantissa bits explicitly stored" in source_of("__init__.py")


def test_columns_of_the_page_are_those_of_the_program():
    heading = re.search(r'^HEADING = "with +(.*)"$', PROGRAM, re.M)
    assert heading
    for column in re.split("  +", heading[1]):
        assert f"``{column}``" in PAGE, column


def test_starters_have_the_lines_as_options():
    for name in ("train_ddp.py", "train_fsdp.py"):
        text = (ROOT / "src/starter" / name).read_text(encoding="utf-8")
        for option in ("--tf32", "--fused", "--compile", "--log-file"):
            assert f'"{option}"' in text and option in PAGE, (name, option)
        assert "get_device_capability(device) < (8, 0)" in text  # older than an A100
    assert '"--checkpoint-activations"' in text
    assert "They turn on bfloat16 themselves on an A100 or newer." in FLAT
