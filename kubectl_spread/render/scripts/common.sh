say() { printf '%s\n' "$*"; }
stop() { printf 'stopped: %s\n%s\n' "$*" "$(progress)" >&2; exit 1; }

# same_cluster UID WHAT: stop unless this is the UID of the namespace kube-system, which no two clusters share.
same_cluster() {
    uid=$(k get namespace kube-system -o go-template='{{.metadata.uid}}') ||
        stop "the namespace kube-system cannot be read, so this may be another cluster than that of the $2"
    [ -n "$1" ] || stop "the files of the $2 do not say which cluster they are from. kubectl uses the cluster whose" \
        "namespace kube-system has the UID $uid. If the $2 is for it, set CLUSTER_UID=$uid and run this again"
    [ "$1" = "$uid" ] || stop "this is not the cluster of the $2: namespace kube-system has the UID $uid, and not $1"
}

# main does all of it; it is called in the last line, so that a part of this script does nothing.
main() {
