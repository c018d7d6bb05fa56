{
  local config = $._config,
  local names = {
    cluster: config.clusterLabel,
    spread: if config.spreadSelector == '' then '' else ', ' + config.spreadSelector,
    monitor: if config.monitorSelector == '' then '' else ', ' + config.monitorSelector,
  },

  // Write the configured labels and matchers into every text of the generated dashboard.
  local configured(value) =
    if std.isString(value) then value % names
    else if std.isArray(value) then std.map(configured, value)
    else if std.isObject(value) then { [configured(key)]: configured(value[key]) for key in std.objectFields(value) }
    else value,

  grafanaDashboards+:: {
    'kubectl-spread.json': configured(import 'dashboard.json') + {
      uid: config.dashboardUid,
      title: config.dashboardTitle,
      tags: config.dashboardTags,
    },
  },
}
