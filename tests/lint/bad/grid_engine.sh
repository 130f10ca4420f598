#!/bin/bash -l
#$ -l h_rt=24:00:00
#$ -l gpus=4
#$ -cwd
torchrun --standalone --nproc_per_node=4 train.py --out results/$JOB_ID
# expected: DT011
