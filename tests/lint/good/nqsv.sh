#!/bin/bash
#PBS -A NBB
#PBS -q gpu
#PBS -T openmpi
#PBS -b 8
#PBS -l elapstim_req=00:30:00
#PBS -v NQSV_MPI_VER=4.1.5/nvhpc23.9-cuda12.2-ucx1.15.0
cd $PBS_O_WORKDIR
source venv/bin/activate
module load openmpi/$NQSV_MPI_VER
mpirun -x PATH -np 8 --map-by ppr:1:node:PE=8 $NQSII_MPIOPTS bash ./launch_torch.sh
