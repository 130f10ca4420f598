# wrong way: never ran at the same time
# [answer 1]
return [replica(chunk) for replica, chunk in zip(replicas, chunks, strict=True)]
