"""Which site's scheduler we are at, and what is submitted there.

What differs between sites is in one bash file each, job_scripts/sites/NAME.sh. The
chosen one, with what its user has set, is in job_scripts/site.sh.
"""

from __future__ import annotations

import getopt
import os
import re
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import UserError
from workshop.lint.directives import first_number
from workshop.lint.script import Script

CHOSEN = "job_scripts/site.sh"
SETTING = re.compile(r"^#   ([A-Z][A-Z_]*) +(\S.*)$", re.M)
VALUE = re.compile(r"[\w.,:/+@=~ -]+")
SUFFIXES = {".sbatch": "slurm", ".pbs": "pbs"}
COMMANDS = {"slurm": "sbatch", "pbs": "qsub"}
# Given to bash: the folder, and NODES, TASKS_PER_NODE and TIME in the environment.
ASK = """
set -eu
if [ -e job_scripts/site.sh ]; then source job_scripts/site.sh; fi
: "${WORKSHOP_SITE:=$1}"
source "job_scripts/sites/$WORKSHOP_SITE.sh"
if [ "$TASKS_PER_NODE" != 1 ]; then
  TASKS_PER_NODE=${SITE_GPUS_PER_NODE:-$TASKS_PER_NODE}
fi
echo "$WORKSHOP_SITE"
echo "$SITE_SCHEDULER"
echo "${SITE_REPLACES_RESOURCES:-no}"
site_options
"""


@dataclass(frozen=True)
class Site:
    """A file of job_scripts/sites."""

    name: str
    title: str  # its first line
    settings: dict[str, str]  # what a user may set, and what that means

    @property
    def needed(self) -> list[str]:
        return [key for key, text in self.settings.items() if "(needed)" in text]


def sites(root: Path) -> dict[str, Site]:
    """All sites by their names; the template is not one."""
    found = {}
    for path in sorted((root / "job_scripts" / "sites").glob("*.sh")):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].lstrip("# ")
        if path.stem != "template":
            found[path.stem] = Site(path.stem, title, dict(SETTING.findall(text)))
    return found


def find_site(root: Path, name: str) -> Site:
    known = sites(root)
    if name not in known:
        raise UserError(
            f"there is no job_scripts/sites/{name}.sh: choose one of "
            f"{', '.join(known)}, or copy template.sh to {name}.sh and fill it in"
        )
    return known[name]


def choose(root: Path, name: str, given: tuple[str, ...]) -> Path:
    """Write job_scripts/site.sh for this site, with ``KEY=VALUE`` settings."""
    site = find_site(root, name)
    settings = dict(_setting(site, text) for text in given)
    if missing := [key for key in site.needed if key not in settings]:
        wanted = " ".join(f"--set {key}=..." for key in missing)
        raise UserError(f"{name} needs more: workshop site {name} {wanted}")
    lines = [f"# Written by `workshop site`: {site.title}", f"WORKSHOP_SITE={name}"]
    lines += [f"SITE_{key}={shlex.quote(value)}" for key, value in settings.items()]
    path = root / CHOSEN
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    return path


def _setting(site: Site, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    key = key.removeprefix("SITE_").upper()
    if not equals or not VALUE.fullmatch(value):
        raise UserError(f"--set {text!r} is not KEY=VALUE, such as GPUS_PER_NODE=4")
    if key not in site.settings:
        raise UserError(
            f"{site.name} has no setting {key}: it has {', '.join(site.settings)}"
        )
    return key, value


def forget(root: Path) -> None:
    (root / CHOSEN).unlink(missing_ok=True)


def chosen(root: Path) -> str | None:
    """The name in job_scripts/site.sh; None without that file."""
    path = root / CHOSEN
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^WORKSHOP_SITE=(\S+)$", text, re.M)
    if found is None:
        raise UserError(f"{path} names no WORKSHOP_SITE: choose one with workshop site")
    return found[1]


@dataclass(frozen=True)
class Submission:
    """What is submitted: a command, and the script where it differs from the file."""

    site: str
    command: list[str]  # ends with the path of the script
    rewritten: str | None  # the text to submit in its place


def plan(
    root: Path,
    script: str,
    more: tuple[str, ...] = (),
    nodes: int | None = None,
    time: str | None = None,
) -> Submission:
    """What ``workshop submit`` does at the chosen site.

    Raises:
        UserError: no such script, a script for another scheduler, a broken site file.
    """
    path = Path(script)
    scheduler = SUFFIXES.get(path.suffix)
    if scheduler is None or not path.is_file():
        raise UserError(
            f"{script} is not a job script: name a file that ends in .sbatch or .pbs"
        )
    text = path.read_text(encoding="utf-8", errors="replace")
    asked = _of_script(Script(script, text))
    script = os.path.relpath(path, root)  # jobs start in the folder of the workshop
    values = {
        "NODES": str(nodes or asked["nodes"]),
        "TASKS_PER_NODE": asked["tasks"],
        "TIME": time or asked["time"],
    }
    name, its_scheduler, replaces, *options = _ask_site(root, scheduler, values)
    if its_scheduler != scheduler:
        raise UserError(
            f"{script} is for {COMMANDS[scheduler]}, and the site {name} has "
            f"{COMMANDS.get(its_scheduler, its_scheduler)}: take another script, or "
            "another site (workshop site)"
        )
    command = [COMMANDS[scheduler]]
    if replaces == "yes":
        return Submission(
            name, [*command, *more, script], _with_directives(text, options)
        )
    return Submission(name, [*command, *_kept(options, more), *more, script], None)


def _kept(options: list[str], more: tuple[str, ...]) -> list[str]:
    """The site's options without those that the user sets, too: yours win."""
    own = _names(more)
    return [option for option in options if not _names((option,)) & own]


def _names(words: tuple[str, ...]) -> set[str]:
    """Which of qsub's options these are: ``-q``, or ``-lplace`` for -l place=free."""
    from workshop.cluster.pbs.request import OPTIONS

    try:
        found, _ = getopt.getopt(words, OPTIONS)
    except getopt.GetoptError:  # sbatch's, of which the last wins, or a wrong one
        return set()
    parts = [(option, part) for option, text in found for part in text.split(",")]
    return {
        f"{option}{part.partition('=')[0]}" if option == "-l" else option
        for option, part in parts
    }


def _of_script(script: Script) -> dict[str, str]:
    """Nodes, tasks on each node, and time that the directives of a script say.

    Raises:
        UserError: it asks for hosts in Torque's form, which the site can't override.
    """
    asked = script.resources
    if script.is_torque:
        nodes = asked.value("l nodes")
        select = f"select={asked.nodes or 1}:ncpus={asked.tasks_per_node or 1}"
        raise UserError(
            f"{script.name}:{asked.line('l nodes')} asks in Torque's form, "
            f"nodes={nodes}, beside which no site can ask: write #PBS -l {select} and "
            "#PBS -l place=scatter instead"
        )
    nodes = first_number(asked.value("nodes")) or asked.nodes or 1
    tasks = asked.tasks_per_node
    if tasks is None and script.dialect == "slurm" and asked.tasks:
        tasks = max(1, asked.tasks // nodes)
    time = asked.value("time") or asked.value("l walltime") or "00:10:00"
    return {"nodes": str(nodes), "tasks": str(tasks or 1), "time": time}


def _ask_site(root: Path, scheduler: str, values: dict[str, str]) -> list[str]:
    name = chosen(root) or f"plain_{scheduler}"
    find_site(root, name)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SITE_")}
    environment.pop("WORKSHOP_SITE", None)
    done = subprocess.run(
        ["bash", "-c", ASK, "site", name],
        cwd=root,
        env={**environment, **values},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) < 3:
        reason = (done.stderr.strip().splitlines() or ["it printed too little"])[-1]
        raise UserError(f"job_scripts/sites/{name}.sh does not work: {reason}")
    return lines


def _with_directives(text: str, options: list[str]) -> str:
    """The script with the site's resources in place of its own."""
    kept = [line for line in text.splitlines() if not re.match(r"#PBS +-l", line)]
    first, *rest = kept
    return "\n".join([first, *(f"#PBS {option}" for option in options), *rest, ""])


def submit(root: Path, submission: Submission) -> int:
    """Run the command; its exit status."""
    return _started(root, submission).returncode


def submit_and_read(
    root: Path, submission: Submission, arguments: tuple[str, ...] = ()
) -> str:
    """Run the command, with arguments for the script; what it prints: the job's number.

    Raises:
        UserError: the scheduler refuses the job, in its own words.
    """
    done = _started(root, submission, arguments, stdout=subprocess.PIPE)
    if done.returncode:
        raise UserError(f"{submission.command[0]} did not take the job, see above")
    return done.stdout.strip()


def _started(
    root: Path,
    submission: Submission,
    arguments: tuple[str, ...] = (),
    stdout: int | None = None,
) -> subprocess.CompletedProcess[str]:
    *command, script = submission.command
    try:
        with tempfile.TemporaryDirectory(prefix="workshop-") as folder:
            if submission.rewritten is not None:
                # the scheduler copies the script when it takes it, so ours may go
                copy = Path(folder) / Path(script).name
                copy.write_text(submission.rewritten, encoding="utf-8")
                script = str(copy)
            words = [*command, script, *arguments]
            return subprocess.run(words, cwd=root, stdout=stdout, text=True)
    except FileNotFoundError:
        raise UserError(
            f"there is no {command[0]} on this machine: submit on a login node, look "
            "with --dry-run, or use the practice cluster (workshop cluster)"
        ) from None
