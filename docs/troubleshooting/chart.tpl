apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
