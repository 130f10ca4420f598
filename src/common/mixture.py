"""A mixture of experts in one process: each token goes through k of E small MLPs.

    replace_mlps(model, Mixture(experts=8, chosen=2))   # in every block of a byte GPT
    loss = next_byte_loss(model(inputs), targets)
    load = loads(model)                                 # [blocks, E] chosen tokens
    (loss + balance_loss(model, load)).backward()
    shift_biases(model, load)                           # after optimizer.step()

``n`` is the number of tokens of a batch, H their width. Shazeer et al., 2017,
"Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer".
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.byte_gpt import MLP, ByteGPT
from common.distributed import BadInput, log, positive_float, positive_int
from common.gpt_training import check_divides

BALANCES = "none", "loss", "bias"
LOSS_WEIGHT = 0.01  # of the auxiliary loss, as in Switch Transformer
BIAS_STEP = 0.01  # by which a bias moves after a step; DeepSeek-V3: 0.001


@dataclass(frozen=True)
class Mixture:
    """How each MLP of a model is replaced.

    Raises:
        BadInput: more experts are chosen than there are.
    """

    experts: int = 8  # E
    chosen: int = 2  # k
    balance: str = "loss"  # what keeps the experts' loads alike: one of BALANCES
    capacity_factor: float = 0.0  # 0: no token is dropped
    shared: bool = False  # whether every token goes through one more expert

    def __post_init__(self) -> None:
        if self.chosen > self.experts:
            given = f"--top-k {self.chosen} is more than --experts {self.experts}"
            raise BadInput(f"{given}: choose at most {self.experts}")


# [start router]
def top_k(scores: Tensor, k: int) -> Tensor:
    """The k highest scores' places, the highest first: [n, E] -> [n, k].

    Of equal scores the first one wins, on every device; torch.topk promises nothing.
    """
    return scores.sort(dim=-1, descending=True, stable=True).indices[:, :k]


class Router(nn.Module):
    """Which experts each token goes through, and with which weights."""

    def __init__(self, width: int, mixture: Mixture):
        super().__init__()
        self.chosen = mixture.chosen
        self.score = nn.Linear(width, mixture.experts, bias=False)
        # No parameter: gradients don't change it, shift_biases does.
        self.register_buffer("bias", torch.zeros(mixture.experts))

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[n, H] -> chosen experts [n, k], their gates [n, k], all chances [n, E]."""
        chances = self.score(tokens).softmax(dim=-1)
        chosen = top_k(chances + self.bias, self.chosen)
        # The bias has a say in the choice alone. Only the gates lead gradients here.
        return chosen, chances.gather(1, chosen), chances


# [end router]
def within_capacity(chosen: Tensor, experts: int, capacity: int) -> Tensor:
    """Which choices are kept: [n, k] experts -> [n, k] truth values.

    An expert takes its first ``capacity`` tokens: all tokens' first choices in order,
    then all second choices (Lepikhin et al., 2020, "GShard", algorithm 1).
    """
    in_turn = chosen.T.flatten()  # [k n]
    asked = F.one_hot(in_turn, experts)
    before = asked.cumsum(0) - asked  # how many have asked for each expert so far
    turn = before.gather(1, in_turn[:, None])
    return (turn < capacity).view(chosen.T.shape).T


class Experts(nn.Module):
    """Several MLPs; each computes on its own part of the tokens."""

    def __init__(self, width: int, hidden: int, count: int):
        super().__init__()
        self.up = _drawn(width, count, width, hidden)
        self.up_bias = _drawn(width, count, hidden)
        self.down = _drawn(hidden, count, hidden, width)
        self.down_bias = _drawn(hidden, count, width)

    def forward(self, tokens: Tensor, counts: Tensor) -> Tensor:
        """Tokens [m, H] in the order of their experts, counts of each -> [m, H]."""
        parts = tokens.split(counts.tolist())  # waits for the device
        weights = self.up, self.up_bias, self.down, self.down_bias
        each = zip(parts, *(whole.unbind() for whole in weights), strict=True)
        outputs = []
        for part, up, up_bias, down, down_bias in each:
            hidden = F.gelu(torch.addmm(up_bias, part, up))
            outputs.append(torch.addmm(down_bias, hidden, down))
        return torch.cat(outputs)


def _drawn(inputs: int, *shape: int) -> nn.Parameter:
    """First weights as nn.Linear draws them for this many inputs."""
    bound = inputs**-0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


class MixtureOfExperts(nn.Module):
    """What replaces an MLP: [B, T, H] -> the same."""

    def __init__(self, width: int, hidden: int, mixture: Mixture):
        super().__init__()
        self.mixture = mixture
        self.router = Router(width, mixture)
        self.experts = Experts(width, hidden, mixture.experts)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, -2)
        chosen, gates, self.chances = self.router(tokens)
        self.load = chosen.flatten().bincount(minlength=self.mixture.experts)
        kept = self.keep(chosen)
        # One copy of a token for each kept choice, in the order of the experts
        token, choice = kept.nonzero(as_tuple=True)
        expert, order = chosen[token, choice].sort(stable=True)
        token, choice = token[order], choice[order]
        self.counts = expert.bincount(minlength=self.mixture.experts)
        outputs = self.experts(tokens[token], self.counts)
        weighted = gates[token, choice, None] * outputs
        # A token whose choices are all dropped gets 0: the residual passes it on.
        mixed = torch.zeros_like(tokens).index_add(0, token, weighted)
        return mixed.view_as(x)

    def keep(self, chosen: Tensor) -> Tensor:
        """Which of the choices [n, k] no capacity forbids."""
        if not self.mixture.capacity_factor:
            return torch.ones_like(chosen, dtype=torch.bool)
        fair_share = chosen.numel() / self.mixture.experts
        capacity = math.ceil(self.mixture.capacity_factor * fair_share)
        return within_capacity(chosen, self.mixture.experts, capacity)


class WithSharedExpert(MixtureOfExperts):
    """One more expert for all tokens (Dai et al., 2024, "DeepSeekMoE")."""

    def __init__(self, width: int, hidden: int, mixture: Mixture, shared: MLP):
        super().__init__(width, hidden, mixture)
        self.shared = shared

    def forward(self, x: Tensor) -> Tensor:
        return self.shared(x) + super().forward(x)


def replace_mlps(model: ByteGPT, mixture: Mixture) -> None:
    """A mixture instead of each MLP. k experts together are as large as the MLP.

    Raises:
        BadInput: k does not divide the width inside an MLP.
    """
    width, hidden = model.sizes.width, model.sizes.hidden
    check_divides(hidden, mixture.chosen, "the MLP's width", "chosen experts (--top-k)")
    device = next(model.parameters()).device
    for block in model.blocks:
        given = width, hidden // mixture.chosen, mixture
        if mixture.shared:
            replaced = WithSharedExpert(*given, block.mlp)
        else:
            replaced = MixtureOfExperts(*given)
        block.mlp = replaced.to(device)
    numel = sum(parameter.numel() for parameter in model.parameters())
    idle = mixture.experts - mixture.chosen
    unused = idle * sum(
        parameter[0].numel()
        for layer in mixtures(model)
        for parameter in layer.experts.parameters()
    )
    what = f"{mixture.experts} experts instead of each MLP"
    log(f"{what}: {numel:,} parameters, of which a token uses {numel - unused:,}")


def mixtures(model: nn.Module) -> list[MixtureOfExperts]:
    """The mixtures of a model, in the order in which tokens reach them."""
    return [part for part in model.modules() if isinstance(part, MixtureOfExperts)]


# [start balance]
def loads(model: nn.Module) -> Tensor:
    """How many tokens of the last batch chose each expert: [blocks, E]."""
    return torch.stack([layer.load for layer in mixtures(model)])


def balance_loss(model: nn.Module, load: Tensor) -> Tensor:
    """What is added to the loss: [], least where all experts are equally likely.

    E times the sum over experts of (share of the choices) x (mean chance), of each
    block (Fedus et al., 2021, "Switch Transformers", equation 4).
    """
    total = load.new_zeros((), dtype=torch.get_default_dtype())
    for layer, choices in zip(mixtures(model), load, strict=True):
        if layer.mixture.balance != "loss":
            continue
        share = choices / choices.sum()  # counted, so it has no gradient
        mean_chance = layer.chances.sum(0) / max(1, len(layer.chances))
        total = total + len(share) * (share * mean_chance).sum()
    return LOSS_WEIGHT * total


@torch.no_grad()
def shift_biases(model: nn.Module, load: Tensor) -> None:
    """After a step, make busy experts less likely to be chosen, and idle ones more.

    Wang et al., 2024, "Auxiliary-Loss-Free Load Balancing Strategy for MoE".
    """
    for layer, choices in zip(mixtures(model), load.float(), strict=True):
        if layer.mixture.balance == "bias":
            layer.router.bias += BIAS_STEP * (choices.mean() - choices).sign()


# [end balance]
def describe_load(load: Tensor) -> str:
    """A line about the loads [blocks, E] of a step, the same on all ranks."""
    relative = load / load.float().mean(dim=-1, keepdim=True)
    busiest, idlest = relative.max().item(), relative.min().item()
    beside = f"the least busy {idlest:.2f} times"
    return f"The busiest expert is chosen {busiest:.2f} times the mean, {beside}"


def dropped(model: nn.Module) -> Tensor:
    """The share of the last batch's choices that exceeded a capacity: []."""
    kept = sum(layer.counts.sum() for layer in mixtures(model))
    return 1 - kept / loads(model).sum()


def add_mixture_options(parser: argparse.ArgumentParser) -> None:
    """The options of a program that trains with experts."""
    add, shown, usual = parser.add_argument, " (default: %(default)s)", Mixture()
    count = "MLPs among which a router chooses, E"
    add("--experts", type=positive_int, default=usual.experts, help=count + shown)
    of_token = "experts of a token, k"
    add("--top-k", type=positive_int, default=usual.chosen, help=of_token + shown)
    how = "what keeps the loads of the experts alike"
    add("--balance", choices=BALANCES, default=usual.balance, help=how + shown)
    most = "drop what exceeds this many times an expert's fair share (default: nothing)"
    add("--capacity-factor", type=positive_float, default=0.0, help=most)
    more = "keep the MLP, as an expert for all tokens"
    add("--shared-expert", action="store_true", help=more)


@dataclass(frozen=True)
class MixtureOptions:
    """What :func:`add_mixture_options` asks for; a program's Config derives from it."""

    experts: int  # E
    top_k: int  # experts of a token, k
    balance: str  # one of BALANCES
    capacity_factor: float  # 0: no token is dropped
    shared_expert: bool


def mixture_of(options: MixtureOptions) -> Mixture:
    """The mixture that a command line asks for."""
    return Mixture(
        experts=options.experts,
        chosen=options.top_k,
        balance=options.balance,
        capacity_factor=options.capacity_factor,
        shared=options.shared_expert,
    )
