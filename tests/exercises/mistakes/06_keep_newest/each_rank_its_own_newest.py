# wrong value: the epoch that all ranks resume from | expected 8
# [answer 2]
return mine[0] if mine else None
