# wrong way: its edges have
whole_left, whole_right = torch.empty_like(strip), torch.empty_like(strip)
transfers = [
    dist.isend(strip, right),
    dist.isend(strip, left),
    dist.irecv(whole_left, left),
    dist.irecv(whole_right, right),
]
for transfer in transfers:
    transfer.wait()
from_left, from_right = whole_left[-1], whole_right[0]
