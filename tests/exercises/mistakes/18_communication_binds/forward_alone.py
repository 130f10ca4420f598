# wrong value: forward, one third
# [answer 2]
return per_sequence * batch / ranks / 3
