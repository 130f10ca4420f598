# wrong way: never ran at the same time
# [answer 1]
outputs, recording = [None] * len(chunks), torch.is_grad_enabled()

def apply(i):
    with torch.set_grad_enabled(recording):
        outputs[i] = replicas[i](chunks[i])

with ThreadPoolExecutor(len(chunks)) as pool:
    for i in range(len(chunks)):
        pool.submit(apply, i).result()
return outputs
