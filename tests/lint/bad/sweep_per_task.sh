#!/bin/bash
NODES=2
sbatch <<EOT
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
head=\$(scontrol show hostnames \$SLURM_JOB_NODELIST | head -n 1)
srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_id=\$SLURM_JOB_ID --rdzv_endpoint=\$head:29501 train.py
EOT
# expected: DT101 DT207 DT301
