# right: a list of messages, into a buffer of its own
buffer, messages = torch.empty_like(tensor), []
if place < distance and place + distance < world_size:
    messages.append(dist.P2POp(dist.isend, tensor, (rank + distance) % world_size))
if distance <= place < 2 * distance:
    messages.append(dist.P2POp(dist.irecv, buffer, (rank - distance) % world_size))
for work in dist.batch_isend_irecv(messages) if messages else []:
    work.wait()
if distance <= place < 2 * distance:
    tensor.copy_(buffer)
