# wrong value: learning_rate(0.1, 64, 16 | got 0, expected 0.025
# [answer 3]
scaled = rate * (global_batch // tuned_batch)
return scaled if step >= warmup else rate + (scaled - rate) * step / warmup
