# wrong value: own value | at the beginning
# [answer 1]
state = [module.state_dict()]
dist.broadcast_object_list(state, src=0)
