"""The ``workshop`` command: progress, checks, hints, and grading of many learners.

It must answer at once: torch is never imported here (the engine's server does
that, while this process imports what it draws with), and rich and watchfiles are
imported only by the commands that use them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grader.catalog import Exercise, find_exercise, find_root, load_catalog
from grader.errors import UserError
from practice_cluster.cli import cluster

if TYPE_CHECKING:
    from grader.commands.display import Screen
    from grader.commands.progress import Progress
    from grader.engine.engine import Engine
    from grader.verdicts.verdict import Result

STOPPED = 130  # exit status after Ctrl-C, as shells have it


def complain(sentence: str) -> None:
    """One line on stderr, whatever the terminal can encode."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    safe = sentence.encode(encoding, "backslashreplace").decode(encoding)
    click.echo(f"workshop: {' '.join(safe.split())}", err=True)


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
            command = context.command_path if context else "workshop"
            sentence = error.format_message().rstrip(".")
            complain(f"{sentence}: `{command} --help` shows what it takes")
            status = 2
        except UserError as error:
            complain(str(error))
            status = error.exit_status
        except ImportError as error:
            complain(
                f"the environment is broken ({error}): run `make tour` once, then use "
                "the `workshop` of .venv/bin"
            )
            status = 3
        except (click.Abort, KeyboardInterrupt):
            complain("stopped")
            status = STOPPED
        if standalone_mode:
            sys.exit(status or 0)
        return status

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of this file, not of the alphabet


def complete_name(ctx, param, incomplete: str) -> list[str]:
    """Names of exercises, for the shell's completion."""
    try:
        return [e.name for e in load_catalog(find_root()) if incomplete in e.name]
    except UserError:
        return []


class House:
    """What most commands need: the folder, its catalog, the learner's progress."""

    def __init__(self) -> None:
        from grader.commands.progress import Progress

        self.root = find_root()
        self.catalog = load_catalog(self.root)
        self.progress: Progress = Progress(self.root, say=complain)

    def find(self, name: str) -> Exercise:
        """The exercise of that name, part of a name, or path of a file to edit.

        Raises:
            UserError: unknown, ambiguous, or the path of some other file.
        """
        exercise = find_exercise(self.catalog, name)
        if os.sep in name and Path(name).resolve() != exercise.path.resolve():
            raise UserError(
                f"{name} is not {shown(exercise.path)}, the file that is meant by "
                f"{exercise.name}: use the name alone"
            )
        return exercise

    def current(self, name: str | None) -> Exercise | None:
        """The named exercise, else the next that is not right, else None."""
        return self.find(name) if name else self.progress.next(self.catalog)


def shown(path: Path) -> str:
    with contextlib.suppress(ValueError, OSError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def make_screen() -> Screen:
    from grader.commands.display import Screen

    return Screen()


@contextlib.contextmanager
def warm_engine(needed: bool = True, seeds: tuple[int, ...] = ()) -> Iterator[Engine]:
    """An engine whose server already imports torch, before anything else is done."""
    from grader.engine.engine import Engine

    with Engine(seeds=seeds) if seeds else Engine() as engine:
        if needed:
            engine.warm()
        yield engine


@click.group(cls=Workshop, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Check your exercises, see what comes next, ask for hints.

    NAME is the name of an exercise or a part that only one of them has: "ring"
    is enough for 03_ring_all_reduce.
    """


@cli.command("list")
def list_command() -> None:
    """Every exercise in order, and how far you are."""
    house = House()
    screen = make_screen()
    screen.catalog(house.catalog, house.progress.states(house.catalog))
    screen.next(house.progress.next(house.catalog))


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_name)
@click.option("--all", "everything", is_flag=True, help="Every exercise you started.")
@click.option("--solutions", is_flag=True, help="Check the solutions, not your files.")
@click.option("-v", "--verbose", is_flag=True, help="Show all that was seen.")
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(0, 2**31),
    multiple=True,
    help="Seed of the inputs, instead of 1 and 2; may be repeated.",
)
def check(names, everything, solutions, verbose, seeds) -> int:
    """Check exercises: 0 right, 1 wrong, 2 not started, 3 set-up broken.

    Without NAME the next one that is not right is checked. Several are all
    checked; the exit status is then 0 only if all are right.
    """
    from grader.commands.progress import MISSING, NOT_STARTED

    house = House()
    if names and everything:
        raise UserError("--all and names exclude each other: give one of them")
    states = {} if solutions else house.progress.states(house.catalog)
    if names:
        chosen = list(dict.fromkeys(house.find(name) for name in names))
    elif solutions:
        chosen = house.catalog
    elif everything:
        idle = (NOT_STARTED, MISSING)
        chosen = [e for e in house.catalog if states[e.name] not in idle]
        if not chosen:
            raise UserError("no exercise is started yet: `workshop next` names one")
    else:
        first = house.progress.next(house.catalog)
        chosen = [first] if first else []
    busy = any(states.get(e.name) not in (NOT_STARTED, MISSING) for e in chosen)
    with warm_engine(busy, seeds) as engine:
        screen = make_screen()
        if not chosen:
            screen.next(None)
        elif not names and not solutions and not everything:
            screen.say(f"The next one that is not right: {chosen[0].name}", "dim")
        one = OneCheck(house, engine, screen, verbose)
        results = []
        for exercise in chosen:
            results.append(one.run(exercise, solutions, keep=not seeds))
        if len(chosen) > 1:
            right = sum(result.passed for result in results)
            screen.say(f"{right} of {len(chosen)} right")
    return overall_status([result.status for result in results])


def overall_status(statuses: list[str]) -> int:
    """The exit status for several: the set-up first, then wrong, then not started."""
    from grader.verdicts.verdict import EXIT_STATUS

    for status in ("environment", "wrong", "not started"):
        if status in statuses:
            return EXIT_STATUS[status]
    return EXIT_STATUS["right"]


class OneCheck:
    """Checks one exercise, shows the verdict, keeps it in the progress."""

    def __init__(self, house: House, engine: Engine, screen: Screen, verbose: bool):
        self.house, self.engine, self.screen = house, engine, screen
        self.verbose = verbose

    def run(self, exercise: Exercise, solutions: bool, keep: bool) -> Result:
        from grader.commands.progress import content_of, digest_of

        before = None if solutions else content_of(exercise)
        result = self._grade(exercise, exercise.solution if solutions else None)
        self.screen.result(exercise, result, self.verbose)
        if solutions:
            return result
        if result.status == "not started":
            self.screen.not_started(exercise)
        if before is not None and before == content_of(exercise) and keep:
            digest = digest_of(exercise, before)
            try:
                kind = result.verdict.kind.value
                self.house.progress.record(exercise, digest, result.status, kind)
            except UserError as error:
                complain(f"{error} (the verdict above holds)")
        if result.status == "wrong":
            self.screen.say(f"  A hint: workshop hint {exercise.name}", "dim")
        return result

    def _grade(self, exercise: Exercise, path: Path | None) -> Result:
        with self.screen.waiting(f"Checking {exercise.name} ...") as sign:
            done = 0

            def on_check(check, verdict) -> None:
                nonlocal done
                done += 1
                sign.update(f"Checking {exercise.name}: {done} done ...")

            return self.engine.grade(exercise, path=path, on_check=on_check)


@cli.command()
@click.argument("name", required=False, shell_complete=complete_name)
def watch(name: str | None) -> int:
    """Check on every save; go on when it is right.

    Keys: h hint, n next, c check again, l list, q quit.
    """
    house = House()
    exercise = house.current(name)
    if exercise is None:
        make_screen().next(None)
        return 0
    with warm_engine() as engine:
        from grader.commands.watch.loop import Watch

        status = Watch(house, engine, make_screen(), exercise).run()
    if status == STOPPED:
        raise KeyboardInterrupt
    return status


@cli.command()
@click.argument("name", required=False, shell_complete=complete_name)
@click.option("--again", is_flag=True, help="Show the same hints, no new one.")
def hint(name: str | None, again: bool) -> None:
    """One more hint for NAME (three in all), or for the next exercise."""
    house = House()
    exercise = house.current(name)
    screen = make_screen()
    if exercise is None:
        screen.next(None)
        return
    if again:
        number = house.progress.hints_shown(exercise)
        if not number:
            raise UserError(f"no hint for {exercise.name} was shown yet: omit --again")
    else:
        number = house.progress.show_hint(exercise)
    screen.line((f"{exercise.name}: {exercise.title}", "bold"))
    screen.hints(exercise, number)


@cli.command("next")
def next_command() -> None:
    """The path of the next exercise, its page, and how long it takes."""
    house = House()
    make_screen().next(house.progress.next(house.catalog))


@cli.command()
@click.argument("name", shell_complete=complete_name)
def reset(name: str) -> None:
    """Start NAME again; your version is kept in .workshop/backup/."""
    from grader.commands.progress import content_of, is_untouched, write_atomically
    from grader.skeleton import read_solution, skeleton_text

    house = House()
    exercise = house.find(name)
    fresh = skeleton_text(read_solution(exercise.solution), exercise.suffix)
    content = content_of(exercise)
    path = shown(exercise.path)
    if content == fresh.encode():
        click.echo(f"{path} is as it came: nothing to reset")
        house.progress.forget(exercise)
        return
    if content is not None and not is_untouched(exercise, content):
        backup = house.progress.back_up(exercise, content)
        click.echo(f"Your version is kept as {shown(backup)}")
    try:
        write_atomically(exercise.path, fresh)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    house.progress.forget(exercise)
    click.echo(f"{path} is as it came, its hints begin with the first")


@cli.command()
@click.argument("name", shell_complete=complete_name)
@click.option("--anyway", is_flag=True, help="Show it though yours is not right yet.")
def diff(name: str, anyway: bool) -> None:
    """Your file beside the solution, once yours is right."""
    import difflib

    from grader.commands.progress import MISSING, RIGHT, content_of
    from grader.skeleton import plain_solution, read_solution

    house = House()
    exercise = house.find(name)
    state = house.progress.state(exercise)
    if state == MISSING:
        raise UserError(
            f"{shown(exercise.path)} is missing: `workshop reset {exercise.name}` "
            "brings it back"
        )
    if state != RIGHT and not anyway:
        raise UserError(
            f"{exercise.name} is {refusal(state)}; the solution is shown once yours is "
            f"right (`workshop check {exercise.name}`), or now with --anyway"
        )
    mine = (content_of(exercise) or b"").decode("utf-8", "replace")
    solved = plain_solution(read_solution(exercise.solution))
    lines = difflib.unified_diff(
        mine.splitlines(),
        solved.splitlines(),
        f"yours: {shown(exercise.path)}",
        f"solution: {shown(exercise.solution)}",
        lineterm="",
    )
    shown_lines = list(lines)
    if not shown_lines:
        click.echo("Your file is the solution, line for line.")
    make_screen().diff(shown_lines)


def refusal(state: str) -> str:
    return {"changed": "not checked since its last change"}.get(state, state)


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
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    metavar="N",
    help="Exercises graded at the same time (each uses about 4 cores; default 1).",
)
def grade(folders, each, names, csv_path, json_path, junit_path, jobs) -> int:
    """Grade the folders of many learners.

    Each DIR is one learner's: the exercise files lie in it or in its exercises/
    folder. A file that is missing counts as not started. Results are written
    while grading goes on, so that nothing is lost if it is interrupted.
    """
    from grader.commands.grade.book import Gradebook, Outputs, collect, grade_all

    house = House()
    catalog = house.catalog
    if names:
        wanted = {house.find(name).name for name in names}
        catalog = [e for e in catalog if e.name in wanted]
    book = Gradebook(catalog, collect(folders, catalog, each))
    outputs = Outputs(csv=csv_path, json=json_path, junit=junit_path)
    outputs.try_out()
    from grader.engine.engine import Engine

    finished = grade_all(book, Engine, jobs, outputs, make_screen)
    if outputs.problem:
        complain(outputs.problem)
        return 2
    if not finished:
        complain(f"stopped: {book.graded} of {book.total} were graded{outputs.where()}")
        return STOPPED
    return 3 if book.environment_broken else 0


@cli.command()
@click.option("--job", is_flag=True, help="Why do the nodes of this job not meet?")
@click.option("--rdzv-endpoint", default="", metavar="HOST:PORT", help="As torchrun's.")
@click.option("--rdzv-id", default="", metavar="ID", help="As torchrun's.")
@click.option("--nnodes", type=click.IntRange(1), help="How many nodes, by hand.")
def doctor(job: bool, rdzv_endpoint: str, rdzv_id: str, nnodes: int | None) -> int:
    """What works on this machine; 3 if a part that is needed does not.

    With --job, inside an allocation: looks from all of its nodes at what they need
    to meet. Without a scheduler, start it on each node. 0 nothing wrong, 1 something.
    """
    if job:
        return doctor_of_job(rdzv_endpoint, rdzv_id, nnodes or 0)
    if rdzv_endpoint or rdzv_id or nnodes:
        raise UserError("--rdzv-endpoint, --rdzv-id and --nnodes belong to --job")
    from grader.commands.doctor.machine import broken, checks

    screen = make_screen()
    with screen.waiting("Looking at this machine (some seconds) ..."):
        found = checks()
    screen.doctor(found)
    faults = broken(found)
    for fault in faults:
        complain(f"{fault.name} does not work: {fault.cure or fault.detail}")
    return 3 if faults else 0


def doctor_of_job(endpoint: str, rdzv_id: str, nnodes: int) -> int:
    from grader.commands.doctor.job import examine, place_from

    findings, answered = examine(place_from(endpoint, rdzv_id, nnodes))
    for finding in findings:
        click.echo(f"- {finding}")
    if not findings:
        names = ", ".join(answered)
        click.echo(f"Looked from {names}: nothing keeps the nodes from meeting.")
    return 1 if findings else 0


@cli.command()
@click.argument("name", required=False)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="What the site wants to know of you, such as PROJECT=ab12; repeatable.",
)
@click.option("--forget", is_flag=True, help="Go back to the plain site.")
def site(name: str | None, settings: tuple[str, ...], forget: bool) -> None:
    """Choose the site where job scripts run; without NAME: which there are."""
    from grader.jobs import sites

    root = find_root()
    if forget:
        sites.forget(root)
    elif name:
        click.echo(f"{shown(sites.choose(root, name, settings))} is written:")
        click.echo((root / sites.CHOSEN).read_text(encoding="utf-8"), nl=False)
        return
    elif settings:
        raise click.UsageError("--set needs the NAME of a site before it")
    now = sites.chosen(root)
    for each in sites.sites(root).values():
        click.echo(f"{'*' if each.name == now else ' '} {each.name:<16} {each.title}")
        for key, meaning in each.settings.items() if each.name == name else ():
            click.echo(f"      {key}  {meaning}")
    if now is None:
        click.echo("None is chosen: the plain one of the script's scheduler is used.")


@cli.command(context_settings={"ignore_unknown_options": True})
@click.option("--dry-run", is_flag=True, help="Only show what would be submitted.")
@click.option("--nodes", type=click.IntRange(1), help="Other than the script says.")
@click.option("--time", metavar="HH:MM:SS", help="Other than the script says.")
@click.argument("script")
@click.argument(
    "options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF THE SCHEDULER]"
)
def submit(dry_run, nodes, time, script, options) -> int:
    """Submit SCRIPT with the options of the chosen site.

    What follows SCRIPT is for sbatch or qsub and comes after the site's options.
    """
    import shlex

    from grader.jobs import sites

    root = find_root()
    planned = sites.plan(root, script, options, nodes, time)
    if not dry_run:
        return sites.submit(root, planned)
    click.echo(f"# site {planned.site}, in {root}")
    click.echo(shlex.join(planned.command))
    if planned.rewritten is not None:
        click.echo("# this copy of the script, with the resources of the site:")
        click.echo(planned.rewritten, nl=False)
    return 0


cli.add_command(cluster)


def main() -> None:
    """The entry point of the ``workshop`` command."""
    cli(prog_name="workshop")


if __name__ == "__main__":
    main()
