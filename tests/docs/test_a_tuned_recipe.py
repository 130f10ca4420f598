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
    assert '"--checkpoint-activations"' in text
