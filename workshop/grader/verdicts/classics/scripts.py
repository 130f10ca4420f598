"""Mistakes of job scripts, from the script's text and what the check found."""

from __future__ import annotations

import re
from collections.abc import Callable

from workshop.grader.verdicts.classics.classic import Classic, Table, first_seen
from workshop.lint.linting import lint

Seen = Callable[[str, str], bool]
LOST_FOLDER = re.compile(r"cd: \S+: No such file|didn't get --nnodes")
UNSEEN = "has failed, but the job has the exit status 0"
LOST_TASKS = re.compile(rf"start(ed)? torchrun\n  has \d|{UNSEEN}")
LAUNCHER = re.compile(r"\b(srun|pbsdsh|pbs_tmrsh|ssh|mpirun|mpiexec)\b")
OF_A_SHELL = re.compile(r"\b(cd|source|export): (No such file|command not found)")
OPTION_AS_COMMAND = re.compile(r"line \d+: --?\w\S*: command not found")
IN_DOUBLE_QUOTES = re.compile(r"[=\s(]\"[^\"'\n]*\s\$@")
LAST_TEST = re.compile(r"^(\[.*\]|\(\(.*\)\)) *&& *exit\b.*\s*\Z", re.MULTILINE)
INNER_SHELL = re.compile(r"\bbash\s+(-l\s+)?-l?c\b(?!\s+\"[^$])")  # not in "..."


def _linted(code: str) -> Seen:
    """`workshop lint` finds this mistake in the script."""

    def seen(script: str, problem: str) -> bool:
        return any(finding.rule.code == code for finding in lint(script))

    return seen


def _not_exported(script: str, problem: str) -> bool:
    lost = any("doesn't export" in finding.what for finding in lint(script))
    return lost and "is ''" in problem


def _expanded_here(script: str, problem: str) -> bool:
    all_0 = "--node-rank" in problem and "is '0'" in problem
    return all_0 and "SLURM_NODEID" in script and "SLURM_LOCALID" not in script


def _argument_0(script: str, problem: str) -> bool:
    inner = INNER_SHELL.search(script) and re.search(r"\$[@1]", script)
    used = re.search(r"(?<!\[)\$0", script)  # awk's seen[$0] is another one
    return bool(inner and not used and LOST_FOLDER.search(problem))


def _bare_task(script: str, problem: str) -> bool:
    lost = re.search(r"\b(torchrun|python3?): command not found", problem)
    return bool(lost and re.search(r"\b(pbsdsh|pbs_tmrsh|ssh)\b", _code(script)))


def _code(script: str) -> str:
    """The script without the lines that are comments."""
    lines = script.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _not_waited(script: str, problem: str) -> bool:
    """Also where the last launch is in the foreground.

    The linter's DT303 leaves that alone: a job may end while its server still runs.
    """
    code = _code(script)
    behind = re.search(r"(?<!&)&[ \t]*$", code, re.MULTILINE)
    lost = LOST_TASKS.search(problem) or "no host started" in problem
    return bool(behind and lost and not re.search(r"\bwait\b", code))


def _fails_unseen(pattern: str, unless: str = "pbsdsh") -> Seen:
    """A failed task is hidden by what ``pattern`` finds in the code.

    The check has seen that, so the pattern may be wider than a rule of the linter:
    DT302 is quiet about `bash -lc "$script" | tee log`, which may start anything.
    """

    def seen(script: str, problem: str) -> bool:
        code = _code(script)
        hidden = re.search(pattern, code, re.MULTILINE)
        return bool(hidden and UNSEEN in problem and not re.search(unless, code))

    return seen


def _one_wait(script: str, problem: str) -> bool:
    code = _code(script)
    at_the_end = re.search(
        r"^wait\b.*\s*(exit( \"?\$\?\"?)?)?\s*\Z", code, re.MULTILINE
    )
    single = at_the_end and len(re.findall(r"\bwait\b", code)) == 1
    of_one_task = single and "pbsdsh" not in code  # that one starts all tasks
    return bool(of_one_task and LOST_TASKS.search(problem))


def _first_of_a_list(script: str, problem: str) -> bool:
    """A loop over ``$hosts``, which a `mapfile` has made a list."""
    code = _code(script)
    lists = set(re.findall(r"\bmapfile\b[^<\n]* (\w+) *<", code))
    looped = re.findall(
        r"\bfor \w+ in \"?\$\{?(\w+)\}?\"? *(?:;|$)", code, re.MULTILINE
    )
    return bool(lists & set(looped) and "has 1 item" in problem)


def _all_here(script: str, problem: str) -> bool:
    on_one = re.search(r"is \['(\w+)'(, '\1')*\], expected \['\w+', ", problem)
    return bool(on_one and not LAUNCHER.search(_code(script)))


def _not_one_argument(script: str, problem: str) -> bool:
    word = r"(torchrun|'torchrun'|\"torchrun\")"
    bare = re.search(rf"\bbash\s+(-l\s+)?-l?c\s+{word}\s", _code(script))
    return bool(bare and "didn't get --" in problem)


# seen(script, problem): what the learner wrote, and the sentences of the check
IN_SCRIPTS: Table = {
    "directive_below": Classic(
        "an #SBATCH or #PBS line below the first command is only a comment: the "
        "scheduler has stopped reading",
        seen=_linted("DT001"),
    ),
    "directive_space": Classic(
        "`# SBATCH` or `# PBS`, with a space, is only a comment: write `#SBATCH`",
        seen=_linted("DT003"),
    ),
    "directive_misspelled": Classic(
        "only `#SBATCH` and `#PBS`, in capitals and spelled like this, are directives: "
        "anything else is a comment",
        seen=_linted("DT002"),
    ),
    "directive_blanks": Classic(
        "an option of #SBATCH ends at a blank: write `--option=value` without blanks",
        seen=_linted("DT004"),
    ),
    "broken_line": Classic(
        "a backslash continues a line only as its very last character: without one, or "
        "with a blank or a comment behind it, bash takes the next line for a command",
        seen=lambda script, problem: OPTION_AS_COMMAND.search(problem),
    ),
    "not_exported": Classic(
        "a variable that the script doesn't export is empty in the shell of each task: "
        "`export` it",
        seen=_not_exported,
    ),
    "expanded_here": Classic(
        "`$SLURM_NODEID` was expanded by the shell of the batch script, which runs on "
        "the first node: let a shell of each task expand it",
        seen=_expanded_here,
    ),
    "expanded_at_once": Classic(
        "`$@` in double quotes is replaced by the arguments of this script, which has "
        "none: write the script of the task in single quotes",
        seen=lambda script, problem: (
            LOST_FOLDER.search(problem) and IN_DOUBLE_QUOTES.search(_code(script))
        ),
    ),
    "argument_0": Classic(
        "the first word after `bash -c 'SCRIPT'` becomes `$0` and is no part of "
        '`"$@"`: put a word in front of the arguments',
        seen=_argument_0,
    ),
    "not_one_argument": Classic(
        "`bash -c` takes its script as one argument: put the whole command into "
        "quotes, or `bash` starts its first word alone",
        seen=_not_one_argument,
    ),
    "not_expanded": Classic(
        "no shell has replaced this variable: srun starts its program without one, so "
        "name one, as in `srun bash -c '...'`",
        seen=lambda script, problem: (
            "srun" in script and re.search(r"\bis '\$\w+'", problem)
        ),
    ),
    "last_test": Classic(
        "a test that is false has status 1, and the script ends with that of its last "
        "command: write `if ...; then exit 1; fi`",
        seen=lambda script, problem: (
            "ended as FAILED (1)" in problem and LAST_TEST.search(_code(script))
        ),
    ),
    "status_of_a_pipe": Classic(
        "a pipe has the status of its last command, and that of `tee` is 0: write "
        "`set -o pipefail` first, or let the task write to a file with `>`",
        seen=_fails_unseen(r"[^|]\|\s*tee\b", "pipefail|PIPESTATUS|pbsdsh"),
    ),
    "set_in_a_pipe": Classic(
        "a loop that reads from a `|` has a shell of its own: a variable that it sets "
        "stays unchanged here, so write `while ...; done < <(COMMAND)`",
        seen=_fails_unseen(r"[^|]\|\s*while\b[^}]*\bdone\b", "lastpipe"),
    ),
    "set_in_the_background": Classic(
        "a task started with `&` has a shell of its own: a variable that it sets stays "
        "unchanged here, so take the task's status from `wait`",
        seen=_fails_unseen(r"\|\|\s*\w+=\S*\s*&[ \t]*$"),
    ),
    "all_here": Classic(
        "the script runs on the first node, and so does what it starts: let srun, or "
        "pbs_tmrsh or pbsdsh of PBS, start torchrun on each node",
        seen=_all_here,
    ),
    "first_of_a_list": Classic(
        "`$hosts` is the first entry of the list alone: all of them are "
        '`"${hosts[@]}"`',
        seen=_first_of_a_list,
    ),
    "no_shell_there": Classic(
        "`cd`, `source` and `export` are commands of a shell, and what starts a task "
        "starts none: name one, as in `bash -c '...'`, with all commands in its quotes",
        seen=lambda script, problem: OF_A_SHELL.search(problem),
    ),
    "bare_task": Classic(
        "a task of PBS or ssh has a short PATH, and nothing of what the script has "
        "activated or loaded: let the task itself do that, as in "
        "`bash -lc 'source ... && torchrun ...'`",
        seen=_bare_task,
    ),
    "one_wait": Classic(
        "one `wait` gives the status of one task at most, and with `-n` or `$!` it "
        "waits for no other: call it once for each task",
        seen=_one_wait,
    ),
    "script_ends_first": Classic(
        "a job ends with its script, whatever you started with `&`: `wait` for it",
        seen=_not_waited,
    ),
}


def of_script(script: str, problem: str) -> str:
    """The key of the mistake for a job script that is wrong, or ""."""
    return first_seen(IN_SCRIPTS, script, problem)[0]
