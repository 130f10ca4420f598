#!/bin/bash
# A sbatch that has the script read first. Install it as `sbatch` in a folder that is
# before Slurm's own in PATH. LINT_FOLDER has workshop/lint and workshop/errors.py.
set -euo pipefail
real=${REAL_SBATCH:-/usr/bin/sbatch}
for word in "$@"; do
  if [ -f "$word" ] && [ "${LINT:-yes}" != no ]; then
    PYTHONPATH=${LINT_FOLDER:-/opt/workshop} python3 -m workshop.lint "$word" >&2 || {
      echo "sbatch: not submitted. LINT=no sbatch ... submits it anyway" >&2
      exit 1
    }
    break
  fi
done
exec "$real" "$@"
