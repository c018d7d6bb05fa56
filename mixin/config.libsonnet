{
  _config+:: {
    // Matchers of the kube_spread_* series; '' for all of them.
    spreadSelector: '',

    // Matchers of the series that belong to the monitor's own targets.
    monitorSelector: 'job="kubectl-spread"',

    // The label that tells clusters apart.
    clusterLabel: 'cluster',

    // How long a problem lasts before its alert fires. A rollout should end within this time.
    skewFor: '30m',
    blockedFor: '15m',
    pendingFor: '15m',
    staleSelectorFor: '15m',
    oneDomainFor: '30m',
    errorFor: '15m',
    notCheckedFor: '15m',
    monitorFor: '10m',
    listsFailFor: '15m',
    reportOldFor: '5m',

    // How long an alert about a workload still fires while the monitor restarts.
    keepFiringFor: '10m',

    // The age of a report from which it is old. A cron job that writes the report has to run more often.
    reportAgeSeconds: 3600,

    // The age of the monitor's state from which it is old.
    stateAgeSeconds: 180,

    runbookURL: 'https://github.com/kubectl-spread/kubectl-spread/blob/v0.1.0/docs/alerts.md#',

    dashboardUid: 'kubectl-spread',
    dashboardTitle: 'Kubernetes / Topology spread',
    dashboardTags: ['kubectl-spread'],
  },
}
