# wrong value: the epoch that all ranks resume from | expected 10
# [answer 2]
newest = [own[0] if own else None]
dist.broadcast_object_list(newest, src=0)
return newest[0]
