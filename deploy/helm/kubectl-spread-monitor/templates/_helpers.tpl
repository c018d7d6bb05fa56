{{- define "monitor.name" -}}
{{- .Values.nameOverride | default "kubectl-spread" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "monitor.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of the objects of one watched namespace: (list CONTEXT NAMESPACE). A long one ends with a hash. */}}
{{- define "monitor.named" -}}
{{- $fullname := include "monitor.fullname" (index . 0) -}}
{{- $name := ternary $fullname (printf "%s-%s" $fullname (index . 1)) (empty (index . 1)) -}}
{{- if gt (len $name) 63 -}}
{{- printf "%s-%s" ($name | trunc 54 | trimSuffix "-") ($name | sha256sum | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end -}}

{{- define "monitor.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "monitor.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "monitor.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select all pods of the release. */}}
{{- define "monitor.releaseLabels" -}}
app.kubernetes.io/name: {{ include "monitor.name" . | quote }}
app.kubernetes.io/component: monitor
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The labels that select the pods of one watched namespace: (list CONTEXT NAMESPACE). */}}
{{- define "monitor.selectorLabels" -}}
{{ include "monitor.releaseLabels" (index . 0) }}
{{- with index . 1 }}
kubectl-spread/namespace: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The labels of all objects. */}}
{{- define "monitor.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{ include "monitor.releaseLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- with .Values.customLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The name of an image: (list VALUES TAG), with the tag that it has if its values name none. */}}
{{- define "monitor.image" -}}
{{- $tag := index . 1 -}}
{{- with index . 0 -}}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}:{{ .tag | default $tag }}
{{- with .sha }}@sha256:{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* "true" if the permissions in namespaces are bound in the whole cluster. */}}
{{- define "monitor.everywhere" -}}
{{- if kindIs "invalid" .Values.rbac.useClusterRole -}}
{{- empty .Values.namespaces -}}
{{- else -}}
{{- .Values.rbac.useClusterRole -}}
{{- end -}}
{{- end -}}

{{/* What is read in namespaces. */}}
{{- define "monitor.namespacedRules" -}}
- apiGroups: [""]
  resources: [persistentvolumeclaims, pods, replicationcontrollers{{ if .Values.defaultConstraints.enabled }}, services{{ end }}]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [daemonsets, deployments, replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: [list, watch]
# Optional: without it, fixes say that disruption budgets were not read.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
{{- end -}}

{{/* The name of the ConfigMap with the configuration of kube-scheduler, if it is needed. */}}
{{- define "monitor.schedulerConfig" -}}
{{- with .Values.defaultConstraints -}}
{{- if and .configMapName (not .enabled) }}
{{- fail "defaultConstraints.configMapName has no effect without defaultConstraints.enabled=true" }}
{{- end }}
{{- .configMapName | default "" -}}
{{- end -}}
{{- end -}}

{{/* What is read of the cluster. */}}
{{- define "monitor.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes, persistentvolumes]
  verbs: [list, watch]
# Its UID identifies the cluster.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
# The API server's own metrics name its feature gates.
- nonResourceURLs: [/metrics]
  verbs: [get]
{{- end -}}

{{/* One endpoint of the ServiceMonitor: (list VALUES DEFAULTS). */}}
{{- define "monitor.endpoint" -}}
{{- $defaults := index . 1 -}}
{{- with index . 0 -}}
honorLabels: {{ .honorLabels }}
{{- with .interval }}
interval: {{ . | quote }}
{{- end }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . | quote }}
{{- end }}
{{- with .scheme | default $defaults.scheme }}
scheme: {{ . | quote }}
{{- end }}
{{- with .tlsConfig | default $defaults.tlsConfig }}
tlsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .bearerTokenFile | default $defaults.bearerTokenFile }}
bearerTokenFile: {{ . | quote }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .relabelings }}
relabelings: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}
{{- end -}}
