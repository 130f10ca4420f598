"""The ``workshop`` command: a learner's, grade, doctor, diagnose, lint, submit.

It must answer at once: torch is never imported here (the engine's server does
that, while this process imports what it draws with), and rich and watchfiles are
imported only by the commands that use them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from workshop.author.commands import dev
from workshop.catalog import find_root
from workshop.cluster.cli import cluster
from workshop.errors import UserError
from workshop.learner import commands as exercises
from workshop.learner.house import STOPPED, House, complain, complete_name, make_screen
from workshop.system.paths import shown_path
from workshop.versions import missing_module


class Workshop(click.Group):
    """Bad input and broken set-ups become one sentence and an exit status."""

    def main(self, *args, standalone_mode: bool = True, **extra) -> Any:
        try:
            status = super().main(*args, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            status = 0
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            if context:
                command = context.command_path
            else:  # click gives none if an option lacks its value
                command = self.named_by(extra.get("args") or sys.argv[1:])
            sentence = error.format_message().rstrip(".")
            complain(f"{sentence}: `{command} --help` shows what it takes")
            status = 2
        except UserError as error:
            complain(str(error))
            status = error.exit_status
        except ImportError as error:
            complain(missing_module(error))
            status = 3
        except (click.Abort, KeyboardInterrupt):
            complain("stopped")
            status = STOPPED
        if standalone_mode:
            sys.exit(status or 0)
        return status

    def named_by(self, words: Sequence[str]) -> str:
        """The command that a command line begins with: workshop cluster up."""
        command: click.Command = self
        path = "workshop"
        for word in words:
            if not isinstance(command, click.Group) or word not in command.commands:
                break
            command = command.commands[word]
            path += f" {word}"
        return path

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which they were added


@click.group(cls=Workshop, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Check your exercises, see what comes next, ask for hints.

    NAME is the name of an exercise or a part that only one of them has: "ring"
    is enough for 03_ring_all_reduce.
    """


for command in exercises.COMMANDS:
    cli.add_command(command)


@cli.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=Path)
@click.option("--each", is_flag=True, help="Every folder inside DIR is one learner.")
@click.option(
    "-e",
    "--exercise",
    "names",
    multiple=True,
    metavar="NAME",
    help="Grade only this exercise; may be repeated.",
    shell_complete=complete_name,
)
@click.option("--csv", "csv_path", type=Path, metavar="FILE", help="A row per learner.")
@click.option("--json", "json_path", type=Path, metavar="FILE", help="Everything.")
@click.option("--junit", "junit_path", type=Path, metavar="FILE", help="For CI.")
@click.option("--html", "html_path", type=Path, metavar="FILE", help="For the room.")
@click.option("--watch", is_flag=True, help="Grade again what changes, until Ctrl-C.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    metavar="N",
    help="Exercises graded at the same time (each uses about 4 cores; default 1).",
)
def grade(
    folders, each, names, csv_path, json_path, junit_path, html_path, watch, jobs
) -> int:
    """Grade the folders of many learners.

    Each DIR is one learner's: the exercise files lie in it or in its exercises/
    folder. A file that is missing counts as not started. Results are written
    during grading, so an interruption loses nothing. --html writes a page for the
    room that shows who is where and reloads itself.
    """
    from workshop.classroom.book import Gradebook
    from workshop.classroom.outputs import Outputs
    from workshop.classroom.pool import grade_all
    from workshop.classroom.submissions import collect
    from workshop.classroom.watching import KeptEngines, watch_folders

    house = House()
    catalog = house.catalog
    if names:
        wanted = {house.find(name).name for name in names}
        catalog = [e for e in catalog if e.name in wanted]
    read = partial(collect, folders, catalog, each)
    book = Gradebook(catalog, read())
    paths = {"csv": csv_path, "json": json_path, "junit": junit_path, "html": html_path}
    outputs = Outputs(**paths, watching=watch)
    if watch and not outputs.paths:
        raise UserError("--watch shows nothing without a file: add --html FILE")
    outputs.try_out()
    from workshop.grader.engine.engine import Engine

    make_engine = partial(Engine, hidden=folders)
    finished = True
    if watch:
        with KeptEngines(make_engine) as engines:
            watch_folders(book, read, engines.lend, jobs, outputs, make_screen)
    else:
        finished = grade_all(book, make_engine, jobs, outputs, make_screen)
    if outputs.problem:
        complain(outputs.problem)
        return 2
    if watch:
        complain(f"stopped watching{outputs.where()}")
        return STOPPED
    if not finished:
        complain(f"stopped: {book.graded} of {book.total} were graded{outputs.where()}")
        return STOPPED
    return 3 if book.environment_broken else 0


@cli.command()
@click.option(
    "--job", is_flag=True, help="Find out why the nodes of this job don't connect."
)
@click.option("--rdzv-endpoint", default="", metavar="HOST:PORT", help="As torchrun's.")
@click.option("--rdzv-id", default="", metavar="ID", help="As torchrun's.")
@click.option(
    "--nnodes", type=click.IntRange(1), help="Number of nodes, without a scheduler."
)
@click.option(
    "--submit", is_flag=True, help="Prove the cluster in a job of two nodes of its own."
)
@click.argument(
    "options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF THE SCHEDULER]"
)
def doctor(
    job: bool,
    rdzv_endpoint: str,
    rdzv_id: str,
    nnodes: int | None,
    submit: bool,
    options: tuple[str, ...],
) -> int:
    """Report what works on this machine; exit status 3 if a required part is broken.

    With --job, inside an allocation, check from every node what the nodes need to
    connect; exit status 1 if anything is wrong. Without a scheduler, start it on each
    node. With --job --submit, on a login node, submit a job that also measures what
    the ranks get there, and trains; what follows -- is for sbatch or qsub.
    """
    if options and not submit:
        raise UserError(f"{options[0]!r} is no option of doctor (--help shows them)")
    if submit and not job:
        raise UserError("--submit belongs to --job: workshop doctor --job --submit")
    if submit and (rdzv_endpoint or rdzv_id or nnodes):
        raise UserError("--submit chooses the endpoint, the id and the nodes itself")
    if submit:
        return doctor_of_cluster(options)
    if job:
        return doctor_of_job(rdzv_endpoint, rdzv_id, nnodes or 0)
    if rdzv_endpoint or rdzv_id or nnodes:
        raise UserError("--rdzv-endpoint, --rdzv-id and --nnodes belong to --job")
    from workshop.doctor.machine import broken, checks

    screen = make_screen()
    with screen.waiting("Looking at this machine (some seconds) ..."):
        found = checks()
    screen.doctor(found)
    faults = broken(found)
    for fault in faults:
        complain(f"{fault.name} does not work: {fault.cure or fault.detail}")
    return 3 if faults else 0


def doctor_of_job(endpoint: str, rdzv_id: str, nnodes: int) -> int:
    from workshop.doctor.job import examine, place_from

    findings, answered = examine(place_from(endpoint, rdzv_id, nnodes))
    for finding in findings:
        click.echo(f"- {finding}")
    if not findings:
        names = ", ".join(answered)
        click.echo(f"Checked from {names}: nothing keeps the nodes apart.")
    return 1 if findings else 0


def doctor_of_cluster(options: tuple[str, ...]) -> int:
    from workshop.doctor import submission

    root = find_root()
    job = submission.submit(root, options)
    click.echo(f"job {job.number} is submitted; its log: {shown_path(job.log)}")
    submission.wait(job, click.echo)
    proof = submission.read(job, root)
    if proof.log:
        click.echo(proof.log.rstrip())
    for finding in proof.findings:
        click.echo(f"- {finding}")
    if not proof.findings:
        click.echo("Nothing is wrong with what the job got.")
    return 1 if proof.findings else 0


def asked(words: str, logs: tuple[str, ...]) -> str:
    """The text of --words, which goes without a LOG."""
    if logs:
        raise UserError(
            f"--words looks up one text, without a LOG: leave out {logs[0]}"
        )
    if not words.strip():
        raise UserError('--words is empty: give a line or words, as in --words "hangs"')
    return words


@cli.command()
@click.argument("logs", nargs=-1, metavar="LOG...")
@click.option(
    "--words",
    metavar="TEXT",
    help="Look up one line, or what you see, instead of reading a log.",
)
def diagnose(logs: tuple[str, ...], words: str | None) -> int:
    """Read the LOGs of a run: which rank failed first, or what is wrong, and why.

    LOG is a file, torchrun's --log-dir, its error.json, what py-spy dump prints, or -
    for what you paste. The exit status is 0 if one cause is named, 1 if none is
    certain. With --words it is 0 if something fits.
    """
    from workshop.diagnose.logs import must_have_text, read_logs
    from workshop.diagnose.report import diagnose as explain
    from workshop.diagnose.words import told_lines

    if words is not None:
        told, sure = told_lines(asked(words, logs), find_root())
    elif logs:
        log = read_logs(logs)
        must_have_text(log, logs)
        told, sure = explain(log, find_root())
    else:
        raise UserError('name a LOG, or what you see: workshop diagnose --words "TEXT"')
    click.echo("\n".join(told))
    return 0 if sure else 1


@cli.command()
@click.argument("jobs", nargs=-1, metavar="JOB...")
@click.option(
    "--line", "lines", multiple=True, metavar="COMMAND", help="A launch line in quotes."
)
@click.option(
    "--format",
    "form",
    default="text",
    metavar="FORM",
    help="text (default), json or sarif.",
)
@click.option("--explain", "code", metavar="CODE", help="Show a rule with examples.")
def lint(jobs: tuple[str, ...], lines: tuple[str, ...], form: str, code: str) -> int:
    """Find mistakes in job scripts and launch lines, without running them.

    JOB is a script for sbatch, qsub or bash, or - for standard input. A comment
    "# workshop: ignore DT207" on a line, or above it, silences one finding there. The
    exit status is 1 if there is an error, and 0 if there are only warnings.
    """
    from workshop.lint.command import explain, run

    if code:
        return explain(code)
    return run(jobs, lines, form)


@cli.command()
@click.argument("name", required=False)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that the site needs, such as PROJECT=ab12; repeatable.",
)
@click.option("--forget", is_flag=True, help="Go back to the plain site.")
def site(name: str | None, settings: tuple[str, ...], forget: bool) -> None:
    """Choose the site where job scripts run; without NAME, list the sites."""
    from workshop.cluster.jobs import sites

    root = find_root()
    if forget:
        sites.forget(root)
    elif name:
        click.echo(f"{shown_path(sites.choose(root, name, settings))} is written:")
        click.echo((root / sites.CHOSEN).read_text(encoding="utf-8"), nl=False)
        return
    elif settings:
        raise click.UsageError("--set needs the NAME of a site before it")
    now = sites.chosen(root)
    for each in sites.sites(root).values():
        mark = "*" if each.name == now else " "
        click.echo(f"{mark} {each.name:<16} {each.title}")
        for key, meaning in each.settings.items() if each.name == name else ():
            click.echo(f"      {key}  {meaning}")
    if now is None:
        click.echo(
            "No site is chosen: the plain site of the script's scheduler is used."
        )


@cli.command(context_settings={"ignore_unknown_options": True})
@click.option("--dry-run", is_flag=True, help="Only show what would be submitted.")
@click.option("--anyway", is_flag=True, help="Submit in spite of errors.")
@click.option("--nodes", type=click.IntRange(1), help="Overrides the script.")
@click.option("--time", metavar="HH:MM:SS", help="Overrides the script.")
@click.argument("script")
@click.argument(
    "options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF THE SCHEDULER]"
)
def submit(dry_run, anyway, nodes, time, script, options) -> int:
    """Submit SCRIPT with the options of the chosen site.

    What follows SCRIPT is for sbatch or qsub and comes after the site's options. The
    script is read by `workshop lint` first; with errors in it, it isn't submitted.
    """
    import shlex

    from workshop.cluster.jobs import sites
    from workshop.lint.command import look_at

    root = find_root()
    planned = sites.plan(root, script, options, nodes, time)
    told, errors = look_at(script)
    if told:
        click.echo(told, err=True)
    if errors and not (anyway or dry_run):
        complain(f"not submitted: cure {errors}, or add --anyway before the script")
        return 2
    if not dry_run:
        return sites.submit(root, planned)
    click.echo(f"# site {planned.site}, in {root}")
    click.echo(shlex.join(planned.command))
    if planned.rewritten is not None:
        click.echo("# this copy of the script, with the resources of the site:")
        click.echo(planned.rewritten, nl=False)
    return 0


@cli.command()
@click.argument("folder", default="capstone", type=Path)
def capstone(folder: Path) -> int:
    """Grade lesson 20 from what the two jobs left in FOLDER.

    FOLDER (default: capstone) has undisturbed/ and disturbed/, each with
    manifest.jsonl, log.txt, accounting.txt and checkpoints. If accounting.txt is
    missing, the scheduler is asked for it. 0 all points, 1 some are missing.
    """
    from workshop.capstone.fetch import fetch_missing
    from workshop.capstone.judge import judge
    from workshop.capstone.show import show
    from workshop.learner.second_task import second_task

    screen = make_screen()
    for sentence in fetch_missing(folder):
        screen.say(sentence)
    status = show(screen, judge(folder, find_root()))
    told = second_task(House())
    if told:
        screen.say(told)
    return status


cli.add_command(cluster)
cli.add_command(dev)


def main() -> None:
    """The entry point of the ``workshop`` command."""
    cli(prog_name="workshop")


if __name__ == "__main__":
    main()
