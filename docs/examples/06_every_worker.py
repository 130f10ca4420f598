"""Read six records with 0, 1 and 2 workers, from a stream that knows of no workers."""

from torch.utils.data import DataLoader, IterableDataset


class Records(IterableDataset):
    def __iter__(self):
        yield from range(6)


if __name__ == "__main__":
    for workers in (0, 1, 2):
        loader = DataLoader(Records(), batch_size=None, num_workers=workers)
        print(workers, "workers:", list(loader))
