# wrong value: with 1f1b
# [answer 2]
return micro_batches
