#!/bin/bash
# Started on each node: srun --ntasks-per-node=1 ./task_of_srun.sh
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export NODE_RANK=$SLURM_NODEID
echo "$SLURMD_NODENAME: rank $SLURM_NODEID"
accelerate launch \
    --num_machines $SLURM_JOB_NUM_NODES \
    --num_processes $((4 * $SLURM_JOB_NUM_NODES)) \
    --machine_rank $SLURM_NODEID \
    --main_process_ip $MASTER_ADDR \
    --main_process_port $MASTER_PORT \
    train.py
