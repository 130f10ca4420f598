# wrong value: generator | expected list
# [answer 2]
for k in range(ahead):
    yield "forward", k
for k in range(ahead, micro_batches):
    yield "forward", k
    yield "backward", k - ahead
for k in range(micro_batches - ahead, micro_batches):
    yield "backward", k
