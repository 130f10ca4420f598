# right: the text as bytes, after their number; no objects are pickled
import torch

told = b""
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        told = f"{type(error).__name__}: {error}".encode()
length = torch.tensor(len(told))
dist.broadcast(length, src=0)
if length:
    text = torch.zeros(int(length), dtype=torch.uint8)
    if told:
        text[:] = torch.tensor(list(told), dtype=torch.uint8)
    dist.broadcast(text, src=0)
    raise SaveError(bytes(text.tolist()).decode())
