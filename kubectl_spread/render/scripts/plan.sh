# It evicts only the pods that main names, and stops at the first surprise, with exit status 1.
# It may be run again: pods that are gone already are passed over.
# shellcheck disable=SC2016  # the text in single quotes is for kubectl and awk
set -eu

refused_for=60  # seconds after which an eviction that the API server refuses is given up
complete_in=60  # seconds in which all pods of an owner have to be ready before one of them is evicted
arrives_in=300  # seconds in which a replacement has to be ready
evicted=0       # pods that were evicted
gone=' '        # UIDs of pods that were gone already
seen=' '        # UIDs of pods that are not replacements

progress() { printf 'evicted: %s of %s pods\n' "$evicted" "$planned"; }

# pods NAMESPACE KIND OWNER: print UID, name, node and readiness of its pods that are not terminating or finished.
pods() {
    items=$(k get pods -n "$1" -o go-template='
        {{- range .items}}{{if not .metadata.deletionTimestamp}}{{$pod := .}}
        {{- range .metadata.ownerReferences}}
        {{- .kind}}/{{.name}} {{$pod.metadata.uid}} {{$pod.metadata.name}}
        {{- with $pod.spec.nodeName}} {{.}}{{else}} -{{end}}{{with $pod.status.phase}} {{.}}{{else}} -{{end}}
        {{- range $pod.status.conditions}}{{if eq .type "Ready"}} {{.status}}{{end}}{{end}}{{"\n"}}
        {{- end}}{{end}}{{end}}') || stop "the pods of namespace $1 cannot be listed"
    printf '%s\n' "$items" |
        awk -v owner="$2/$3" '$1 == owner && $5 != "Failed" && $5 != "Succeeded" { print $2, $3, $4, $6 }'
}

# there NAMESPACE KIND OWNER UID: whether a pod of the owner has this UID and is not terminating.
there() {
    list=$(pods "$1" "$2" "$3") || exit 1
    case $list in *"$4 "*) ;; *) return 1 ;; esac
}

# wait_ready NAMESPACE KIND OWNER NUMBER SECONDS: wait until the owner has this number of pods, all of them ready.
wait_ready() {
    left=$5
    while :; do
        list=$(pods "$1" "$2" "$3") || exit 1
        ready=$(printf '%s\n' "$list" | awk '
            NF { all++; if ($4 == "True") ready++; else waiting = waiting ", " $2 " is not" }
            END { print ready + 0 " of " all + 0 " pods are ready" waiting }')
        [ "$ready" != "$4 of $4 pods are ready" ] || return 0
        [ "$left" -gt 0 ] || stop "$2 $3 in namespace $1: $ready. The plan needs $4 ready pods of $4"
        sleep 2
        left=$((left - 2))
    done
}

# open_nodes NAMESPACE POD LABELS...: stop unless each of these domains has a ready node that is open to such a pod.
open_nodes() {
    rules=$(k get pod "$2" -n "$1" -o go-template='
        {{- range $key, $value := .spec.nodeSelector}},{{$key}}={{$value}}{{end}}{{"\n"}}
        {{- range .spec.tolerations}}tolerates|{{with .key}}{{.}}{{end}}|{{with .value}}{{.}}{{end}}|
        {{- with .effect}}{{.}}{{end}}|{{with .operator}}{{.}}{{end}}{{"\n"}}{{end}}') ||
        stop "pod $2 in namespace $1 cannot be read"
    selector=$(printf '%s\n' "$rules" | sed -n 1p)
    pod="$2 in namespace $1"
    shift 2
    for labels; do
        nodes=$(k get nodes -l "$labels$selector" -o go-template='
            {{- range .items}}node|{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{"\n"}}
            {{- if .spec.unschedulable}}taint|node.kubernetes.io/unschedulable||NoSchedule{{"\n"}}{{end}}
            {{- range .spec.taints}}taint|{{.key}}|{{with .value}}{{.}}{{end}}|{{.effect}}{{"\n"}}{{end}}
            {{- end}}') || stop "the nodes with $labels$selector cannot be listed"
        printf '%s\n%s\n' "$rules" "$nodes" | awk -F '|' '
            function tolerated(i) {
                for (i = 1; i <= number; i++) {
                    if (key[i] != "" && key[i] != $2 || effect[i] != "" && effect[i] != $4) continue
                    if (operator[i] == "Exists" || operator[i] ~ /^(Equal)?$/ && value[i] == $3) return 1
                    if (operator[i] == "Lt" && $3 + 0 < value[i] + 0) return 1
                    if (operator[i] == "Gt" && $3 + 0 > value[i] + 0) return 1
                }
                return 0
            }
            $1 == "tolerates" { key[++number] = $2; value[number] = $3; effect[number] = $4; operator[number] = $5 }
            $1 == "node" { open += ready; ready = $2 == "True" }
            $1 == "taint" && $4 != "PreferNoSchedule" && !tolerated() { ready = 0 }
            END { exit !(open + ready) }' ||
            stop "no node with $labels$selector takes the replacement of pod $pod:" \
                'all are cordoned, tainted or not ready. Plan again'
    done
}

# check NAMESPACE POD UID NODE KIND OWNER NUMBER LABELS...: stop unless the pod may be evicted; note if it is gone.
check() {
    if there "$1" "$5" "$6" "$3 $2 $4"; then
        wait_ready "$1" "$5" "$6" "$7" "$complete_in"
    else
        say "already gone: $2"
        gone="$gone$3 "
    fi
    seen=$seen$(printf '%s\n' "$list" | awk '{ printf "%s ", $1 }')
    case $gone in *" $3 "*) return 0 ;; esac
    namespace=$1
    pod=$2
    shift 7
    open_nodes "$namespace" "$pod" "$@"
}

# evict NAMESPACE POD UID KIND OWNER: evict the pod with this UID, unless it was gone already.
evict() {
    case $gone in *" $3 "*) return 0 ;; esac
    say "evict $2"
    body='{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},'
    body=$body'"deleteOptions":{"preconditions":{"uid":"%s"}}}'
    left=$refused_for
    # shellcheck disable=SC2059  # the format is the one above
    until answer=$(printf "$body" "$2" "$1" "$3" |
        k create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - 2>&1); do
        there "$1" "$4" "$5" "$3" || stop "pod $2 in namespace $1 is gone, although its eviction failed: $answer"
        printf '%s\n' "$answer" |
            grep -Eq '^Error from server \((TooManyRequests|Conflict|NotFound|Timeout|ServerTimeout)\)' ||
            stop "pod $2 in namespace $1 cannot be evicted: $answer"
        case $answer in
            *'(TooManyRequests)'*) why="a disruption budget does not allow to evict $2 in namespace $1" ;;
            *) why="pod $2 in namespace $1 cannot be evicted" ;;
        esac
        [ "$left" -gt 0 ] || stop "$why: $answer"
        sleep 2
        left=$((left - 2))
    done
    if there "$1" "$4" "$5" "$3"; then
        stop "pod $2 in namespace $1 is still there, although its eviction was accepted: $answer"
    fi
    evicted=$((evicted + 1))
}

# arrive NAMESPACE KIND OWNER NUMBER LABELS...: wait for replacements; stop if one is on a node without these labels.
arrive() {
    wait_ready "$1" "$2" "$3" "$4" "$arrives_in"
    shift 4
    expected=' '
    for labels; do
        expected=$expected$(k get nodes -l "$labels" -o go-template='{{range .items}}{{.metadata.name}} {{end}}') ||
            stop "the nodes with $labels cannot be listed"
    done
    printf '%s\n' "$list" | while read -r uid name node _; do
        case $seen in *" $uid "*) continue ;; esac
        case $expected in
            *" $node "*) say "$name is ready on $node" ;;
            *) stop "$name is on $node, and the plan expects a node with $*. Plan again" ;;
        esac
    done || exit 1
}
