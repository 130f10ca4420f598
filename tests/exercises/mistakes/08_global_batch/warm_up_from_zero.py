# wrong value: learning_rate(0.1, 32, | step=0
# [answer 3]
scaled = rate * global_batch / tuned_batch
return scaled if step >= warmup else scaled * step / warmup
