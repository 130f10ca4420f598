#!/bin/bash
# One torchrun on each of two nodes, started from anywhere: 08_by_ssh.sh HOST HOST
set -euo pipefail
cd "$(dirname "$0")/../.."

# What each node does. $PWD becomes the folder now, on this machine: all share the disk.
on_node="cd '$PWD' && source .venv/bin/activate && exec torchrun --nnodes=2 \
    --nproc-per-node=2 --rdzv-backend=c10d --rdzv-id=by-hand --rdzv-endpoint=$1:29500 \
    src/08_multinode_torchrun.py 3 3"

# shellcheck disable=SC2029 # it is meant to be put together here
ssh "$2" "$on_node" &
# shellcheck disable=SC2029
ssh "$1" "$on_node"
wait $! # with the status of the second node
