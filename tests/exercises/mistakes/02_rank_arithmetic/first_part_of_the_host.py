# wrong value: place_by_host(1, ['n1.blue.org', 'n1.red.org', | is (0, 1), expected (1, 0)
# [answer 3]
names = [host.split(".")[0] for host in hosts]
order = list(dict.fromkeys(names))
return order.index(names[rank]), names[:rank].count(names[rank])
