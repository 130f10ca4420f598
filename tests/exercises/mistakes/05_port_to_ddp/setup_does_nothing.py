# wrong value: there must be a process group
# [answer 1]
pass
