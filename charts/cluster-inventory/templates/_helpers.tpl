{{- define "cluster-inventory.labels" -}}
app.kubernetes.io/name: cluster-inventory
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "cluster-inventory.managerSelector" -}}
app.kubernetes.io/name: cluster-inventory
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end }}

{{- define "cluster-inventory.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "cluster-inventory.placementNamespace" -}}
{{ .Values.installStrategy.placement.namespace | default .Release.Namespace }}
{{- end }}

{{- define "cluster-inventory.podSecurity" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "cluster-inventory.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Whether the manager must read cluster-proxy, but its namespace certainly does
not exist, so that Helm cannot create a Role in it. Where Helm cannot look at the hub,
as in "helm template", the namespace is assumed to exist. */}}
{{- define "cluster-inventory.proxyNamespaceMissing" -}}
{{- $proxy := .Values.access.clusterProxy -}}
{{- and $proxy.enabled (not (empty (lookup "v1" "Namespace" "" "kube-system"))) (empty (lookup "v1" "Namespace" "" $proxy.namespace)) -}}
{{- end }}
