#!/usr/bin/env bash
# Run a command in the workshop's container as the user who owns the clone.
#
#     as_owner.sh bash
#
# The clone is a folder of the host. What is written there should belong to its owner,
# whose number differs between hosts. So the container starts as root, the user `learner`
# gets that number, and root is left before the command runs. A container that doesn't
# start as root (a notebook server, a Codespace) keeps the user it has.
#
# Exit status: that of the command; 2 if the clone can't be written to.
set -euo pipefail

clone=${WORKSHOP_CLONE:-/workshop}
user=learner

if ((EUID == 0)); then
  owner=$(stat --format=%u "$clone")
  # Docker Desktop shows the files as root's and lets everyone write; an engine without
  # root's rights calls its own user root, and only that user can write.
  if ((owner == 0)) && ! setpriv --reuid="$user" --clear-groups test -w "$clone"; then
    exec "$@"
  fi
  if ((owner != 0 && owner != $(id -u "$user"))); then
    groupmod --non-unique --gid "$(stat --format=%g "$clone")" "$user"
    usermod --non-unique --uid "$owner" "$user"
  fi
  # a volume, which keeps the owner that it had when it was filled
  environment=$clone/.venv
  if [[ -d "$environment" && $(stat --format=%u "$environment") != $(id -u "$user") ]]; then
    echo "workshop: .venv gets the owner of the clone, which takes a minute once" >&2
    chown --recursive "$user:" "$environment"
  fi
  export HOME USER=$user LOGNAME=$user
  HOME=$(getent passwd "$user" | cut --delimiter=: --fields=6)
  exec setpriv --reuid="$user" --regid="$user" --init-groups "$0" "$@"
fi

if [[ ! -w "$clone" ]]; then
  owner=$(stat --format=%u:%g "$clone")
  echo "workshop: user $EUID can't write into $clone, which belongs to $owner:" \
    "start the container with --user $owner, or with --user root" >&2
  exit 2
fi
exec "$@"
