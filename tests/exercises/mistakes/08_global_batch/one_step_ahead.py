# wrong value: step=0 | step 0 uses the tuned rate
# [answer 3]
scaled = rate * global_batch / tuned_batch
return rate + (scaled - rate) * min(1.0, (step + 1) / max(1, warmup))
