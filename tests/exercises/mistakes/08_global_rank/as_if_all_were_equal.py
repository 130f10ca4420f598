# wrong value: place_among_unequal | where nodes start
# [answer 2]
return place(local_rank, nprocs, environ)
