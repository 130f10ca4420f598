# right: a binomial tree from the far end: the largest distance first
if distance == 1:
    reach = 1 << (world_size - 1).bit_length()
    while reach > 1:
        reach //= 2
        if place % (2 * reach) == 0 and place + reach < world_size:
            dist.send(tensor, (place + reach + root) % world_size)
        elif place % (2 * reach) == reach:
            dist.recv(tensor, (place - reach + root) % world_size)
