"""Compute a cross entropy when each rank has only some columns of the scores.

The ranks hold the scores of consecutive entries of the vocabulary, rank 0 the first
ones. They may hold different numbers of columns: [places, own]. The loss of a place
with the scores z and the target k is::

    log(sum of exp(z - c)) + c - z[k]        c: the largest of all of z

Three numbers per place are enough for all ranks to know the loss: c, the sum, and z[k],
which only one rank has. Scores may be large, and without c exp() would overflow::

    losses = VocabularyLoss.apply(scores, targets, first)        # [places]

``targets`` are entries of the whole vocabulary, the same on all ranks. ``first`` is the
entry that the first column of this rank stands for. Send nothing in backward.

Check your answer with: workshop check 14_vocabulary_loss

The page is docs/lessons/14_tensor_parallel/2_loss.rst.
"""

import torch
import torch.distributed as dist


def largest_of_all(scores: torch.Tensor) -> torch.Tensor:
    """The largest score of each place on any rank: [places, own] -> [places]."""
    # TODO 1 of 3: the largest over the own columns, then over the ranks.
    raise NotImplementedError("TODO 1 of 3")


def score_of_target(
    scores: torch.Tensor, targets: torch.Tensor, first: int
) -> torch.Tensor:
    """The score of each place's target, whichever rank has it: [places]."""
    place = targets - first  # the column here, if it is one of ours
    is_local = (place >= 0) & (place < scores.shape[1])
    # TODO 2 of 3: all ranks get it. Where ``is_local`` is False, this rank has
    # nothing to add.
    raise NotImplementedError("TODO 2 of 3")


class VocabularyLoss(torch.autograd.Function):
    """-log of the chance of each target: [places, own], [places], first -> [places]."""

    @staticmethod
    def forward(ctx, scores, targets, first):
        largest = largest_of_all(scores)
        exponentials = (scores - largest[:, None]).exp()
        total = exponentials.sum(dim=1)
        # Every rank: [places] -> [places], in place.
        dist.all_reduce(total)
        ctx.save_for_backward(exponentials / total[:, None], targets)
        ctx.first = first
        return total.log() + largest - score_of_target(scores, targets, first)

    @staticmethod
    def backward(ctx, gradient):  # [places]: of each place's loss
        chances, targets = ctx.saved_tensors  # [places, own], of the own columns
        place = targets - ctx.first  # as above
        is_local = (place >= 0) & (place < chances.shape[1])
        # TODO 3 of 3: return the gradient of this rank's scores, [places, own], and
        # None for targets and first. It is the chances, minus 1 at the target of each
        # place where ``is_local``, all multiplied by ``gradient``. Leave what was saved
        # as it is: backward may be called again.
        raise NotImplementedError("TODO 3 of 3")
