# wrong value: first | this rank's own value | nothing was communicated
# [answer 1]
pass
