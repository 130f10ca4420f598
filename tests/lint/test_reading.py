"""How the linter reads shell: words, quotes, operators, here-documents."""

from __future__ import annotations

import time

import pytest

from tests.lint.corpus import BAD, GOOD
from workshop.lint.directives import gpu_number, slurm_options, slurm_seconds
from workshop.lint.launches import find_launches
from workshop.lint.linting import lint
from workshop.lint.script import Script, compute
from workshop.lint.shell import parse
from workshop.lint.variables import Variables


def values(text: str) -> list[list[str]]:
    return [[word.value for word in command.words] for command in parse(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d e\"", [["a", "b c", "d e"]]),
        ("a \\\n  b", [["a", "b"]]),
        ("a # b", [["a"]]),
        ("a b#c", [["a", "b#c"]]),
        ("a; b & c && d || e | f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a > out 2>&1", [["a"]]),
        ("a $(b; c) d", [["a", "$(b; c)", "d"], ["b"], ["c"]]),
        ("a $((1 + 2))", [["a", "$((1 + 2))"]]),
        ("a ${x:-a b} c", [["a", "${x:-a b}", "c"]]),
        ("cat <<EOF\nx y\nEOF\nb", [["cat"], ["b"]]),
        ("cat <<-'EOF'\n\tx\n\tEOF\nb", [["cat"], ["b"]]),
        ("[[ a < b && c ]] && d", [["[[ a < b && c ]]"], ["d"]]),
        ("case $x in a|b) c ;; *) d ;; esac; e", None),
        ("f() { a; }; b", [["a"], ["b"]]),
        ("read x < <(a b)", [["read", "x"], ["a", "b"]]),
    ],
)
def test_text_is_read_as_these_commands(text, words):
    if words is None:
        assert [w for w in values(text) if w[0] in "cde"] == [["c"], ["d"], ["e"]]
    else:
        assert values(text) == words


def test_only_what_a_shell_replaces_is_live():
    command = parse("""a "$X" '$Y' \\$Z "\\$V" $W""")[0]
    assert [word.live for word in command.words] == ["a", "$X", "", "Z", "V", "$W"]


def test_lines_are_those_of_the_file():
    commands = parse("a \\\n  b\n\n# c\nd <<E\nx\ny\nE\ne\n")
    assert [command.line for command in commands] == [1, 5, 9]
    assert commands[0].words[1].line == 2
    assert commands[1].heredocs[0].line == 6


def test_blocks_and_operators_are_known():
    text = "for x in 1 2; do a & done\nif b; then c; fi\nd | e\n(f) &\n"
    found = {each.name: each for each in parse(text) if each.words}
    assert found["a"].in_loop and found["a"].ends == "&"
    assert found["b"].tested and not found["c"].tested
    assert found["c"].blocks == ("if",)
    assert found["d"].ends == "|" and found["e"].follows == "|"
    assert found["f"].blocks == ("subshell",)


def test_variables_are_followed_where_they_are_certain():
    commands = parse(
        'A=1\nif x; then B=2; fi\nargs=(--a "$A" -b)\nrun $A $B "${args[@]}"'
    )
    variables = Variables(commands)
    run = commands[-1]
    tokens = [token.text for word in run.words for token in variables.tokens(word)]
    assert tokens == ["run", "1", "$B", "--a", "1", "-b"]


def test_single_quotes_keep_a_variable_for_another_shell():
    commands = parse("A=1\nbash -c 'x $A'")
    tokens = Variables(commands).tokens(commands[-1].words[-1])
    assert [token.text for token in tokens] == ["x $A"]


@pytest.mark.parametrize(
    ("line", "kind", "starter", "options"),
    [
        ("torchrun --nnodes=2 x.py --a 1", "torchrun", "", {"nnodes": "2"}),
        ("torchrun --nproc_per_node 4 x.py", "torchrun", "", {"nproc-per-node": "4"}),
        ("srun -n 4 python -u x.py", "python", "srun", {}),
        ("srun -l task.sh torchrun --standalone x.py", "torchrun", "srun", None),
        ("srun bash -c 'cd x; torchrun --nnodes=2 x.py'", "torchrun", "srun", None),
        ("python -m torch.distributed.run -m x", "torchrun", "", None),
        ("python3 -m torch.distributed.launch x.py", "launch", "", {}),
        ("accelerate launch --num_machines 2 x.py", "accelerate", "", None),
        ("FOO=1 nohup torchrun x.py", "torchrun", "", {}),
        ("srun apptainer exec --nv i.sif torchrun x.py", "torchrun", "srun", {}),
        ("srun uv run python x.py", "python", "srun", {}),
        ("mpirun -np 8 -x A python x.py", "python", "mpirun", {}),
        ("deepspeed --hostfile h x.py --deepspeed d.json", "deepspeed", "", None),
    ],
)
def test_launch_is_recognized(line, kind, starter, options):
    commands = parse(line)
    (launch,) = find_launches(commands, Variables(commands))
    assert (launch.kind, launch.starter) == (kind, starter)
    if options is not None:
        assert launch.options == options


@pytest.mark.parametrize(
    "line",
    [
        "echo torchrun x.py",
        "which torchrun",
        "command -v torchrun",
        "pip install accelerate",
        "python -c 'x'",
        "python -m pip list",
        "python setup.py install",
    ],
)
def test_what_launches_nothing_is_left_alone(line):
    commands = parse(line)
    assert find_launches(commands, Variables(commands)) == []


HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n"


@pytest.mark.parametrize(
    ("directives", "srun", "tasks", "per_node"),
    [
        ("", "srun", 2, 1),
        ("#SBATCH --ntasks-per-node=4\n", "srun", 8, 4),
        ("#SBATCH --ntasks=8\n", "srun", 8, 4),
        ("#SBATCH --ntasks-per-node=4\n", "srun --ntasks=2 --nodes=2", 2, 1),
        ("#SBATCH --ntasks-per-node=4\n", "srun -n $SLURM_NNODES", 2, 1),
        # measured with Slurm 22.05: the number of tasks of the job wins
        ("#SBATCH --ntasks-per-node=4\n", "srun --ntasks-per-node=1", 8, 4),
        ("", "srun --ntasks-per-node=4", 8, 4),
        ("#SBATCH hetjob\n#SBATCH -N 3\n", "srun", 2, 1),
        ("#SBATCH hetjob\n#SBATCH -N 3\n", "srun --het-group=1", 3, 1),
        ("#SBATCH packjob\n#SBATCH -N 3\n", "srun --pack-group=1", 3, 1),
        ("#SBATCH hetjob\n#SBATCH -N 3\n", "srun --het-group=0,1", None, None),
        ("#SBATCH hetjob\n#SBATCH -N 3\n", "srun --het-group=2", None, None),
        ("#SBATCH hetjob\n#SBATCH -N 3\n", "srun -n $SLURM_NNODES", None, None),
        ("#SBATCH hetjob\n#SBATCH -n 8\n", "srun --het-group=1", 8, None),
        ("#SBATCH --ntasks-per-gpu=1\n", "srun", None, None),
    ],
)
def test_srun_starts_as_many_tasks_as_slurm_does(directives, srun, tasks, per_node):
    script = Script("x", f"{HEAD}{directives}{srun} python x.py\n")
    step = script.step(script.launches[-1])
    assert (step.tasks, step.per_node) == (tasks, per_node)


def test_numbers_of_options_are_read():
    assert slurm_options(["-N2", "-n", "4", "-lK1", "--exclusive", "x", "-p"])[1] == 5
    assert gpu_number("a100:4") == 4 and gpu_number("volta:2(S:0)") == 2
    assert slurm_seconds("30") == 1800 and slurm_seconds("1-00:00:00") == 86400
    assert slurm_seconds("2-12") == 216000 and slurm_seconds("01:30:00") == 5400
    assert compute("2 * (3 + 4) / 2") == 7
    assert compute("__import__('os')") is None and compute("1 / 0") is None


@pytest.mark.parametrize("stride", [151, pytest.param(23, marks=pytest.mark.nightly)])
def test_half_a_script_never_stops_the_linter(stride):
    """Cut after each `stride` characters, and with an odd quote in front."""
    start = time.monotonic()
    for path in [*GOOD[::6], *BAD[::6]]:
        text = path.read_text(encoding="utf-8")
        for end in range(0, len(text), stride):
            lint(text[:end])
            lint('"' + text[end:])
            lint("$(( " + text[end:])
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    "text", ["", "'", '"', "`", "$(", "${", "$((", "a <<", "a <<E", "((", "[[", "a=("]
)
def test_what_is_never_closed_ends_with_the_text(text):
    lint(text)
    lint(f"#!/bin/bash\n#SBATCH --nodes=2\nsrun {text}")


def test_one_task_on_each_node_is_known_without_the_number_of_nodes():
    """As for a script whose --nodes is given to sbatch."""
    text = "#!/bin/bash\n#SBATCH --ntasks-per-node=4\nsrun -n $SLURM_NNODES python x.py"
    script = Script("x", text)
    assert script.step(script.launches[0]).per_node == 1


def test_quotes_that_are_not_closed_take_no_longer():
    """Each level was read twice, so thirty of them took hours."""
    text = 'export A="$(b "$(' * 30
    assert len(parse(text)) < 100


@pytest.mark.parametrize("start", ["bash -c", "srun bash -c", "ssh node1"])
def test_text_that_runs_itself_is_read_to_an_end(start):
    """As by a here-document whose end is missing."""
    runs = f'{start} "$RUN"\n' * 2
    text = f"#!/bin/bash\nread -r -d '' RUN <<'END'\npython a.py\n{runs}"
    assert [each for each in lint(text + runs) if each.is_error] == []
