#!/bin/bash
# A sbatch that has the script read first. Install it as `sbatch` in a folder that is
# before Slurm's own in PATH. LINT_FOLDER has workshop/lint and workshop/errors.py.
set -euo pipefail
real=${REAL_SBATCH:-/usr/bin/sbatch}
python=${LINT_PYTHON:-python3} # if it's older than 3.10, jobs are submitted unread
for word in "$@"; do
  # a script starts with #!; other files are values of options, such as -o old.out
  if [ -f "$word" ] && [ "$(head -c 2 "$word")" = '#!' ] && [ "${LINT:-yes}" != no ] &&
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    PYTHONPATH=${LINT_FOLDER:-/opt/workshop} "$python" -m workshop.lint "$word" >&2 || {
      echo "sbatch: not submitted. LINT=no sbatch ... submits it anyway" >&2
      exit 1
    }
    break
  fi
done
exec "$real" "$@"
