"""Compute a cross entropy when each rank has only some columns of the scores.

The ranks hold the scores of consecutive entries of the vocabulary, rank 0 the first
ones. They may hold different numbers of columns: [positions, own]. A row has the scores
at one position of the text. With its scores z and its target k, the loss there is::

    log(sum of exp(z - c)) + c - z[k]        c: the largest of all of z

Three numbers per position are enough for all ranks to know the loss: c, the sum, and
z[k], which only one rank has. Scores may be large, and without c exp() would overflow::

    losses = VocabularyLoss.apply(scores, targets, first)        # [positions]

``targets`` are entries of the whole vocabulary, the same on all ranks. ``first`` is the
entry that the first column of this rank stands for. Send nothing in backward.

Check your answer with: workshop check 14_vocabulary_loss

The page is docs/lessons/14_tensor_parallel/2_loss.rst.
"""

import torch
import torch.distributed as dist


def largest_of_all(scores: torch.Tensor) -> torch.Tensor:
    """Each position's largest score on any rank: [positions, own] -> [positions]."""
    # TODO 1 of 3: the largest over the own columns, then over the ranks.
    # [start answer 1]
    largest = scores.max(dim=1).values
    # Every rank: [positions] -> [positions], in place.
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return largest
    # [end answer 1]


def score_of_target(
    scores: torch.Tensor, targets: torch.Tensor, first: int
) -> torch.Tensor:
    """The score of each position's target, whichever rank has it: [positions]."""
    column = targets - first  # among the columns of this rank only if is_local
    is_local = (column >= 0) & (column < scores.shape[1])
    # TODO 2 of 3: all ranks get it. Where ``is_local`` is False, this rank has
    # nothing to add.
    # [start answer 2]
    inside = column.where(is_local, 0)  # any that exists; its score is not used
    wanted = scores.gather(1, inside[:, None]).squeeze(1).where(is_local, 0)
    # Every rank: [positions] -> [positions], in place; one of the terms is not 0.
    dist.all_reduce(wanted)
    return wanted
    # [end answer 2]


class VocabularyLoss(torch.autograd.Function):
    """-log of each target's probability: [positions] from [positions, own]."""

    @staticmethod
    def forward(ctx, scores, targets, first):
        largest = largest_of_all(scores)
        exponentials = (scores - largest[:, None]).exp()
        total = exponentials.sum(dim=1)
        # Every rank: [positions] -> [positions], in place.
        dist.all_reduce(total)
        ctx.save_for_backward(exponentials / total[:, None], targets)
        ctx.first = first
        return total.log() + largest - score_of_target(scores, targets, first)

    @staticmethod
    def backward(ctx, gradient):  # [positions]: of each position's loss
        probabilities, targets = ctx.saved_tensors  # [positions, own], [positions]
        column = targets - ctx.first  # as above
        is_local = (column >= 0) & (column < probabilities.shape[1])
        # TODO 3 of 3: return the gradient of this rank's scores, [positions, own], and
        # None for targets and first. It is the probabilities, minus 1 at the target of
        # each position where ``is_local``, all multiplied by ``gradient``. Leave what
        # was saved as it is: backward may be called again.
        # [start answer 3]
        of_scores = probabilities.clone()
        of_scores[is_local, column[is_local]] -= 1
        return of_scores * gradient[:, None], None, None
        # [end answer 3]
