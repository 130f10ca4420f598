"""What bash itself says of a script, which it reads without running it."""

import pytest

from workshop.lint import rules_syntax
from workshop.lint.linting import lint

HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n"


def codes(text, **options):
    return [found.rule.code for found in lint(text, **options)]


@pytest.mark.parametrize(
    ("line", "cure"),
    [
        ('echo "a', "close what is still open"),
        ("echo ${a", "close what is still open"),
        ("for i in 1 2; do echo $i", "close what is still open"),
        ("done", "mend that line"),
        ("if true; then fi", "mend that line"),
        ("DATA=/scratch/<YOUR_NAME>\n", "your own value in place of `<YOUR_NAME>`"),
    ],
)
def test_script_that_bash_cannot_read(line, cure):
    [found] = lint(f"{HEAD}{line}\n")
    assert found.rule.code == "DT015" and found.line == 3
    assert cure in found.cure


def test_commands_below_an_open_quote_are_not_judged():
    """They're a text there, and the texts are commands; directives still count."""
    launch = "srun torchrun --nnodes=2 --nproc-per-node=4 train.py\n"
    assert "DT015" not in codes(f"{HEAD}{launch}")
    assert codes(f'{HEAD}echo "a\n{launch}') == ["DT015"]
    late = f'#!/bin/bash\ntrue\n#SBATCH --nodes=1\necho "a\n{launch}'
    assert codes(late) == ["DT001", "DT015"]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "echo 'it''s' \"$(date)\" ${a:-b}\n",
        HEAD + "cat <<-EOF\n\ttext\n\tEOF\n",
        HEAD + "shopt -s extglob\nls !(*.log|*.txt)\n",
        "#!/usr/bin/env python3\nprint('a')\nif a:\n  pass\n",
        "#!/bin/csh\nif ( 1 ) then\nendif\n",
        "#!/bin/bash\r\nif true; then\r\n  true\r\nfi\r\n",
    ],
)
def test_script_that_its_shell_can_read(text):
    assert not {"DT015", "DT016"} & set(codes(text))


def test_launch_line_with_a_placeholder_is_no_script():
    line = "torchrun --standalone --nproc-per-node=4 <your script>"
    assert "DT015" not in codes(line, is_line=True)


def test_nothing_of_the_script_runs(tmp_path, monkeypatch):
    """Not even the file that BASH_ENV names."""
    made, start = tmp_path / "made", tmp_path / "start.sh"
    start.write_text(f"touch {made}\n")
    monkeypatch.setenv("BASH_ENV", str(start))
    assert codes(f"{HEAD}touch {made}\n$(touch {made})\n") == []
    assert not made.exists()


def test_without_bash_the_other_rules_still_speak(monkeypatch):
    monkeypatch.setattr(rules_syntax.shutil, "which", lambda name: None)
    rules_syntax.said_of.cache_clear()
    assert codes('#!/bin/bash\ntrue\n#SBATCH --nodes=1\necho "a\n') == ["DT001"]
    rules_syntax.said_of.cache_clear()
