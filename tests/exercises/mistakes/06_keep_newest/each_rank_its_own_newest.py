# wrong value: the epoch that all ranks resume from | expected 10
# [answer 2]
return own[0] if own else None
