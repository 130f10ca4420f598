# wrong value: is still one host | the hosts
# [answer 1]
hosts = text.split()
if not hosts:
    raise ValueError("no host")
return hosts, 1
