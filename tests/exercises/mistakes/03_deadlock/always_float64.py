# wrong value: of whole numbers | int64 | different dtypes
from_left = torch.empty(strip.shape[1], dtype=torch.float64)
from_right = torch.empty(strip.shape[1], dtype=torch.float64)
sending = [dist.isend(strip[-1], right), dist.isend(strip[0], left)]
dist.recv(from_left, left)
dist.recv(from_right, right)
for work in sending:
    work.wait()
