# wrong value: one and the same copy
# [answer 2]
chunks = inputs.chunk(self.parts)
return torch.cat(parallel_apply([self.module] * len(chunks), chunks))
# [answer 3]
pass
