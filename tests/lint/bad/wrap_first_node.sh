#!/bin/bash
sbatch -N 2 --ntasks-per-node=1 --gres=gpu:4 -t 1:00:00 --wrap "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=\$(hostname):29544 train.py"
# expected: DT103 DT207
