"""``workshop cluster``: the practice cluster on the command line."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from workshop.cluster.nodes.errors import ClusterError

if TYPE_CHECKING:
    from workshop.cluster.nodes.cluster import Cluster


class ClusterGroup(click.Group):
    """What cannot be done becomes one sentence and exit status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ClusterError as error:
            click.echo(f"cluster: {' '.join(str(error).split())}", err=True)
            ctx.exit(2)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of this file


@click.group(cls=ClusterGroup)
@click.option(
    "--state",
    metavar="DIR",
    help="Where it keeps its files; default $WORKSHOP_CLUSTER, else /tmp/"
    "workshop-cluster-UID. Another directory is another cluster.",
)
@click.pass_context
def cluster(ctx: click.Context, state: str | None) -> None:
    """A real Slurm cluster of several nodes on this machine.

    It needs Linux and the packages slurm-wlm and munge, and no root. Its nodes are
    n1, n2 ...; "run" and "shell" work on the login host.
    """
    from workshop.cluster.nodes.cluster import Cluster  # not for each use of `workshop`

    ctx.obj = Cluster(state)


@cluster.command()
@click.option("--nodes", default=4, show_default=True, help="How many nodes.")
@click.option("--cpus", default=4, show_default=True, help="CPUs each node claims.")
@click.option("--gpus", default=2, show_default=True, help="GPUs each node claims.")
@click.option(
    "--memory", default=8000, show_default=True, help="Megabytes each node claims."
)
@click.pass_obj
def up(practice: Cluster, nodes: int, cpus: int, gpus: int, memory: int) -> None:
    """Start it: ready in about a second.

    CPUs, GPUs and memory are what Slurm believes; this machine need not have them.
    """
    practice.up(nodes, cpus, gpus, memory)
    hosts = practice.hosts
    if nodes >= 9:
        hosts = [*hosts[:2], "...", hosts[-1]]
    names = ", ".join(hosts)
    click.echo(
        f"The practice cluster is up: {names}, each with {cpus} CPUs, {gpus} GPUs.\n"
        "Go in with `workshop cluster shell`, end it with `workshop cluster down`."
    )


ANY_COMMAND = {"ignore_unknown_options": True, "allow_interspersed_args": False}
on_node = click.option("--node", metavar="NODE", help="On this node, not on login.")


@cluster.command(context_settings=ANY_COMMAND)
@on_node
@click.argument("words", nargs=-1, required=True, metavar="CMD [ARG]...")
@click.pass_obj
def run(practice: Cluster, node: str | None, words: tuple[str, ...]) -> None:
    """Run a command in it, such as: run sbatch job.sbatch.

    In the current folder, with your environment; its exit status is this one's.
    """
    become(practice, list(words), node)


@cluster.command()
@on_node
@click.pass_obj
def shell(practice: Cluster, node: str | None) -> None:
    """A shell in it; `exit` leads back."""
    words = ["bash", "--rcfile", str(practice.write_shell_start()), "-i"]
    become(practice, words, node)


def become(practice: Cluster, words: list[str], node: str | None) -> None:
    """Replace this process, so that terminal, signals and status are the command's."""
    command, environment = practice.command(words, node), practice.environment()
    sys.stdout.flush()
    # Ctrl-C is the command's business; `command` makes it deadly again in there.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    os.execvpe(command[0], command, environment)


@cluster.command()
@click.argument("node")
@click.pass_obj
def off(practice: Cluster, node: str) -> None:
    """Cut a node's power: what runs on it is lost."""
    practice.off(node)


@cluster.command()
@click.argument("node")
@click.pass_obj
def on(practice: Cluster, node: str) -> None:
    """Switch a node on again."""
    practice.on(node)


@cluster.command()
@click.argument("node")
@click.argument("position", metavar="up|down")
@click.pass_obj
def link(practice: Cluster, node: str, position: str) -> None:
    """Pull a node's network cable (down), plug it in (up)."""
    practice.link(node, position)


@cluster.command()
@click.argument("rate", metavar="RATE|off")
@click.pass_obj
def rate(practice: Cluster, rate: str) -> None:
    """Slow every cable down to a rate such as 1gbit, both ways."""
    practice.rate(rate)


@cluster.command()
@click.argument("delay", metavar="TIME|off")
@click.argument("node", required=False)
@click.pass_obj
def delay(practice: Cluster, delay: str, node: str | None) -> None:
    """Move nodes apart: 1ms from any node to another, one way; or only NODE."""
    practice.delay(delay, node)


@cluster.command()
@click.pass_obj
def status(practice: Cluster) -> None:
    """Its nodes, their cables, and what Slurm calls them."""
    seen = practice.status()
    click.echo(f"{'node':<6}{'address':<13}{'power':<7}{'cable':<7}Slurm says")
    for node in seen.nodes:
        power, link = ("on" if node.power else "off"), ("up" if node.link else "down")
        click.echo(f"{node.name:<6}{node.address:<13}{power:<7}{link:<7}{node.slurm}")
    delay = f"{seen.delay * 1000:g} ms" if seen.delay else "none"
    far = {node: f"{seconds * 1000:g} ms" for node, seconds in seen.far.items()}
    delay += "".join(f", {node} {milliseconds}" for node, milliseconds in far.items())
    click.echo(
        f"rate {seen.rate or 'unlimited'}, delay {delay}, files {practice.state}"
    )


@cluster.command()
@click.pass_obj
def down(practice: Cluster) -> None:
    """End it, with all its jobs, and remove its files."""
    if practice.down():
        click.echo("The practice cluster is down.")
    else:
        click.echo(
            f"The practice cluster in {practice.state} had ended already (a restart "
            "of this machine, perhaps): its files are removed."
        )
