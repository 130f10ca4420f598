# wrong value: the gradient of the global batch | averaged over the ranks
# [answer 2]
return losses.mean()
