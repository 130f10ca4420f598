# wrong value: learning_rate(0.1, 64, 16, step=0, warmup=4)
# [answer 3]
factor = global_batch / tuned_batch
if step >= warmup or factor < 1:
    return rate * factor
return rate * (1 + (factor - 1) * step / warmup)
