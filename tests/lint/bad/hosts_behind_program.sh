#!/usr/bin/env bash
cat > hostfile <<END
gpu-a slots=8
gpu-b slots=8
END
deepspeed finetune.py --hostfile=hostfile --master_port 29701 \
  --deepspeed --deepspeed_config ds_zero3.json
# expected: DT134
