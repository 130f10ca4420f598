# wrong value: with gpipe
# [answer 2]
return min(micro_batches, ranks - rank)
