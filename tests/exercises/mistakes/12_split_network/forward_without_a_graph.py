# exception: does not require grad | hidden.backward | starts at a tensor that has no graph
# [answer 1]
with torch.no_grad():
    hidden = layers(images)
dist.send(hidden, dst=other)
gradient = torch.empty_like(hidden)
dist.recv(gradient, src=other)
hidden.backward(gradient)
