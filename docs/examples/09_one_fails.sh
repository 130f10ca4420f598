#!/bin/bash
# One task of three fails at once; the others work on for four seconds.
if [ "$SLURM_PROCID" = 1 ]; then exit 3; fi
sleep 4 && echo "task $SLURM_PROCID has finished"
