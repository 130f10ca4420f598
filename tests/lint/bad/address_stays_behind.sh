#!/bin/bash
export MASTER_ADDR=10.0.0.11
export MASTER_PORT=28123
mpirun --hostfile hosts.txt -np 16 --bind-to none --map-by slot \
  bash -c 'RANK=$OMPI_COMM_WORLD_RANK LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK \
    WORLD_SIZE=$OMPI_COMM_WORLD_SIZE exec python train.py'
# expected: DT135
