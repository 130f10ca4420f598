# right: each owner collects and sends its shard, with reduce and broadcast
# [answer 2]
self.shard.grad = torch.empty_like(self.shard)
for owner, piece in enumerate(whole.split(self.numel)):
    piece = piece.clone()
    dist.reduce(piece, dst=owner, op=dist.ReduceOp.AVG)
    if owner == dist.get_rank():
        self.shard.grad.copy_(piece)
# [answer 3]
pieces = []
for owner in range(dist.get_world_size()):
    piece = self.shard.detach().clone()
    dist.broadcast(piece, src=owner)
    pieces.append(piece)
whole = torch.cat(pieces)
first = 0
for parameter in self.parameters:
    values = whole[first : first + parameter.numel()]
    parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
