"""Local steps: each rank trains its own copy, and now and then all of them agree.

    fragments = make_fragments(model.parameters(), count=1)
    ...                                      # K inner steps on each rank, no message
    agree(fragments, steps_done, K, rule)    # an all-reduce and an outer step, if due

With ``rule.delay``, the all-reduce only starts there, and the outer step is taken so
many inner steps later. Between two averages the ranks' parameters differ. ``shared``
and ``momentum`` are equal on all ranks at any time. Stich, 2018, "Local SGD Converges
Fast and Communicates Little"; Douillard et al., 2023, "DiLoCo", algorithm 1; Douillard
et al., 2025, "Streaming DiLoCo with overlapping communication".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from common.distributed import BadInput

LARGEST = 127  # of an int8, with both signs


@dataclass(frozen=True)
class OuterRule:
    """How the ranks step together: SGD with Nesterov's momentum."""

    learning_rate: float = 0.7
    momentum: float = 0.9
    int8: bool = False  # send differences as whole numbers of one byte
    delay: int = 0  # inner steps between the start of an all-reduce and its outer step
    keep: float = 0.0  # the part of a rank's own parameters that it keeps then


@dataclass(eq=False)
class Fragment:
    """Some of the parameters, and what is kept of them besides the inner optimizer."""

    parameters: list[nn.Parameter]  # this rank's, which its inner optimizer changes
    shared: Tensor  # [n], what all ranks agreed on last
    momentum: Tensor  # [n], of the outer steps; equal on all ranks
    # What int8 has left unsent, added to the next difference; differs between ranks
    unsent: Tensor  # [n], of this rank's difference
    unsent_mean: Tensor  # [n/N rounded up], of the part that this rank averages
    # Only while an all-reduce is under way, or its outer step is not taken yet
    sent: Tensor | None = None  # [n], becomes the sum of all ranks' differences
    work: dist.Work | None = None
    arrives: int = 0  # after so many inner steps

    def state_dict(self) -> dict[str, Tensor | int | None]:
        """What a snapshot needs; the parameters are in the model's.

        Every rank must reach this line: a sum that is under way is waited for.
        """
        self.wait()
        names = "shared", "momentum", "unsent", "unsent_mean", "sent", "arrives"
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: dict) -> None:
        """Continue from what :meth:`state_dict` returned."""
        for name in ("shared", "momentum", "unsent", "unsent_mean"):
            getattr(self, name).copy_(state[name])
        self.sent, self.arrives = None, state["arrives"]
        if state["sent"] is not None:
            self.sent = state["sent"].to(self.shared)

    def wait(self) -> None:
        """Until the sum that is under way, if any, is there."""
        if self.work is not None:
            self.work.wait()
            self.work = None


def check_turns(every: int, fragments: int, delay: int) -> None:
    """Refuse turns that ``every`` inner steps have no room for.

    Raises:
        BadInput: there are more fragments than steps, or a fragment would be sent again
            before its last sum is used.
    """
    if fragments > every:
        turns = f"they need as many steps, but --local-steps is {every}"
        raise BadInput(f"--fragments {fragments}: {turns}: choose fewer fragments")
    if delay >= every:
        again = f"a fragment is sent again after {every} steps"
        raise BadInput(f"--delay {delay}: {again}: choose a shorter one")


def make_fragments(parameters: Iterable[nn.Parameter], count: int = 1) -> list:
    """Cut the parameters, in order, into ``count`` fragments of about the same size.

    Every rank must have the same parameters now: nothing is sent here.

    Raises:
        BadInput: there are fewer parameters than fragments.
    """
    every = list(parameters)
    if count > len(every):
        most = f"the model has {len(every)} parameters"
        raise BadInput(f"--fragments {count} are too many, as {most}: choose fewer")
    total, before = sum(parameter.numel() for parameter in every), 0
    parts: list[list[nn.Parameter]] = [[] for _ in range(count)]
    for index, parameter in enumerate(every):
        by_size = count * before // total
        # The last parameters must leave one for each fragment that is still empty.
        needed = count - (len(every) - index)
        filled = sum(1 for part in parts if part)
        parts[max(min(by_size, filled), needed)].append(parameter)
        before += parameter.numel()
    return [_fragment_of(part) for part in parts]


@torch.no_grad()
def _fragment_of(parameters: list[nn.Parameter]) -> Fragment:
    shared = parameters_to_vector(parameters).clone()
    of_part = -(-shared.numel() // dist.get_world_size())
    return Fragment(
        parameters,
        shared,
        momentum=torch.zeros_like(shared),
        unsent=torch.zeros_like(shared),
        unsent_mean=shared.new_zeros(of_part),
    )


# [start outer]
@torch.no_grad()
def outer_step(fragment: Fragment, rule: OuterRule) -> None:
    """One outer step of a fragment; every rank must reach this line."""
    difference = fragment.shared - parameters_to_vector(fragment.parameters)
    gradient = mean_by_int8(difference, fragment) if rule.int8 else mean(difference)
    nesterov_step(fragment.shared, fragment.momentum, gradient, rule)
    # Every rank continues from here; its inner optimizer's state stays its own.
    copy_to_parameters(fragment, fragment.shared)


def mean(values: Tensor) -> Tensor:
    """The mean over all ranks: [n] -> [n]."""
    # Every rank. [n] -> [n], 2 (N-1)/N x the bytes of values
    dist.all_reduce(values)
    return values / dist.get_world_size()


def nesterov_step(
    shared: Tensor, momentum: Tensor, gradient: Tensor, rule: OuterRule
) -> None:
    """Change ``shared`` and ``momentum`` in place; all are [n].

    It is what torch.optim.SGD(nesterov=True) does with this gradient.
    """
    momentum.mul_(rule.momentum).add_(gradient)
    shared.sub_(rule.learning_rate * (gradient + rule.momentum * momentum))


# [end outer]
@torch.no_grad()
def copy_to_parameters(fragment: Fragment, values: Tensor) -> None:
    """Let this rank continue from ``values`` [n], mostly what all ranks agreed on.

    torch's vector_to_parameters would not copy: the parameters would be views of
    ``values``, and the next inner steps would change it, too.
    """
    sizes = [parameter.numel() for parameter in fragment.parameters]
    parts = values.split(sizes)
    for parameter, part in zip(fragment.parameters, parts, strict=True):
        parameter.copy_(part.view_as(parameter))


# [start due]
def due(fragments: list[Fragment], steps_done: int, every: int) -> list[Fragment]:
    """The fragments that are averaged now: each once in ``every`` steps, in turn.

    One fragment's turn is in the last of these steps. Several are spread evenly.
    """
    turns = [every * (i + 1) // len(fragments) for i in range(len(fragments))]
    now = (steps_done - 1) % every + 1  # 1 to every
    return [
        fragment for fragment, turn in zip(fragments, turns, strict=True) if turn == now
    ]


# [end due]
# [start overlap]
def agree(
    fragments: list[Fragment], steps_done: int, every: int, rule: OuterRule
) -> None:
    """What is due after ``steps_done`` inner steps; every rank must reach this line."""
    for fragment in fragments:
        if fragment.sent is not None and fragment.arrives == steps_done:
            finish(fragment, rule)
    for fragment in due(fragments, steps_done, every):
        if rule.delay:
            begin(fragment, steps_done + rule.delay)
        else:
            outer_step(fragment, rule)


@torch.no_grad()
def begin(fragment: Fragment, arrives: int) -> None:
    """Start to add up the differences; inner steps continue meanwhile."""
    fragment.sent = fragment.shared - parameters_to_vector(fragment.parameters)
    fragment.arrives = arrives
    # Every rank. [n] -> [n], 2 (N-1)/N x its bytes; nothing may touch it until wait()
    fragment.work = dist.all_reduce(fragment.sent, async_op=True)


@torch.no_grad()
def finish(fragment: Fragment, rule: OuterRule) -> None:
    """Take the outer step, and mix its result with what this rank has become."""
    assert fragment.sent is not None, "call begin first"
    fragment.wait()
    gradient = fragment.sent / dist.get_world_size()
    fragment.sent = None
    nesterov_step(fragment.shared, fragment.momentum, gradient, rule)
    own = parameters_to_vector(fragment.parameters)
    mixed = rule.keep * own + (1 - rule.keep) * fragment.shared
    copy_to_parameters(fragment, mixed)


# [end overlap]
# [start int8]
def to_int8(values: Tensor) -> tuple[Tensor, Tensor]:
    """``values`` [n] as whole numbers of one byte [n]; the step between two [1]."""
    step = (values.abs().max() / LARGEST).reshape(1)
    safe = torch.where(step > 0, step, torch.ones_like(step))
    return (values / safe).round().to(torch.int8), step


def mean_by_int8(values: Tensor, fragment: Fragment) -> Tensor:
    """Nearly the mean over all ranks: [n] -> [n], equal on all ranks.

    Two messages, each of (N-1)/N x n bytes: every rank sends each other one a part of
    its numbers, averages what it receives, and sends its part of the mean to all.
    What rounding leaves out of a message is added to the next one.
    """
    world_size, n = dist.get_world_size(), values.numel()
    exact = values + fragment.unsent
    whole, step = to_int8(exact)
    fragment.unsent.copy_(exact - whole * step)
    sent = nn.functional.pad(whole, (0, -n % world_size))
    arrived = torch.empty_like(sent)
    # Every rank. [N, n/N] -> row r: this rank's part of rank r's numbers
    dist.all_to_all_single(arrived, sent)
    of_each = arrived.view(world_size, -1) * gather(step).view(-1, 1)
    part = of_each.mean(0) + fragment.unsent_mean
    whole, step = to_int8(part)
    fragment.unsent_mean.copy_(part - whole * step)
    # Every rank, twice: [n/N] -> [n], and a number of each rank
    of_each = gather(whole).view(world_size, -1) * gather(step).view(-1, 1)
    return of_each.flatten()[:n]


def gather(own: Tensor) -> Tensor:
    """Those of all ranks, one after the other: [n] -> [N n]."""
    pieces = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(pieces, own)
    return torch.cat(pieces)


# [end int8]
def bytes_sent(
    fragments: list[Fragment], every: int, rule: OuterRule, world_size: int
) -> float:
    """What a rank sends in a step, the mean over ``every`` steps: by formula, in bytes.

    2 (N-1)/N x P/K numbers of the parameters' size, or of one byte; int8 also sends
    the step between two whole numbers, twice to each other rank.
    """
    total = 0.0
    for fragment in fragments:
        n, size = fragment.shared.numel(), fragment.shared.element_size()
        if rule.int8:
            padded = n + -n % world_size
            total += 2 * (world_size - 1) / world_size * padded
            total += 2 * (world_size - 1) * size
        else:
            total += 2 * (world_size - 1) / world_size * n * size
    return total / every
