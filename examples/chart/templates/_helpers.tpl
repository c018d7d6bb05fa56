{{- define "shop.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "shop.constraints" -}}
{{- range .Values.topologySpreadConstraints }}
- {{ toYaml . | nindent 2 | trim }}
  labelSelector:
    matchLabels:
      {{- include "shop.labels" $ | nindent 6 }}
{{- end }}
{{- end }}
