"""Checks of exercises/20_expert_axis.py: against all experts on one process."""

import contextlib
import inspect
import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()

WIDTH = 3
UNUSED = 1  # an expert that no token chooses
TOKENS = (3, 0, 5, 2)  # of each rank


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def weights_of(seed, experts):
    """Names as in a mixture with all experts -> their numbers, the same everywhere."""
    router = drawn(seed, experts, WIDTH)
    router[UNUSED] = 0
    router[:, 0] = 4  # every token has 1 there
    router[UNUSED, 0] = -20
    found = {"router.weight": router}
    shapes = {
        "0.weight": (2 * WIDTH, WIDTH),
        "0.bias": (2 * WIDTH,),
        "2.weight": (WIDTH, 2 * WIDTH),
        "2.bias": (WIDTH,),
    }
    for expert in range(experts):
        for index, (name, shape) in enumerate(shapes.items()):
            number = seed + 100 * (expert + 1) + index
            found[f"experts.{expert}.{name}"] = drawn(number, *shape)
    return found


def tokens_of(seed, rank):
    """Tokens and targets of a rank, [n, WIDTH] each."""
    x = drawn(seed + 7 * rank, TOKENS[rank], WIDTH)
    x[:, 0] = 1
    return x, drawn(seed + 7 * rank + 3, TOKENS[rank], WIDTH)


def grid_of(rank, world_size, expert_ranks):
    """This rank's group of expert ranks, and its copies; every rank makes all."""
    group = copies = None
    for first in range(0, world_size, expert_ranks):
        members = list(range(first, first + expert_ranks))
        made = dist.new_group(members)
        if rank in members:
            group = made
    for first in range(expert_ranks):
        members = list(range(first, world_size, expert_ranks))
        made = dist.new_group(members)
        if rank in members:
            copies = made
    return group, copies


def mixture_of(exercise, seed, experts, group):
    """The learner's mixture, with this rank's experts."""
    mixture = exercise.Mixture(WIDTH, experts, group).double()
    weights = weights_of(seed, experts)
    for name, parameter in mixture.named_parameters():
        with torch.no_grad():
            parameter.copy_(weights[whole_name(name, experts, group)])
    return mixture


def whole_name(name, experts, group):
    """The name of a rank's parameter in a mixture with all experts."""
    kind, number, *rest = name.split(".")
    if kind == "router":
        return name
    own = experts // dist.get_world_size(group)
    return ".".join([kind, str(dist.get_rank(group) * own + int(number)), *rest])


class Alone:
    """The mixture on one process."""

    def __init__(self, seed, experts):
        self.weights = {
            name: weight.requires_grad_()
            for name, weight in weights_of(seed, experts).items()
        }
        self.experts = experts

    def expert(self, number, x):
        first, bias, second, last = (
            self.weights[f"experts.{number}.{name}"]
            for name in ("0.weight", "0.bias", "2.weight", "2.bias")
        )
        return (x @ first.T + bias).tanh() @ second.T + last

    def every(self, x):
        """Each expert's outputs for all tokens, [experts, n, WIDTH]."""
        return torch.stack([self.expert(i, x) for i in range(self.experts)])

    def parts(self, x, dim=-1):
        """Gates [n], chosen experts [n], outputs before the gates [n, WIDTH].

        ``dim``: that of softmax; -1 is right.
        """
        gates, chosen = (x @ self.weights["router.weight"].T).softmax(dim).max(-1)
        return gates, chosen, self.every(x)[chosen, torch.arange(len(x))]

    def __call__(self, x):
        gates, _, outputs = self.parts(x)
        return gates[:, None] * outputs


def that_is(found, *candidates):
    """The candidate with the numbers that were found, else the first one."""
    same = (
        one
        for one in candidates
        if torch.is_tensor(found)
        and one.shape == found.shape
        and torch.allclose(one, found.detach().to(one), rtol=1e-10, atol=1e-10)
    )
    return next(same, candidates[0])


def wrong_outputs(found, alone, x):
    """Wrong outputs by their names; all are the right ones where no token is."""
    gates, chosen, outputs = alone.parts(x)
    right = gates[:, None] * outputs
    order = chosen.argsort(stable=True)
    back = order.argsort()
    unsorted = alone.every(x)[chosen[order], torch.arange(len(x))]
    gates_over_tokens, _, outputs_over_tokens = alone.parts(x, dim=0)
    names = {
        "not multiplied by the gates": outputs,
        "in the order of the experts, not of the tokens": right[order],
        "outputs in the order of the experts, gates in that of the tokens": (
            gates[:, None] * outputs[order]
        ),
        "reordered by the wrong one of the two permutations": (
            gates[:, None] * outputs[order][order]
        ),
        "each token's output, times the gate of another token: bring outputs and gates "
        "into the same order, then multiply": that_is(
            found, gates[back, None] * outputs, gates[order, None] * outputs
        ),
        "as if rows weren't sorted by expert before they were sent": that_is(
            found, gates[:, None] * unsorted, gates[:, None] * unsorted[back]
        ),
        "as if softmax went over the tokens: it goes over the experts": (
            gates_over_tokens[:, None] * outputs_over_tokens
        ),
    }
    names = {name: value.detach() for name, value in names.items()}
    return {k: v for k, v in names.items() if not torch.equal(v, right.detach())}


@contextlib.contextmanager
def counts_stay_in_the_group(counts, group, label):
    """In here: all ranks must not exchange the counts that are for one group's ranks.

    With other ranks' counts, sizes don't fit, and gloo ends the process.
    """
    exchange = dist.all_to_all_single
    signature = inspect.signature(exchange)
    size = dist.get_world_size(group)

    def spied(*args, **names):
        given = signature.bind(*args, **names).arguments
        numbers = given["input"]
        of_all = dist.get_world_size(given.get("group")) != size
        is_whole = not numbers.is_floating_point()
        if of_all and is_whole and numbers.flatten().tolist() == counts:
            expect.that(
                False,
                f"{label}, all ranks exchange the counts, which are for the {size} of "
                "this rank's group: pass group=self.group to dist.all_to_all_single",
            )
        return exchange(*args, **names)

    dist.all_to_all_single = spied
    try:
        yield
    finally:
        dist.all_to_all_single = exchange


def compare_outputs(exercise, rank, world_size, expert_ranks, experts, seed):
    """Outputs of this rank's tokens, and gradients of the tokens themselves."""
    group, _ = grid_of(rank, world_size, expert_ranks)
    label = f"on {world_size // expert_ranks} x {expert_ranks} ranks"
    mixture = mixture_of(exercise, seed, experts, group)
    alone = Alone(seed, experts)
    x, weights = tokens_of(seed, rank)
    own = x.clone().requires_grad_()
    reference = x.clone().requires_grad_()
    gates, chosen, outputs = alone.parts(reference)
    counts = chosen.bincount(minlength=experts).tolist()
    with counts_stay_in_the_group(counts, group, label):
        found = mixture(own)
    right = gates[:, None] * outputs
    what = f"the mixture's output {label}"
    names = wrong_outputs(found, alone, x)
    expect.close(found, right.detach(), what, mistaken=names)
    (found * weights).sum().backward()
    parts = {
        "of the gates only: none came back from the experts": (
            gates[:, None] * outputs.detach()
        ),
        "of the experts only: none came back through the gates": (
            gates.detach()[:, None] * outputs
        ),
    }
    mistaken = {}
    if len(x):
        mistaken = {
            name: torch.autograd.grad(
                (part * weights).sum(), reference, retain_graph=True
            )[0]
            for name, part in parts.items()
        }
    (right * weights).sum().backward()
    expect.that(own.grad is not None, f"the gradient of the tokens {label} is None")
    expect.close(
        own.grad,
        reference.grad,
        f"the gradient of the tokens {label}",
        mistaken=mistaken,
    )


def compare_step(exercise, rank, world_size, expert_ranks, experts, seed):
    group, copies = grid_of(rank, world_size, expert_ranks)
    label = f"on {world_size // expert_ranks} x {expert_ranks} ranks"
    mixture = mixture_of(exercise, seed, experts, group)
    alone = Alone(seed, experts)
    x, targets = tokens_of(seed, rank)
    loss = exercise.step_gradients(mixture, x.clone(), targets.clone(), copies)
    everyone = [tokens_of(seed, r) for r in range(world_size)]
    lost = [(alone(xs) - wanted).square().sum() for xs, wanted in everyone]
    total = sum(wanted.numel() for _, wanted in everyone)
    right = sum(lost) / total
    means = [
        part / max(1, wanted.numel())
        for part, (_, wanted) in zip(lost, everyone, strict=True)
    ]
    what = f"the loss {label}"
    value = torch.as_tensor(loss).detach()
    expect.that(
        not value.isnan(),
        f"{what} is nan: rank 1 has no tokens, so it divides 0 by 0. Divide by the "
        "number of elements in the targets of all ranks together",
    )
    names = {
        "the mean of each rank's mean: ranks have other numbers of tokens": (
            sum(means).detach() / world_size
        ),
        "divided by the number of tokens, not of elements (tokens x H)": (
            right.detach() * WIDTH
        ),
        "this rank's part only: add up those of all ranks": lost[rank].detach() / total,
        "of one group of expert ranks only": (
            sum(lost[r] for r in dist.get_process_group_ranks(group)) / total
        ).detach(),
        "as if each rank divided by the elements of its copies only: count those of "
        "all ranks": divided_by(lost, lambda r: r % expert_ranks),
        "as if each rank divided by the elements of its group of expert ranks only: "
        "count those of all ranks": divided_by(lost, lambda r: r // expert_ranks),
        "the sum of the ranks' means: divide by the elements of all ranks": sum(
            means
        ).detach(),
    }
    names = {k: v for k, v in names.items() if not torch.isclose(v, right.detach())}
    expect.close(value, right.detach(), what, mistaken=names)
    for name, parameter in mixture.named_parameters():
        compare_gradient(
            name, parameter, alone, lost, total, expert_ranks, experts, group, label
        )


def divided_by(lost, part_of):
    """The sum of all ranks' loss, each divided by the elements of its part."""
    elements = [TOKENS[rank] * WIDTH for rank in range(len(lost))]
    loss = torch.zeros((), dtype=torch.float64)
    for rank, one in enumerate(lost):
        there = [n for r, n in enumerate(elements) if part_of(r) == part_of(rank)]
        loss += one.detach() / max(1, sum(there))
    return loss


def compare_gradient(
    name, parameter, alone, lost, total, expert_ranks, experts, group, label
):
    """``lost``: the sum of squares of each rank's tokens, on one process."""
    world_size = len(lost)
    rank = dist.get_rank()
    key = whole_name(name, experts, group)

    def gradient_of(loss):
        found = torch.autograd.grad(
            loss, alone.weights[key], retain_graph=True, allow_unused=True
        )[0]
        if found is None:
            return torch.zeros_like(alone.weights[key])
        return found

    right = gradient_of(sum(lost)) / total
    what = f"the gradient of {key} {label}"
    expect.that(
        parameter.grad is not None,
        f"{what} is None, expected a tensor",
    )
    peers = dist.get_process_group_ranks(group)
    copies = world_size // expert_ranks
    of_group = gradient_of(sum(lost[r] for r in peers)) / total
    names = {
        "divided by all ranks once more: it's a sum already": right / world_size,
        "divided by the copies once more: it's a sum already": right / copies,
    }
    if key.startswith("experts"):
        names["of the tokens of its group only: its copies have others"] = of_group
        names["added up over ranks with other experts"] = sum(
            gradient_of_other(alone, lost, total, key, number, experts, expert_ranks)
            for number in range(expert_ranks)
        )
    else:
        names["of this rank's tokens only"] = gradient_of(lost[rank]) / total
        names["of the tokens of its group only"] = of_group
        own = [lost[r] for r in range(rank % expert_ranks, world_size, expert_ranks)]
        names["added up over the copies only, as an expert's is"] = (
            gradient_of(sum(own)) / total
        )
    names = {k: v for k, v in names.items() if not torch.allclose(v, right)}
    expect.close(parameter.grad, right, what, mistaken=names)


def gradient_of_other(alone, lost, total, key, number, experts, expert_ranks):
    """That of the expert which expert rank ``number`` has at the same index."""
    kind, expert, *rest = key.split(".")
    own = experts // expert_ranks
    other = ".".join([kind, str(number * own + int(expert) % own), *rest])
    found = torch.autograd.grad(
        sum(lost), alone.weights[other], retain_graph=True, allow_unused=True
    )[0]
    if found is None:
        found = torch.zeros_like(alone.weights[other])
    return found / total


@pytest.mark.ranks(3)
def test_gradients_go_back(exercise, rank, world_size, seed):
    """Exchange: each row's gradient goes back to the rank that the row is from."""
    table = [[1, 0, 2], [3, 1, 0], [0, 0, 4]]  # [from, to]
    sent, received = table[rank], [row[rank] for row in table]
    rows = [drawn(seed + r, sum(counts), WIDTH) for r, counts in enumerate(table)]
    weights = drawn(seed + 10 + rank, sum(received), WIDTH)
    own = rows[rank].clone().requires_grad_()
    arrived = exercise.Exchange.apply(own, sent, received, dist.group.WORLD)
    what = f"the gradient that Exchange.backward returns for {sum(sent)} rows"
    try:
        (arrived * weights).sum().backward()
    except RuntimeError as error:
        expect.that(
            "invalid gradient at index 0" not in str(error),
            f"{what} has the rows that were received, {sum(received)} of them: send "
            "each row's gradient to the rank that the row is from",
        )
        raise
    expect.that(own.grad is not None, f"{what} is None")
    right = [
        drawn(seed + 10 + r, sum(row[r] for row in table), WIDTH)[
            sum(row[r] for row in table[:rank]) :
        ][: table[rank][r]]
        for r in range(world_size)
    ]
    expect.close(own.grad, torch.cat(right), what)


@pytest.mark.ranks(3)
def test_outputs_on_one_group(exercise, rank, world_size, seed):
    """Mixture: three expert ranks, one without a token, and gradients of the tokens."""
    if rank == 1:
        time.sleep(0.05)
    compare_outputs(exercise, rank, world_size, 3, 6, seed)


@pytest.mark.ranks(4)
def test_outputs_in_two_groups(exercise, rank, world_size, seed):
    """Mixture: data 2 x experts 2."""
    compare_outputs(exercise, rank, world_size, 2, 4, seed)


@pytest.mark.ranks(4)
def test_step_on_both_axes(exercise, rank, world_size, seed):
    """step_gradients: data 2 x experts 2, the loss and every gradient."""
    compare_step(exercise, rank, world_size, 2, 4, seed)


@pytest.mark.ranks(3, 4)
def test_step_of_one_axis(exercise, rank, world_size, seed):
    """step_gradients: no expert has a copy; then every rank has all experts."""
    compare_step(exercise, rank, world_size, world_size, 2 * world_size, seed)
    compare_step(exercise, rank, world_size, 1, 3, seed)
