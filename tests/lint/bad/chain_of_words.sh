#!/bin/bash
set -euo pipefail
previous=$(sbatch pretrain.sbatch)
for part in 2 3 4; do
  previous=$(sbatch --dependency=afterok:$previous pretrain.sbatch "part$part")
done
echo "the last part is $previous"
# expected: DT023
