# wrong value: the sum of the shares | this rank's own value | nothing was communicated
# [answer 1]
return share.clone()
