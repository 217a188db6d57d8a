# The chassis of this host in OVN's south bound database. Runs in a container with the Open vSwitch of the host:
#
#   chassis register SECONDS [OPTION...]   waits until it is there, and removes those that machines of this host's name left behind;
#                                          fails if one of them is in use
#   chassis remove [OPTION...]             removes it, and its agents in neutron
#   chassis forget-metadata [OPTION...]    removes the metadata agent from it, and in neutron
#
# The options are those of ovn-sbctl for TLS. Prints a line for each change.
set -eu
action=$1
shift
if [ "$action" = register ]; then
  seconds=$1
  shift
fi
tls=$*

# external NAME: prints an external id of Open vSwitch, nothing if there is none.
external() { ovs-vsctl --timeout=10 -vconsole:off --db=unix:/run/openvswitch/db.sock --if-exists get Open_vSwitch . "external_ids:$1" | tr -d '"'; }
id=$(external system-id)
host=$(external hostname)
remote=$(external ovn-remote)
if [ -z "$remote" ]; then
  exit 0 # ovn-controller was never told where the database is.
fi

# As ovn-controller, it takes any server of a clustered database: a remote may be a follower alone.
# shellcheck disable=SC2086
sb() { ovn-sbctl --no-leader-only --timeout=20 -vconsole:off "--db=$remote" $tls "$@"; }
# rows TABLE CONDITION: prints the names of rows.
rows() { sb --bare --columns=name find "$1" "$2" | grep . || true; }
metadata() { sb --if-exists get Chassis_Private "$1" 'external_ids:"neutron:ovn-metadata-id"' | tr -d '"'; }

# forget AGENT: neutron's servers keep agents in memory, and tell each other in this way that one is deleted. Where the database does not
# allow that, they show it as dead.
forget() {
  if sb set SB_Global . "external_ids:delete_agent=\"$1\"" && sb remove SB_Global . external_ids delete_agent; then
    echo "agent $1 is removed"
  else
    echo "agent $1 is kept: delete it in neutron"
  fi
}

# drop CHASSIS: its rows come last, so that a run that ended early is completed by the next one.
drop() {
  agent=$(metadata "$1")
  [ -z "$agent" ] || forget "$agent"
  forget "$1"
  sb --if-exists chassis-del "$1"
  sb --if-exists destroy Chassis_Private "$1"
  echo "chassis $1 is removed"
}

# has_address CHASSIS: fails if none of its addresses for tunnels is one of this host.
has_address() {
  own=$(external ovn-encap-ip)
  for address in $(sb --bare --columns=ip find Encap "chassis_name=\"$1\""); do
    case ",$own," in *",$address,"*) return 0 ;; esac
  done
  return 1
}

# answered CHASSIS: prints the last request of neutron, or of another client, that its ovn-controller has answered.
answered() {
  number=$(sb --if-exists get Chassis_Private "$1" nb_cfg)
  echo "${number:-0}"
}

# is_silent CHASSIS: fails if its ovn-controller has answered the last request, or does so in ten seconds.
is_silent() {
  request=$(sb get SB_Global . nb_cfg)
  tries=10
  while [ "$(answered "$1")" -lt "$request" ]; do
    [ "$tries" -gt 0 ] || return 0
    tries=$((tries - 1))
    sleep 1
  done
  return 1
}

# registered: fails if the database does not have the chassis, or ovn-controller has no connection to it.
registered() {
  [ -n "$(rows Chassis_Private "name=\"$id\"")" ] && [ "$(ovn-appctl -t ovn-controller connection-status 2>/dev/null)" = connected ]
}

case $action in
  register)
    # Two chassis cannot have one address: a new machine of the same name could not register. One with another address can be of a
    # host that runs, and its guests would lose their networks.
    for other in $(rows Chassis "hostname=\"$host\""); do
      if [ "$other" != "$id" ]; then
        if ! has_address "$other" && ! is_silent "$other"; then
          echo "the chassis $other has the host name $host as well, and its ovn-controller answers: it is another machine. Give one of the two another host name. If that machine no longer exists: ovn-sbctl chassis-del $other" >&2
          exit 1
        fi
        drop "$other"
      fi
    done
    until registered; do
      if [ "$seconds" -le 0 ]; then
        echo "the chassis $id of this host is not in the south bound database $remote. See the log of ovn-controller" >&2
        exit 1
      fi
      seconds=$((seconds - 1))
      sleep 1
    done
    ;;
  remove)
    if [ -n "$(rows Chassis "name=\"$id\"")$(rows Chassis_Private "name=\"$id\"")" ]; then
      drop "$id"
    fi
    ;;
  forget-metadata)
    agent=$([ -z "$(rows Chassis_Private "name=\"$id\"")" ] || metadata "$id")
    if [ -n "$agent" ]; then
      forget "$agent"
      sb remove Chassis_Private "$id" external_ids '"neutron:ovn-metadata-id"' '"neutron:ovn-metadata-sb-cfg"'
    fi
    ;;
esac
