# right: threads of one's own, exceptions carried over
# [answer 1]
import threading

results, recording = {}, torch.is_grad_enabled()

def apply(i):
    torch.set_grad_enabled(recording)
    try:
        results[i] = replicas[i](chunks[i])
    except Exception as error:
        results[i] = error

threads = [threading.Thread(target=apply, args=(i,)) for i in range(len(chunks))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for result in results.values():
    if isinstance(result, Exception):
        raise result
return [results[i] for i in range(len(chunks))]
