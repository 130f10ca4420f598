#!/bin/bash
python -m torch.distributed.launch --nnodes=2 --node_rank=$1 --nproc_per_node=8 train.py
# expected: DT114 DT201
