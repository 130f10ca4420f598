"""What a learner types: list, check, watch, hint, next, reset, diff."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from workshop.catalog import Exercise
from workshop.errors import UserError
from workshop.learner.exposure import say_once
from workshop.learner.house import (
    STOPPED,
    House,
    complain,
    complete_name,
    make_screen,
    warm_engine,
)
from workshop.system.paths import shown_path

if TYPE_CHECKING:
    from workshop.grader.engine.engine import Engine
    from workshop.grader.verdicts.verdict import Result
    from workshop.learner.display import Screen


def complete_path(ctx, param, incomplete: str) -> list[str]:
    """Names of paths, for the shell's completion."""
    try:
        names = [path.name for path in House().paths()]
    except UserError:
        return []
    return [name for name in names if incomplete in name]


of_path = click.option(
    "--path",
    "path_name",
    metavar="NAME",
    shell_complete=complete_path,
    help="Only the exercises of this path; the first page of the site has them.",
)


@click.command("list")
@of_path
def list_command(path_name: str | None) -> None:
    """Every exercise in order, and how far you are."""
    house = House()
    house.follow(path_name)
    screen = make_screen()
    screen.catalog(house.catalog, house.progress.states(house.catalog))
    show_next(house, screen)


def show_next(house: House, screen: Screen) -> None:
    """The next exercise with something left to do, or that there is none."""
    if house.path is not None:
        screen.next_on_path(house.path, house.progress.states(house.catalog))
        return
    exercise = house.progress.next(house.catalog)
    if exercise is None:
        screen.finished(house.progress.states(house.catalog))
    else:
        screen.next(exercise)


@click.command()
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
    """Check exercises: 0 right, 1 wrong, 2 not started, 3 set-up broken, 4 not fully
    checked: right as far as this machine could try it.

    Without NAME the next one that is not right is checked. Several are all
    checked; the exit status is then 0 only if all are right.
    """
    from workshop.learner.progress import MISSING, NOT_FULLY, NOT_STARTED

    house = House()
    if names and everything:
        raise UserError("--all and names exclude each other: give one of them")
    named = list(dict.fromkeys(house.find(name) for name in names))
    states = {}
    if not solutions:  # each costs a look at its files
        states = house.progress.states(named or house.catalog)
    chosen = named or choose_exercises(house, states, everything, solutions)
    busy = any(states.get(e.name) not in (NOT_STARTED, MISSING) for e in chosen)
    with warm_engine(busy, seeds) as engine:
        screen = make_screen()
        if not chosen:
            screen.finished(states)
        elif not names and not solutions and not everything:
            screen.say(f"The next one that is not right: {chosen[0].name}", "dim")
        one = OneCheck(house, engine, screen, verbose)
        results = []
        for exercise in chosen:
            results.append(one.run(exercise, solutions, keep=not seeds))
        if len(chosen) > 1:
            right = sum(result.passed for result in results)
            partial = sum(result.status == NOT_FULLY for result in results)
            told = f", {partial} not fully checked" if partial else ""
            screen.say(f"{right} of {len(chosen)} right{told}")
        say_once(house.root, engine.exposed, screen.say)
    return overall_status([result.status for result in results])


def choose_exercises(
    house: House, states: dict[str, str], everything: bool, solutions: bool
) -> list[Exercise]:
    """What is checked where no exercise is named; [] if there is nothing left.

    Raises:
        UserError: those that were started are asked for, and none was.
    """
    from workshop.learner.progress import MISSING, NOT_STARTED

    if solutions:
        return house.catalog
    if not everything:
        first = house.progress.next(house.catalog)
        return [first] if first else []
    idle = (NOT_STARTED, MISSING)
    started = [e for e in house.catalog if states[e.name] not in idle]
    if not started:
        raise UserError(
            "you haven't started an exercise yet: `workshop next` shows you one"
        )
    return started


def overall_status(statuses: list[str]) -> int:
    """The exit status for several: that of the one which is furthest from right."""
    from workshop.grader.verdicts.verdict import EXIT_STATUS

    for status in ("environment", "wrong", "not started", "not fully checked"):
        if status in statuses:
            return EXIT_STATUS[status]
    return EXIT_STATUS["right"]


class OneCheck:
    """Checks one exercise, shows the verdict, keeps it in the progress."""

    def __init__(self, house: House, engine: Engine, screen: Screen, verbose: bool):
        self.house, self.engine, self.screen = house, engine, screen
        self.verbose = verbose

    def run(self, exercise: Exercise, solutions: bool, keep: bool) -> Result:
        from workshop.learner.progress import content_of, digest_of

        before = None if solutions else content_of(exercise)
        graded = exercise.solution if solutions else None
        result = self._grade(exercise, graded)
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


@click.command()
@click.argument("name", required=False, shell_complete=complete_name)
@of_path
def watch(name: str | None, path_name: str | None) -> int:
    """Check on every save, and move on once your answer is right.

    Keys: h hint, n next, c check again, l list, q quit.
    """
    house = House()
    house.follow(path_name)
    exercise = house.current(name)
    if exercise is None:
        show_next(house, make_screen())
        return 0
    with warm_engine() as engine:
        from workshop.learner.watch.loop import Watch

        status = Watch(house, engine, make_screen(), exercise).run()
    if status == STOPPED:
        raise KeyboardInterrupt
    return status


@click.command()
@click.argument("name", required=False, shell_complete=complete_name)
@click.option("--again", is_flag=True, help="Show the same hints, no new one.")
def hint(name: str | None, again: bool) -> None:
    """One more hint for NAME (three in all), or for the next exercise."""
    house = House()
    exercise = house.current(name)
    screen = make_screen()
    if exercise is None:
        show_next(house, screen)
        return
    if again:
        number = house.progress.hints_shown(exercise)
        if not number:
            raise UserError(
                f"you haven't seen a hint for {exercise.name} yet: leave out --again"
            )
    else:
        number = house.progress.show_hint(exercise)
    screen.line((f"{exercise.name}: {exercise.title}", "bold"))
    screen.hints(exercise, number)


@click.command("next")
@of_path
def next_command(path_name: str | None) -> None:
    """The next exercise: its file, its page, and how long it takes."""
    house = House()
    house.follow(path_name)
    show_next(house, make_screen())


@click.command()
@click.argument("name", shell_complete=complete_name)
def reset(name: str) -> None:
    """Start NAME again; your version is kept in .workshop/backup/."""
    from workshop.learner.progress import content_of, is_untouched, write_atomically
    from workshop.skeleton import read_solution, skeleton_text

    house = House()
    exercise = house.find(name)
    fresh = skeleton_text(read_solution(exercise.solution), exercise.suffix)
    content = content_of(exercise)
    path = shown_path(exercise.path)
    if content == fresh.encode():
        click.echo(f"{path} is unchanged: nothing to reset")
        house.progress.forget(exercise)
        return
    if content is not None and not is_untouched(exercise, content):
        backup = house.progress.back_up(exercise, content)
        click.echo(f"Your version is kept as {shown_path(backup)}")
    try:
        write_atomically(exercise.path, fresh)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    house.progress.forget(exercise)
    click.echo(f"{path} is the original again, and its hints start over")


@click.command()
@click.argument("name", shell_complete=complete_name)
@click.option("--anyway", is_flag=True, help="Show it though yours is not right yet.")
def diff(name: str, anyway: bool) -> None:
    """Your file beside the solution, once yours is right."""
    import difflib

    from workshop.learner.progress import MISSING, NOT_FULLY, RIGHT, content_of
    from workshop.skeleton import plain_solution, read_solution

    house = House()
    exercise = house.find(name)
    state = house.progress.state(exercise)
    if state == MISSING:
        raise UserError(
            f"{shown_path(exercise.path)} is missing: `workshop reset {exercise.name}` "
            "restores it"
        )
    if state not in (RIGHT, NOT_FULLY) and not anyway:
        raise UserError(
            f"{exercise.name} is {refusal(state)}; the solution is shown once yours is "
            f"right (`workshop check {exercise.name}`), or now with --anyway"
        )
    answer = (content_of(exercise) or b"").decode("utf-8", "replace")
    solved = plain_solution(read_solution(exercise.solution))
    lines = difflib.unified_diff(
        answer.splitlines(),
        solved.splitlines(),
        f"yours: {shown_path(exercise.path)}",
        f"solution: {shown_path(exercise.solution)}",
        lineterm="",
    )
    shown_lines = list(lines)
    if not shown_lines:
        click.echo("Your file is the solution, line for line.")
    make_screen().diff(shown_lines)


def refusal(state: str) -> str:
    return {"changed": "not checked since its last change"}.get(state, state)


COMMANDS = (list_command, check, watch, hint, next_command, reset, diff)
