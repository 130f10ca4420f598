# wrong value: the time of the whole batch
# [answer 2]
return 2 / 3 * per_sequence * batch
