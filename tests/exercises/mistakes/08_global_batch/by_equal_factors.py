# wrong value: grows by equal steps
# [answer 3]
factor = global_batch / tuned_batch
return rate * factor ** min(1.0, step / warmup if warmup else 1.0)
