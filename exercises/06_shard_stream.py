"""Split a stream over ranks and data workers, and resume it exactly.

A stream of ``count`` records is too long for a list: read a step, yield its batch, then
read the next step. An IterableDataset has no sampler: every worker of every rank gets a
copy of it and must find out itself which records it reads. Here a record is only its
number, and the items of the dataset are whole batches: the loader is
``DataLoader(stream, batch_size=None, num_workers=W)``.

In each step, all ranks together take the next ``world_size * batch_size`` records of
the epoch's order, and each rank an equal share of them. The last step of an epoch has
fewer records. Then the shares of two ranks differ by one record at most, and a rank
without any still yields its batch, an empty list: all ranks take equally many steps.

* ``order``: shuffled by ``shuffled``, which holds ``buffer_size`` records in memory. It
  depends only on the seed and the epoch: every process of every run computes the same
  order, and each pair of seed and epoch has its own. ``seed + epoch`` isn't enough:
  epoch 1 of seed 0 would have the order of epoch 0 of seed 1.
* ``__iter__``: the loader takes its first batch from worker 0, the next from worker 1,
  and so on in turn, also in a resumed run. Each rank must get the same batches in the
  same order with any number of workers, and without workers, too.
* To resume, a new process sets ``epoch`` and ``steps_run``. The training loop counts
  the steps, since a worker also reads batches that are never used. Leave both alone.

    workshop check 06_shard_stream

The page is docs/production/data_at_scale.rst.
"""

import itertools
import random
from collections.abc import Iterable, Iterator

from torch.utils.data import IterableDataset, get_worker_info


def shuffled(
    records: Iterable[int], size: int, generator: random.Random
) -> Iterator[int]:
    """All of ``records``, with ``size`` of them in memory."""
    buffer: list[int] = []
    for record in records:
        if len(buffer) < size:
            buffer.append(record)
            continue
        slot = generator.randrange(size)
        yield buffer[slot]
        buffer[slot] = record
    generator.shuffle(buffer)
    yield from buffer


class BatchStream(IterableDataset):
    """The batches of one rank, from ``steps_run`` to the end of an epoch."""

    def __init__(
        self,
        count: int,
        batch_size: int,
        buffer_size: int,
        seed: int,
        rank: int,
        world_size: int,
    ):
        self.count = count
        self.batch_size = batch_size  # of one rank
        self.buffer_size = buffer_size
        self.seed = seed
        self.rank = rank
        self.world_size = world_size
        self.epoch = 0
        self.steps_run = 0  # of this epoch, before this stream is read

    def order(self) -> Iterator[int]:
        """All records in the order of this epoch."""
        # TODO 1 of 2: pass range(self.count) and a generator of its own to shuffled.
        raise NotImplementedError("TODO 1 of 2")

    def __iter__(self) -> Iterator[list[int]]:
        """What this worker yields: its batches of this rank, lists of records."""
        # TODO 2 of 2: which steps are left, which worker has a step, what is the share?
        raise NotImplementedError("TODO 2 of 2")
