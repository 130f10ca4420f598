# wrong value: the sum of the shares | this rank's own value
# [answer 1]
return share.clone()
