# wrong value: Tensor | expected tuple
# [answer 1]
parts_of = torch.tensor([length // parts + (i < length % parts) for i in range(parts)])
stop = parts_of.cumsum(0)[index]
return stop - parts_of[index], stop
