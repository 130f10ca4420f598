# wrong value: learning_rate(0.1, 64, 16
# [answer 3]
scaled = max(rate, rate * global_batch / tuned_batch)
return scaled if step >= warmup else rate + (scaled - rate) * step / warmup
