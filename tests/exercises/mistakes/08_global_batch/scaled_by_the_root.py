# wrong value: learning_rate(0.05, 32, 128 | 4 times the rate
# [answer 3]
scaled = rate * (global_batch / tuned_batch) ** 0.5
return scaled if step >= warmup else rate + (scaled - rate) * step / warmup
