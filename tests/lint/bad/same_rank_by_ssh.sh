#!/bin/sh
HOSTS="lab01 lab02"
for h in $HOSTS; do
  ssh $h "cd gpt && nohup torchrun --nproc_per_node=8 --nnodes=2 --node_rank=0 \
    --master_addr=lab01 --master_port=1234 train.py > out-$h.log 2>&1" &
done
wait
# expected: DT202
