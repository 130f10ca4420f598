# wrong value: parallel_apply, when the third part fails
# [answer 1]
import threading

outputs, recording = [None] * len(chunks), torch.is_grad_enabled()

def apply(i):
    with torch.set_grad_enabled(recording):
        outputs[i] = replicas[i](chunks[i])

threads = [threading.Thread(target=apply, args=(i,)) for i in range(len(chunks))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
return [output for output in outputs if output is not None]
