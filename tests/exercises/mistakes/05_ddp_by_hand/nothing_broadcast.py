# wrong value: first | this rank's own value
# [answer 1]
pass
