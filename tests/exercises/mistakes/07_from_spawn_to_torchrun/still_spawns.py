# wrong value: mp.spawn was called | ranks of its own
# [answer 3]
import torch.multiprocessing as mp

mp.spawn(train, args=(path,), nprocs=2)
