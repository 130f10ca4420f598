# wrong value: the slow rank, by data
# [answer 2]
compute = [typical(steps, "compute") for steps in times]
slow = compute.index(max(compute))
return slow if max(compute) > 1.1 * median(compute) else None
