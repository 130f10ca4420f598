"""Keep one stage of a model, and put a snapshot of the whole model together.

Every rank has built the same model from the same seed. Then it keeps its stage and
drops the rest, to free the memory. The first rank keeps the embedding, the last rank
keeps the head, and ``blocks_of[rank]`` are the numbers of the blocks that a rank keeps.
Ranks may keep different numbers of blocks, or none.

The names of the parameters stay those of the whole model: block 5 is ``blocks.5`` on
every rank. So the stages fit together again, and one device can load their snapshot.

* ``keep_stage``: what is dropped must be gone: nothing may refer to it any longer.
* ``whole_state``: the state dict of the whole model on rank 0, from all stages.

    workshop check 13_keep_stage

The page is docs/lessons/13_pipeline_parallel/1_stages.rst.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Network(nn.Module):
    """The whole model, or a stage of it: what isn't there is passed over."""

    def __init__(self, vocabulary: int, width: int, layers: int):
        super().__init__()
        self.embedding: nn.Module | None = nn.Embedding(vocabulary, width)
        blocks = {str(number): nn.Linear(width, width) for number in range(layers)}
        self.blocks = nn.ModuleDict(blocks)
        self.head: nn.Module | None = nn.Linear(width, vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens [B, T], or what the previous stage computed: [B, T, H]."""
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.blocks.values():
            x = x + torch.tanh(block(x))
        if self.head is not None:
            x = self.head(x)
        return x


def keep_stage(model: Network, blocks_of: list[range]) -> None:
    """Turn ``model`` into this rank's stage, in place; the names stay the same."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # TODO 1 of 2: drop the blocks of other ranks, and the embedding and the head where
    # they aren't needed. What isn't there is None.
    raise NotImplementedError("TODO 1 of 2")


def whole_state(stage: Network) -> dict[str, Tensor] | None:
    """The whole model's state dict on rank 0, None elsewhere; every rank calls this."""
    # TODO 2 of 2: rank 0 needs the state dict of every stage, as one.
    raise NotImplementedError("TODO 2 of 2")
