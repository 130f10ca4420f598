# wrong value: the gradient of the global batch | averaged over ranks
# [answer 2]
return losses.mean()
