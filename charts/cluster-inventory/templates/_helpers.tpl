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
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
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

{{/* The spec of the AddOnDeploymentConfig of all clusters, empty if no value asks for
one. */}}
{{- define "cluster-inventory.agentConfig" -}}
{{- $config := .Values.agent.config | default dict -}}
{{- $proxy := $config.proxy | default dict -}}
{{- if or $config.nodeSelector $config.tolerations }}
nodePlacement:
  {{- with $config.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $config.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- with $config.resources }}
resourceRequirements:
- containerID: deployments:cluster-inventory-agent:agent
  resources:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- with $config.registries }}
registries:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or $proxy.http $proxy.https $proxy.noProxy $proxy.caBundle }}
proxyConfig:
  {{- with $proxy.http }}
  httpProxy: {{ . | quote }}
  {{- end }}
  {{- with $proxy.https }}
  httpsProxy: {{ . | quote }}
  {{- end }}
  {{- with $proxy.noProxy }}
  noProxy: {{ . | quote }}
  {{- end }}
  {{- with $proxy.caBundle }}
  caBundle: {{ . | b64enc }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A reference to an AddOnDeploymentConfig, in the list of an addon. */}}
{{- define "cluster-inventory.configReference" -}}
- group: addon.open-cluster-management.io
  resource: addondeploymentconfigs
  namespace: {{ .namespace }}
  name: {{ .name }}
{{- end }}
