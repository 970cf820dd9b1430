# A network of three hosts behind a bridge, each with a member of All CoAP Nodes: two of ours, one of
# libcoap. Says what the group answers to PROGRAM. To be run in namespaces of its own:
#   unshare --user --map-root-user --net --pid --mount-proc --fork --kill-child sh members.sh PROGRAM
set -eu
program=$1
ip link set lo up
ip link add name net type bridge
ip link set net up
ip address add 10.9.0.1/24 dev net
ip route add 224.0.0.0/4 dev net

member() { # N COMMAND...: on a host of its own, 10.9.0.N
    n=$1
    shift
    unshare --net sleep 60 &
    host=$!
    while [ "$(readlink /proc/$host/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
    ip link add "to$n" type veth peer name eth0 netns $host
    ip link set "to$n" master net up
    nsenter --net --target $host sh -c "ip link set lo up && ip link set eth0 up &&
        ip address add 10.9.0.$n/24 dev eth0 && ip route add default via 10.9.0.1"
    nsenter --net --target $host "$@" &
}

member 2 "$program" serve --multicast eth0 >&2
member 3 "$program" serve --multicast >&2
! command -v coap-server-notls >/dev/null || member 4 coap-server-notls -G eth0 -g 224.0.1.187
# An address of a link is used when nobody else has been found to have it.
sleep 2

"$program" discover coap://224.0.1.187 | sed 's/^/discover /' &
discover=$!
"$program" get --non coap://224.0.1.187/time | sed 's/^/get /' &
get=$!
"$program" discover 'coap://[ff02::fd%25net]' | sed 's/^/link /' &
link=$!
# Nobody has it, and nobody says so.
"$program" get coap://224.0.1.187/missing 2>&1 | sed 's/^/missing /' &
missing=$!
wait $discover $get $link $missing
