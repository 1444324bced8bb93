{{- define "cluster-inventory.labels" -}}
{{ include "cluster-inventory.ownLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Other labels of an object, or of a pod, with those of everything. */}}
{{- define "cluster-inventory.moreLabels" -}}
{{- with merge (dict) (.labels | default dict) (.root.Values.commonLabels | default dict) }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- define "cluster-inventory.ownLabels" -}}
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

{{/* A repository, with the registry of all images in place of its own: a first part with a dot or
a colon, or localhost. */}}
{{- define "cluster-inventory.inRegistry" -}}
{{- $registry := trimSuffix "/" (dig "imageRegistry" "" (.root.Values.global | default dict) | default "") -}}
{{- if $registry -}}
{{ $registry }}/{{ regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" .repository "" }}
{{- else -}}
{{ .repository }}
{{- end -}}
{{- end }}

{{- define "cluster-inventory.repository" -}}
{{ include "cluster-inventory.inRegistry" (dict "root" . "repository" .Values.image.repository) }}
{{- end }}

{{/* The agent's repository: the manager's, unless the values name another one. */}}
{{- define "cluster-inventory.agentRepository" -}}
{{- $own := .Values.agent.image | default dict -}}
{{ include "cluster-inventory.inRegistry" (dict "root" . "repository" ($own.repository | default .Values.image.repository)) }}
{{- end }}

{{- define "cluster-inventory.image" -}}
{{- if .Values.image.digest -}}
{{ include "cluster-inventory.repository" . }}@{{ .Values.image.digest }}
{{- else -}}
{{ include "cluster-inventory.repository" . }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The agent's image: the manager's, unless the values name another one. */}}
{{- define "cluster-inventory.agentImage" -}}
{{- $own := .Values.agent.image | default dict -}}
{{- $repository := include "cluster-inventory.agentRepository" . -}}
{{- if $own.digest -}}
{{ $repository }}@{{ $own.digest }}
{{- else if $own.tag -}}
{{ $repository }}:{{ $own.tag }}
{{- else if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* From where configurations may have an agent's image pulled, as JSON: repositories,
registries and parts of registries. */}}
{{- define "cluster-inventory.allowedRegistries" -}}
{{- $all := list (include "cluster-inventory.repository" .) (include "cluster-inventory.agentRepository" .) -}}
{{- $all = concat $all (.Values.agent.allowedRegistries | default list) -}}
{{- range (.Values.agent.config | default dict).registries | default list -}}
{{- $all = append $all (trimSuffix "/" (.mirror | default "")) -}}
{{- end -}}
{{ without ($all | uniq) "" | toJson }}
{{- end }}

{{/* How many bytes the Go programs may use before they collect garbage more often: nine tenths of
a memory limit, which is a quantity. Empty if there is no limit. */}}
{{- define "cluster-inventory.goMemoryLimit" -}}
{{- $limit := dig "limits" "memory" "" (. | default dict) | default "" -}}
{{- if $limit -}}
{{- $text := ternary (printf "%.0f" (float64 $limit)) (toString $limit) (or (kindIs "float64" $limit) (kindIs "int64" $limit)) -}}
{{- $units := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- if not (and (regexMatch "^[0-9]+(\\.[0-9]+)?[A-Za-z]*$" $text) (hasKey $units $unit)) -}}
{{- fail (printf "resources.limits.memory: %s is no amount of memory that this chart can read: write a number and a unit, for example 512Mi" $text) -}}
{{- end -}}
{{ mulf (trimSuffix $unit $text | float64) (get $units $unit) 0.9 | floor | int64 }}
{{- end -}}
{{- end }}

{{- define "cluster-inventory.placementNamespace" -}}
{{ .Values.installStrategy.placement.namespace | default .Release.Namespace }}
{{- end }}

{{/* The groups into which a decision strategy divides clusters, as JSON, with what the API and its
clients fill in. */}}
{{- define "cluster-inventory.groups" -}}
{{- $strategy := dig "groupStrategy" (dict) (. | default dict) | default dict -}}
{{- $groups := list -}}
{{- range $strategy.decisionGroups | default list -}}
{{- $selector := .groupClusterSelector | default dict -}}
{{- $groups = append $groups (dict "groupName" (.groupName | default "") "groupClusterSelector" (dict
  "labelSelector" ($selector.labelSelector | default dict) "claimSelector" ($selector.claimSelector | default dict))) -}}
{{- end -}}
{{ dict "clustersPerDecisionGroup" ($strategy.clustersPerDecisionGroup | default "100%" | toString)
  "decisionGroups" $groups | toJson }}
{{- end }}

{{/* Whether OCM has written all decisions of a Placement, which has a slice for each 100
clusters. */}}
{{- define "cluster-inventory.hasDecided" -}}
{{- $selected := dig "status" "numberOfSelectedClusters" 0 . | int -}}
{{- $decided := 0 -}}
{{- if $selected -}}
{{- range (lookup "cluster.open-cluster-management.io/v1beta1" "PlacementDecision" .metadata.namespace "").items -}}
{{- if eq (dig "labels" "cluster.open-cluster-management.io/placement" "" .metadata) $.metadata.name -}}
{{- $decided = add $decided (dig "status" "decisions" (list) . | len) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ and (gt $selected 0) (eq (int $decided) $selected) }}
{{- end }}

{{/* No user, group or fsGroup is named unless the values do: on OpenShift, the namespace has
them. */}}
{{- define "cluster-inventory.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.podSecurityContext }}
{{ toYaml . }}
{{- end }}
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
as in "helm template", the namespace is assumed to exist. With gitOps, Helm does not look, and the
values say it. */}}
{{- define "cluster-inventory.proxyNamespaceMissing" -}}
{{- $proxy := .Values.access.clusterProxy -}}
{{- $exists := ternary (toString $proxy.namespaceExists) "auto" (hasKey $proxy "namespaceExists") -}}
{{- if not $proxy.enabled -}}
false
{{- else if ne $exists "auto" -}}
{{- eq $exists "false" -}}
{{- else if .Values.gitOps -}}
{{- fail (printf "gitOps is set, so the chart does not look whether namespace %s exists, in which the manager needs a Role: set access.clusterProxy.namespaceExists to true or false, or access.clusterProxy.enabled to false" $proxy.namespace) -}}
{{- else -}}
{{- and (not (empty (lookup "v1" "Namespace" "" "kube-system"))) (empty (lookup "v1" "Namespace" "" $proxy.namespace)) -}}
{{- end -}}
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

{{/* The spec of the AgentRevision: everything of the values that changes what runs on the
spokes, apart from the AddOnDeploymentConfig. The manifests are those of this chart's
manager. */}}
{{- define "cluster-inventory.revisionSpec" -}}
manifests: "2"
image: {{ include "cluster-inventory.agentImage" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.agent.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- {{ .name | quote }}
{{- end }}
{{- end }}
installNamespace: {{ .Values.agent.installNamespace | quote }}
claimLimit: {{ .Values.agent.claimLimit | int }}
logLevel: {{ .Values.agent.logLevel | int }}
{{- if eq (.Values.agent.logFormat | default "text") "json" }}
logFormat: json
{{- end }}
{{- with .Values.agent.reservedProperties }}
reservedProperties:
{{- range . }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- with .Values.agent.podSecurityContext }}
podSecurityContext:
{{- range $field, $id := . }}
  {{ $field }}: {{ $id | int64 }}
{{- end }}
{{- end }}
{{- $policy := .Values.agent.networkPolicy | default dict }}
{{- if $policy.enabled }}
networkPolicy:
  {{- with $policy.apiServerCIDRs }}
  apiServerCIDRs:
  {{- range . }}
  - {{ . | quote }}
  {{- end }}
  {{- end }}
  apiServerPorts:
  {{- range $policy.apiServerPorts | default (list 443 6443) }}
  - {{ . | int }}
  {{- end }}
  dnsPorts:
  {{- range $policy.dnsPorts | default (list 53) }}
  - {{ . | int }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Its name, which no other content has. */}}
{{- define "cluster-inventory.revisionName" -}}
cluster-inventory-{{ include "cluster-inventory.revisionSpec" . | sha256sum | trunc 12 }}
{{- end }}

{{/* The name of the one that agents run. */}}
{{- define "cluster-inventory.agentRevision" -}}
{{ .Values.agent.revision | default (include "cluster-inventory.revisionName" .) }}
{{- end }}

{{/* The annotations of an AgentRevision, which stays while clusters may have it. Argo CD
would remove what is not rendered any more. */}}
{{- define "cluster-inventory.revisionAnnotations" -}}
helm.sh/resource-policy: keep
{{- if .Values.gitOps }}
argocd.argoproj.io/sync-options: Prune=false
argocd.argoproj.io/compare-options: IgnoreExtraneous
{{- end }}
{{- end }}

{{/* The right to have agents run the image of an AgentRevision, given by the AgentRevision's name
and the image. A policy has no other way to look one of several objects up than to ask what the
requester may do: it asks for the whole image or, if that is from a mirror, for its tag and digest
with what precedes them, which is no image. Nothing serves agentimages. The right is kept as the
AgentRevision is. */}}
{{- define "cluster-inventory.revisionRights" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "cluster-inventory.labels" .root | nindent 4 }}
    inventory.open-cluster-management.io/agent-image: "true"
  annotations:
    {{- include "cluster-inventory.revisionAnnotations" .root | nindent 4 }}
rules:
- apiGroups: [inventory.open-cluster-management.io]
  resources: [agentimages]
  resourceNames:
  {{- range without (list .image (splitList "/" .image | last | regexFind "[:@].*$")) "" }}
  - {{ . | quote }}
  {{- end }}
  verbs: [deploy]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "cluster-inventory.labels" .root | nindent 4 }}
    inventory.open-cluster-management.io/agent-image: "true"
  annotations:
    {{- include "cluster-inventory.revisionAnnotations" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: cluster-inventory-manager
  namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/* Whether an object belongs to this release. */}}
{{- define "cluster-inventory.inRelease" -}}
{{- $annotations := .object.metadata.annotations | default dict -}}
{{- and (eq (get $annotations "meta.helm.sh/release-name") .root.Release.Name)
  (eq (get $annotations "meta.helm.sh/release-namespace") .root.Release.Namespace)
  (not .object.metadata.deletionTimestamp) -}}
{{- end }}

{{/* Whether Helm deletes an object of this chart that is no longer rendered. */}}
{{- define "cluster-inventory.isPruned" -}}
{{- and (eq (include "cluster-inventory.inRelease" .) "true")
  (eq (dig "labels" "app.kubernetes.io/name" "" .object.metadata) "cluster-inventory")
  (ne (dig "annotations" "helm.sh/resource-policy" "" .object.metadata) "keep") -}}
{{- end }}

{{/* The manager's flags that the chart sets, or would with other values, and these values. */}}
{{- define "cluster-inventory.ownFlags" -}}
allowed-registry: agent.allowedRegistries
hosted-agents: agent.hosted.enabled
cleanup-timeout: cleanupTimeout
cleanup-job-timeout: cleanupJobTimeout
workers: workers.total
workers-per-namespace: workers.perNamespace
upstream-gates: upstreamGates
upstream-registration-clusterrole: upstreamRegistrationClusterRole
exclusive-sets-only: profiles.exclusiveSetsOnly
label-allow: profiles.labelAllow
property-label: profiles.propertyLabels
max-properties: profiles.maxProperties
max-property-bytes: profiles.maxPropertyBytes
profile-write-interval: profiles.writeInterval
decisions: decisions.enabled
credentials-mode: credentials.mode
credentials-require-target: credentials.requireTarget
credentials-upstream-syncer: credentials.upstreamSyncer
access-cluster-proxy: access.clusterProxy.enabled
access-cluster-proxy-namespace: access.clusterProxy.namespace
access-cluster-proxy-configuration: access.clusterProxy.configuration
access-cluster-proxy-url: access.clusterProxy.url
access-cluster-proxy-ca-file: access.clusterProxy.caBundle
leader-elect: ""
health-probe-bind-address: ""
metrics-bind-address: ""
metrics-secure: metrics.secure
metrics-cert-dir: metrics.certificateSecret
metrics-by-namespace: metrics.byNamespace
pprof-bind-address: pprofBindAddress
log-format: logFormat
v: logLevel
{{- end }}

{{/* OCM's rollout strategy. */}}
{{- define "cluster-inventory.rolloutStrategy" -}}
{{- $defaults := dict "type" "All" "maxFailures" 0 "minSuccessTime" "0s" "progressDeadline" "10m" -}}
{{- $rollout := mergeOverwrite $defaults (.Values.installStrategy.rollout | default dict) -}}
type: {{ $rollout.type }}
{{- if eq $rollout.type "All" }}
all:
  progressDeadline: {{ $rollout.progressDeadline | quote }}
{{- else }}
{{ ternary "progressive" "progressivePerGroup" (eq $rollout.type "Progressive") }}:
  {{- if eq $rollout.type "Progressive" }}
  {{- with $rollout.maxConcurrency }}
  maxConcurrency: {{ . }}
  {{- end }}
  {{- end }}
  maxFailures: {{ $rollout.maxFailures }}
  minSuccessTime: {{ $rollout.minSuccessTime | quote }}
  progressDeadline: {{ $rollout.progressDeadline | quote }}
  {{- with $rollout.mandatoryDecisionGroups }}
  mandatoryDecisionGroups:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A validation that several policies have: an object gets no new finalizers, or no new owners
(field), and the request for one gets a message. */}}
{{- define "cluster-inventory.nothingNew" -}}
- expression: >-
    request.operation == 'DELETE' || size(object.metadata.?{{ .field }}.orValue([])) == 0 ||
    request.operation == 'UPDATE' && (object.metadata.?{{ .field }} == oldObject.metadata.?{{ .field }} ||
    size(object.metadata.{{ .field }}) <= 100 &&
    object.metadata.{{ .field }}.all(one, one in oldObject.metadata.?{{ .field }}.orValue([])))
  reason: Forbidden
  message: {{ .message }}
{{- end }}

{{/* What the manager writes is not held by it, and is not deleted with something else. */}}
{{- define "cluster-inventory.noNewFinalizers" -}}
{{- include "cluster-inventory.nothingNew" (dict "field" "finalizers" "message"
  "the manager of the cluster inventory may add no finalizers") }}
{{- end }}

{{- define "cluster-inventory.noNewOwners" -}}
{{- include "cluster-inventory.nothingNew" (dict "field" "ownerReferences" "message"
  "the manager of the cluster inventory may add no owners") }}
{{- end }}

{{/* Turns each text of hexadecimal digits into a value of this type, encoded in DER. It has 16 to
4095 bytes. */}}
{{- define "cluster-inventory.der" -}}
.map(v, '{{ . }}' + (size(v) < 256 ? '' : size(v) < 512 ? '81' : '820') + '%x'.format([size(v) / 2]) + v)
{{- end }}

{{/* Turns each four digits of base64 into a number of 24 bits. */}}
{{- define "cluster-inventory.base64" -}}
.map(four, four.split('')).map(d, variables.digits[d[0]] * 262144 + variables.digits[d[1]] * 4096 +
variables.digits[d[2]] * 64 + variables.digits[d[3]])
{{- end }}
