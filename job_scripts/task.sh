#!/bin/bash
# One task of srun: job_scripts/task.sh COMMAND...
#
# When a task fails, `srun --kill-on-bad-exit=1` ends the others by SIGTERM, and its own
# exit status is the highest of all tasks: 143, of one that it has ended, and not that of
# the one that failed. So a task that was ended counts as 1 here.
[ -z "${SITE_LOGS:-}" ] || export PET_LOG_DIR=$SITE_LOGS/${SLURMD_NODENAME:-$HOSTNAME}
trap : TERM USR1 # the command gets the signals, too; this shell waits for it
"$@"
status=$?
[ "$status" = 143 ] && exit 1
exit "$status"
