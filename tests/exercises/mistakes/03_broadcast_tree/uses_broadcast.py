# wrong way: broadcast does the work
if distance == 1:
    dist.broadcast(tensor, src=root)
