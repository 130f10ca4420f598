#!/usr/bin/env bash
# Run a command on both nodes of a practice cluster of its own, as ranks 0 and 1:
# two_nodes.sh COMMAND...  It ends with the status of rank 0.
set -uo pipefail

folder=$(mktemp -d) || exit
export WORKSHOP_CLUSTER=$folder/cluster WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500
trap 'workshop cluster down > /dev/null; rm -rf "$folder"' EXIT
workshop cluster up --nodes=2 > /dev/null || exit

RANK=1 workshop cluster run --node n2 "$@" &
disown
RANK=0 workshop cluster run --node n1 "$@"
status=$?
for _ in {1..50}; do # rank 1 has 5 s more
  kill -0 $! 2> /dev/null || break
  sleep 0.1
done
exit $status
