# exception: ValueError | the reverse
# [answer 2]
return hosts.index(hostname)
