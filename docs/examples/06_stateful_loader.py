"""Stop after 5 records of 12, and continue with the sixth: torchdata keeps count.

torchdata is no part of this workshop: pip install torchdata (we ran 0.11.0).
"""

from torch.utils.data import IterableDataset, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader


class Records(IterableDataset):
    def __init__(self):
        self.given = 0  # in this copy, of the worker that has it

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        for record in range(worker, 12, workers)[self.given :]:
            self.given += 1
            yield record

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


if __name__ == "__main__":
    loader = StatefulDataLoader(Records(), batch_size=None, num_workers=2)
    reading = iter(loader)
    print("before:", [next(reading) for _ in range(5)])
    state = loader.state_dict()  # what the loop got, not what workers have read ahead

    resumed = StatefulDataLoader(Records(), batch_size=None, num_workers=2)
    resumed.load_state_dict(state)
    print("after: ", list(resumed))
