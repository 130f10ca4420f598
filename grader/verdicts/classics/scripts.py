"""Mistakes of job scripts, from the script's text and what the check found."""

from __future__ import annotations

import re

from grader.verdicts.classics.classic import Classic, Table, first_seen

DIRECTIVE = re.compile(r"#(SBATCH|PBS)\s+-")
WITH_A_SPACE = re.compile(r"^#\s+(SBATCH|PBS)\s+-", re.MULTILINE)
LOST_FOLDER = re.compile(r"cd: \S+: No such file|didn't get --nnodes")
INNER_SHELL = re.compile(r"\bbash\s+(-l\s+)?-l?c\b(?!\s+\"[^$])")  # not in "..."


def _below_a_command(script: str, problem: str) -> bool:
    lines = [line.strip() for line in script.splitlines()]
    commands = [n for n, line in enumerate(lines) if line and line[0] != "#"]
    return any(map(DIRECTIVE.match, lines[commands[0] :])) if commands else False


def _expanded_here(script: str, problem: str) -> bool:
    all_0 = "--node-rank" in problem and "is '0'" in problem
    return all_0 and "SLURM_NODEID" in script and "SLURM_LOCALID" not in script


def _argument_0(script: str, problem: str) -> bool:
    inner = INNER_SHELL.search(script) and re.search(r"\$[@1]", script)
    used = re.search(r"(?<!\[)\$0", script)  # awk's seen[$0] is another one
    return bool(inner and not used and LOST_FOLDER.search(problem))


# seen(script, problem): what the learner wrote, and the sentences of the check
IN_SCRIPTS: Table = {
    "directive_below": Classic(
        "an #SBATCH or #PBS line below the first command is only a comment: the "
        "scheduler has stopped reading",
        seen=_below_a_command,
    ),
    "directive_space": Classic(
        "`# SBATCH` or `# PBS`, with a space, is only a comment: write `#SBATCH`",
        seen=lambda script, problem: WITH_A_SPACE.search(script),
    ),
    "expanded_here": Classic(
        "`$SLURM_NODEID` was expanded by the shell of the batch script, which runs on "
        "the first node: let a shell of each task expand it",
        seen=_expanded_here,
    ),
    "argument_0": Classic(
        "the first word after `bash -c 'SCRIPT'` becomes `$0` and is no part of "
        '`"$@"`: put a word in front of the arguments',
        seen=_argument_0,
    ),
}


def of_script(script: str, problem: str) -> str:
    """The key of the mistake for a job script that is wrong, or ""."""
    return first_seen(IN_SCRIPTS, script, problem)[0]
