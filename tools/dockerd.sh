#!/bin/sh
# A Docker engine in a folder of its own, for machines where none runs. Needs root.
#
#   tools/dockerd.sh run FOLDER [apart]      in the foreground, until SIGTERM, or until whoever started it dies
#   tools/dockerd.sh start FOLDER [apart]    in the background; prints the DOCKER_HOST to export
#   tools/dockerd.sh stop FOLDER             ends it and unmounts what it mounted
#
# It leaves the machine's network alone: no bridge, no packet filter, no forwarding. Our containers use the host's
# network (the brokers and proxies under test listen on 127.0.0.1), so nothing of that is needed.
#
# apart: in a network of its own, where it makes bridges and filters as engines usually do, and where services of a
# compose file find each other by name. From there nobody reaches the machine or the world.
set -eu

usage() {
    echo "usage: $0 run|start FOLDER [apart], or $0 stop FOLDER" >&2
    exit 64
}

command=${1:-}
folder=${2:-}
network=${3:-}
if [ -z "$folder" ]; then
    usage
fi
case $network in
"" | apart) ;;
*) usage ;;
esac
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
socket=$folder/docker.sock

engine() {
    signal=$1
    set -- dockerd --data-root "$folder/data" --exec-root "$folder/exec" --host "unix://$socket" \
        --pidfile "$folder/dockerd.pid"
    if [ -n "$network" ]; then
        # shellcheck disable=SC2016 # the inner shell's words
        exec unshare --net sh -c 'ip link set lo up; signal=$1; shift; exec setpriv --pdeathsig "$signal" "$@"' \
            sh "$signal" "$@"
    fi
    exec setpriv --pdeathsig "$signal" "$@" --bridge=none --iptables=false --ip-forward=false
}

answers() {
    DOCKER_HOST=unix://$socket docker version >/dev/null 2>&1
}

case $command in
run)
    engine TERM
    ;;
start)
    if ! answers; then
        (engine clear) >"$folder/dockerd.log" 2>&1 </dev/null &
        pid=$!
        tries=0
        until answers; do
            tries=$((tries + 1))
            if [ $tries -gt 120 ] || ! kill -0 $pid 2>/dev/null; then
                echo "dockerd did not start; its log ($folder/dockerd.log) ends with:" >&2
                tail -n 15 "$folder/dockerd.log" >&2
                exit 70
            fi
            sleep 0.5
        done
    fi
    echo "DOCKER_HOST=unix://$socket"
    ;;
stop)
    if [ -f "$folder/dockerd.pid" ]; then
        pid=$(cat "$folder/dockerd.pid")
        kill "$pid" 2>/dev/null || true
        tries=0
        while kill -0 "$pid" 2>/dev/null && [ $tries -lt 60 ]; do
            tries=$((tries + 1))
            sleep 0.5
        done
    fi
    # Networks of containers that were killed with the engine.
    grep -o " $folder/exec/[^ ]*" /proc/mounts | sort -r | while read -r mounted; do
        umount "$mounted" 2>/dev/null || true
    done
    ;;
*)
    usage
    ;;
esac
