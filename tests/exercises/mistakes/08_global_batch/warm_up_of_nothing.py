# exception: ZeroDivisionError | warmup
# [answer 3]
scaled = rate * global_batch / tuned_batch
return rate + (scaled - rate) * min(1.0, step / warmup)
