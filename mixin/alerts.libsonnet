{
  local config = $._config,

  local series(name, selector, matchers='') =
    local parts = std.filter(function(part) part != '', [selector, matchers]);
    if parts == [] then name else '%s{%s}' % [name, std.join(', ', parts)],
  local report(name, matchers='') = series('kube_spread_' + name, config.spreadSelector, matchers),
  local monitor(name, matchers='') = series(name, config.monitorSelector, matchers),

  // The labels of a workload, by which an alert reaches its owner.
  local workload = config.clusterLabel + ', namespace, workload, workload_type',
  local constraint = workload + ', path, topology_key',
  local explain = 'kubectl spread explain {{ $labels.workload_type }}/{{ $labels.workload }} -n {{ $labels.namespace }}',
  local name = '{{ $labels.workload_type }}/{{ $labels.workload }} in namespace {{ $labels.namespace }}',

  // A new cluster can have hundreds of such workloads, so one alert counts those of a namespace.
  local oneDomain = ['SPR302', 'SPR501', 'SPR502', 'SPR505'],

  // Two replicas of the monitor report the same, and a workload may have a code with two severities.
  local findings(labels, matchers) = 'max by (%s) (%s)' % [labels, report('finding', matchers)],

  // No node takes pending pods, because constraints refuse the nodes that would. Pods that wait for CPU have no such finding.
  local blocked(labels) = findings(labels, 'code=~"SPR303|SPR308", severity="error"'),

  local alert(name, expr, duration, summary, description) = {
    alert: name,
    expr: expr,
    'for': duration,
    labels: { severity: 'warning' },
    annotations: {
      summary: summary,
      description: description,
      runbook_url: config.runbookURL + std.asciiLower(name),
    },
  },
  local reportAlert(name, expr, duration, summary, description, command=explain) =
    alert(name, expr, duration, summary, description + ' Run `' + command + '`.') +
    { keep_firing_for: config.keepFiringFor },

  prometheusAlerts+:: {
    groups+: [
      {
        name: 'kube-spread',
        rules: [
          reportAlert(
            'KubeSpreadSkew',
            |||
              max by (%(constraint)s) (%(skew)s)
                > max by (%(constraint)s) (%(max)s)
              and max by (%(constraint)s) (%(hard)s)
              and on (%(workload)s) %(finding)s
            ||| % {
              constraint: constraint,
              workload: workload,
              skew: report('constraint_skew'),
              max: report('constraint_max_skew'),
              hard: report('constraint_info', 'when_unsatisfiable="DoNotSchedule"'),
              finding: findings(workload, 'code="SPR301", severity=~"warning|error"'),
            },
            config.skewFor,
            'A topology spread constraint is violated, and nothing corrects it.',
            name + ' has skew {{ $value }} over {{ $labels.topology_key }}, which is above its maxSkew. ' +
            'The scheduler never moves running pods, although other domains would take some of them.',
          ),
          reportAlert(
            'KubeSpreadBlocked',
            blocked(workload + ', code') + ' > 0\n',
            config.blockedFor,
            'Topology spread constraints refuse every node to pending pods.',
            'No node takes pending pods of ' + name + ', and its topology spread constraints are why ({{ $labels.code }}).',
          ),
          reportAlert(
            'KubeSpreadPodsPending',
            |||
              max by (%(workload)s) (%(pending)s) > 0
              and on (%(workload)s) %(finding)s
            ||| % {
              workload: workload,
              pending: report('constraint_pending_pods'),
              finding: blocked(workload),
            },
            config.pendingFor,
            'Pods are pending because of topology spread constraints.',
            'Pending pods of ' + name + ': {{ $value }}. Its constraints refuse the nodes that have room.',
          ),
          reportAlert(
            'KubeSpreadStaleSelector',
            findings(workload + ', code', 'code=~"SPR101|SPR102", severity=~"warning|error"') + ' > 0\n',
            config.staleSelectorFor,
            'Pods select a label value that has changed since they were created.',
            'Selectors of ' + name + ' require an old value of a label ({{ $labels.code }}), ' +
            'so pods are counted wrongly and new ones may be placed in the wrong domain.',
          ),
          reportAlert(
            'KubeSpreadAllInOneDomain',
            'count by (%s, namespace) (%s)\n' % [
              config.clusterLabel,
              findings(workload, 'code=~"%s", severity=~"warning|error"' % std.join('|', oneDomain)),
            ],
            config.oneDomainFor,
            'All pods of some workloads would be lost with one zone or node.',
            'Workloads of namespace {{ $labels.namespace }} with all pods in one domain, although another one would take some: ' +
            '{{ $value }}.',
            'kubectl spread check -n {{ $labels.namespace }} --select ' + std.join(',', oneDomain),
          ),
          reportAlert(
            'KubeSpreadError',
            findings(workload + ', code', 'code!~"SPR101|SPR102|SPR303|SPR308|SPR315", severity="error"') + ' > 0\n',
            config.errorFor,
            'A workload has an error in its topology spread constraints or affinity terms.',
            name + ' has an error ({{ $labels.code }}). `kubectl spread explain {{ $labels.code }}` says what it means.',
          ),
          alert(
            'KubeSpreadNotChecked',
            'max by (%s, reason) (%s) > 0\n' %
            [config.clusterLabel, report('skipped_objects', 'reason=~"forbidden|malformed|unreadable"')],
            config.notCheckedFor,
            'Some objects could not be checked.',
            'Objects or lists that were not checked ({{ $labels.reason }}): {{ $value }}. Their problems are not reported.',
          ),
          alert(
            'KubeSpreadReportOld',
            'time() - min by (%s) (%s) > %d\n' %
            [config.clusterLabel, report('read_timestamp_seconds'), config.reportAgeSeconds],
            config.reportOldFor,
            'The report of topology spread is old.',
            'The cluster was read {{ $value | humanizeDuration }} ago, so all other alerts of kubectl-spread may be wrong.',
          ),
        ],
      },
      {
        name: 'kube-spread-monitor',
        rules: [
          // A withdrawn report is not served, so its target is down. `up` changes while a monitor restarts again and again.
          alert(
            'KubeSpreadReportMissing',
            |||
              min by (%(cluster)s) (min_over_time(%(up)s[5m])) == 0
              or absent(%(up)s)
            ||| % { cluster: config.clusterLabel, up: monitor('up') },
            config.monitorFor,
            'A spread monitor serves no current report.',
            'It does not run, cannot be scraped, or has withdrawn its report because its state is too old. ' +
            'Problems with topology spread are not reported until it is back.',
          ),
          // One alert where the whole API server is away.
          alert(
            'KubeSpreadStateOld',
            'max by (%s) (%s) > %d\n' %
            [config.clusterLabel, monitor('kubectl_spread_state_age_seconds'), config.stateAgeSeconds],
            config.monitorFor,
            'The API server does not keep the spread monitor current.',
            'The monitor has heard nothing about some resource for {{ $value | humanizeDuration }}.',
          ),
          alert(
            'KubeSpreadListsFail',
            'sum by (%s, resource) (increase(%s[10m])) > 0\n' %
            [config.clusterLabel, monitor('kubectl_spread_list_total', 'result!="success"')],
            config.listsFailFor,
            'The spread monitor cannot list a resource.',
            'Lists of {{ $labels.resource }} have been failing for ' + config.listsFailFor + '. The log of the monitor has the reason.',
          ),
        ],
      },
    ],
  },
}
