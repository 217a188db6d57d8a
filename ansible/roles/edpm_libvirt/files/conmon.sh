#!/bin/sh
# conmon as podman starts it for the daemon that starts guests, but for the command that cleans up after the container, which
# ExecStopPost of the unit does as well. conmon waits for that command and for all of its other children, and guests are among
# them: it adopts what the daemon leaves (PR_SET_CHILD_SUBREAPER). The unit would stay active without a daemon, and end by SIGKILL.
set -eu
value=
for argument do
  shift
  if [ -n "$value" ]; then
    value=
    continue
  fi
  case $argument in
    --exit-command | --exit-command-arg) value=skip ;;
    --exit-command=* | --exit-command-arg=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
# Where podman looks first, before the usual directories.
PATH=/usr/libexec/podman:/usr/local/libexec/podman:/usr/local/lib/podman:$PATH exec conmon "$@"
