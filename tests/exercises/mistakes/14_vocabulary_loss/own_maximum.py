# wrong value: the largest scores | this rank's own value | nothing was communicated
# [answer 1]
return scores.max(dim=1).values
