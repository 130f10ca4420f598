# exception: RANK expected | line
# [answer 1]
dist.init_process_group("gloo")
