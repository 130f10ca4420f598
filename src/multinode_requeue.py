"""Train on many nodes in a job that is stopped and started again, as often as needed.

Run from the folder of the workshop, inside a job. One task for each rank:

    srun --nodes=2 --ntasks-per-node=2 python src/multinode_requeue.py 10 5

SIGUSR1, sent to any rank, saves a snapshot within the epoch and ends all ranks with
exit status 0. The same command goes on from there and ends at the same weights, bit
for bit, as if nobody had asked. job_scripts/requeue.sbatch does both.
"""

import signal

import torch

from command_line import BadInput, parse_training
from dist_env import get_dist_env
from multinode_srun import set_meeting_point, with_node_rank
from multinode_torchrun import Trainer, cleanup, setup, train_and_report
from one_voice import one_line_errors, say
from resuming import add_save_options
from snapshots import check_saved
from stop_request import StopRequest


class Stopped(Exception):
    """A rank was asked to stop, and all that was done is saved."""


class StoppableTrainer(Trainer):
    """Asks before each step whether to go on."""

    stop: StopRequest

    def train(self, total_epochs: int) -> None:
        """Train until ``total_epochs`` are run, or until a rank is asked to stop.

        Raises:
            Stopped: at the same step on all ranks.
        """
        self.steps_before = self.steps_run
        super().train(total_epochs)

    def run_batch(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step, unless a rank was asked to stop before it."""
        if self.stop.agreed(self.device):  # every rank, in every step
            if self.steps_run == self.steps_before:
                raise BadInput(
                    "asked to stop before the first step: nothing would ever be done; "
                    "give the job more time, or send the signal later"
                )
            self.save_snapshot()
            check_saved(self.not_saved)
            raise Stopped
        return super().run_batch(images, labels)


@one_line_errors
def main() -> None:
    """What each process does, on each node; srun has started it."""
    StoppableTrainer.stop = StopRequest(signal.SIGUSR1)
    args = parse_training(__doc__, add_save_options)
    env = get_dist_env()
    set_meeting_point(env)
    device = setup(env)
    not_saved = ""
    try:
        env = with_node_rank(env)
        not_saved = train_and_report(args, env, device, StoppableTrainer)
    except Stopped:
        say("Stopped as asked: the same command goes on from the snapshot")
    cleanup()
    check_saved(not_saved)


if __name__ == "__main__":
    main()
