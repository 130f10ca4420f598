# wrong value: the output of part 0
# [answer 1]
import threading

outputs = [None] * len(chunks)

def apply(i):
    outputs[i] = replicas[i](chunks[i])

for i in range(len(chunks)):
    threading.Thread(target=apply, args=(i,)).start()
return outputs
