# wrong value: learning_rate(0.1, 32, | step=0 | step 0 uses the tuned rate
# [answer 3]
return rate * global_batch / tuned_batch
