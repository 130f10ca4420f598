# wrong value: the Subset has | expected the numbers of this rank's images
# [answer 1]
return Subset(dataset, rank)
