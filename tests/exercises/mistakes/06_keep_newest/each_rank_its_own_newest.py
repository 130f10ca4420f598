# wrong value: the epoch that all ranks resume from | expected 10
# [answer 2]
return mine[0] if mine else None
