#!/bin/bash
# How mpirun reaches a host of a PBS job: `tmrsh_agent.sh HOST COMMAND...` does by
# pbs_tmrsh what it would do by ssh. mpirun hands over a line for a shell, while
# pbs_tmrsh runs a program; and what it starts belongs to the job and ends with it.
# mpirun shortens the names of hosts; pbs_tmrsh wants them as in the node file.
host=$(grep -m1 -E "^$1(\.|\$)" "$PBS_NODEFILE") || host=$1
shift
exec pbs_tmrsh "$host" /bin/bash -lc "$*"
