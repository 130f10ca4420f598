"""Choose a layout: tensor ranks in a node, stages across nodes, data ranks.

The rules, for t tensor ranks, p stages and d data ranks:

* Each device is one rank: t * p * d devices in all.
* Tensor ranks stay inside a node, so t divides the devices of a node, and the heads.
* All stages have the same number of layers, and all data ranks the same number of
  sequences of the batch.
* AdamW in mixed precision with ZeRO-1. Tensor ranks and stages cut the parameters, and
  each rank's part is rounded up. A rank keeps 4 bytes for each parameter of its part: 2
  for the parameter, 2 for its gradient. The d data ranks share the optimizer state, 12
  bytes for each parameter: each has that of a shard of the part, and the number of its
  parameters is rounded up, too. All of that may take at most 60 % of a device's memory.
  The rest is for activations.
* A micro-batch is one sequence. With p > 1 stages, each data rank needs at least 4 p
  micro-batches, or the bubble is too large.

    workshop check 18_choose_layout

The pages are docs/lessons/18_scaling/4_plan.rst and docs/which_parallelism.rst.
"""

from typing import NamedTuple


class Job(NamedTuple):
    """A model, its global batch in sequences, and the cluster; memory in bytes."""

    parameters: int
    layers: int
    heads: int
    batch: int
    nodes: int
    per_node: int
    memory: int


class Layout(NamedTuple):
    """Ranks along each axis."""

    tensor: int
    pipeline: int
    data: int


ONE_NODE = Job(1_300_000_000, 24, 16, 256, 1, 8, 80_000_000_000)
EIGHT_NODES = Job(12_850_000_000, 40, 40, 1024, 8, 8, 80_000_000_000)
MANY_NODES = Job(174_600_000_000, 96, 96, 2048, 128, 8, 80_000_000_000)


def legal_layouts(job: Job) -> list[Layout]:
    """Every layout that divides evenly, in any order, whatever memory it needs."""
    # TODO 1 of 3: which numbers must be divisible by t, by p and by d?
    # [start answer 1]
    devices, found = job.nodes * job.per_node, []
    for tensor in range(1, job.per_node + 1):
        for pipeline in range(1, job.layers + 1):
            data = devices // (tensor * pipeline)
            even = tensor * pipeline * data == devices and job.layers % pipeline == 0
            cut = job.per_node % tensor == 0 and job.heads % tensor == 0
            if even and cut and job.batch % data == 0:
                found.append(Layout(tensor, pipeline, data))
    return found
    # [end answer 1]


def state_bytes(job: Job, layout: Layout) -> int:
    """Bytes of parameters, gradients and optimizer state on one rank."""
    # TODO 2 of 3: the data ranks share only one of the three.
    # [start answer 2]
    own = -(-job.parameters // (layout.tensor * layout.pipeline))
    shard = -(-own // layout.data)
    return 4 * own + 12 * shard
    # [end answer 2]


def choose(job: Job) -> Layout | None:
    """The legal layout with the smallest t * p whose state and micro-batches fit.

    On a tie, take the one with the most tensor ranks: links in a node are faster.
    None if there is no such layout.
    """
    # TODO 3 of 3: keep those that obey the rules, then compare.
    # [start answer 3]
    good = []
    for layout in legal_layouts(job):
        enough = job.batch // layout.data >= 4 * layout.pipeline
        fits = 10 * state_bytes(job, layout) <= 6 * job.memory
        if fits and (enough or layout.pipeline == 1):
            good.append(layout)
    return min(good, key=lambda x: (x.tensor * x.pipeline, -x.tensor), default=None)
    # [end answer 3]
