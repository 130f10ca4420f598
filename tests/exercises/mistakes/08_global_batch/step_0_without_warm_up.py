# wrong value: learning_rate(0.1, 64, 16, step=0, warmup=0)
# [answer 3]
if step == 0:
    return rate
scaled = rate * global_batch / tuned_batch
return scaled if step >= warmup else rate + (scaled - rate) * step / warmup
