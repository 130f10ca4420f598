# exception: rank 0 raised RuntimeError | without overflow
import torch

text = torch.zeros(2000, dtype=torch.uint8)
failed = torch.zeros(1)
why = None
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        failed += 1
        why = str(error)
dist.broadcast(failed, src=0)
if failed:
    if why is not None:
        codes = [ord(letter) for letter in why]
        text[: len(codes)] = torch.tensor(codes, dtype=torch.uint8)
    dist.broadcast(text, src=0)
    raise SaveError("".join(chr(code) for code in text.tolist() if code))
