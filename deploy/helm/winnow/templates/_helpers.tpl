{{- define "winnow.name" -}}
{{- if contains "winnow" .Release.Name -}}{{ .Release.Name }}{{- else -}}{{ .Release.Name }}-winnow{{- end -}}
{{- end -}}

{{- define "winnow.selector" -}}
app.kubernetes.io/name: winnow
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "winnow.labels" -}}
{{ include "winnow.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "winnow.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Host names that fronts or readers accept over HTTP: those of their Service, and the given ones.
     Empty, which allows any name, if there are keys and no given names. */}}
{{- define "winnow.hosts" -}}
{{- if or .hosts (not .root.Values.keys.secretName) -}}
{{- $apart := printf "%s.%s" .service .root.Release.Namespace -}}
{{- $own := list .service $apart (printf "%s.svc" $apart) (printf "%s.svc.cluster.local" $apart) -}}
{{- join "," (concat $own .hosts) -}}
{{- end -}}
{{- end -}}

{{/* Whether replicas of a shard follow a journal. */}}
{{- define "winnow.journaled" -}}
{{- if and .Values.feed.enabled (or .Values.nats.enabled .Values.feed.journal .Values.feed.journalSecretName) -}}true{{- end -}}
{{- end -}}

{{/* Seconds from SIGTERM to SIGKILL: lingering, 10 for calls in progress, and 2 to spare. */}}
{{- define "winnow.grace" -}}
{{- add .linger 10 2 -}}
{{- end -}}

{{- define "winnow.pod" -}}
serviceAccountName: {{ include "winnow.name" . }}
automountServiceAccountToken: false
# otherwise a Service called winnow-front would set WINNOW_FRONT_PORT, and a process does not start
# with an unknown setting
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "winnow.container" -}}
image: {{ include "winnow.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- with .Values.storage.secretName }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
{{- end -}}

{{/* Readiness, startup and liveness probes by gRPC health. */}}
{{- define "winnow.probes" -}}
readinessProbe:
  grpc: {port: {{ . }}}
  periodSeconds: 2
  timeoutSeconds: 2
# a content node replies at once, even while it loads; other processes reply only after loading
startupProbe:
  grpc: {port: {{ . }}, service: live}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 60
# a process is killed after a minute without a reply, so that a busy one is not killed
livenessProbe:
  grpc: {port: {{ . }}, service: live}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{/* Protocol of the gRPC ports, for proxies. */}}
{{- define "winnow.protocol" -}}
{{- ternary "https" "kubernetes.io/h2c" (ne .Values.tls.secretName "") -}}
{{- end -}}

{{/* TLS variables of a process, with the prefix of its settings. */}}
{{- define "winnow.tls" -}}
- {name: {{ .prefix }}_TLS_CERT, value: /tls/tls.crt}
- {name: {{ .prefix }}_TLS_KEY, value: /tls/tls.key}
{{- if .clients }}
- {name: {{ .prefix }}_TLS_CLIENT_CA, value: /tls/ca.crt}
{{- end }}
# Kubernetes' probes do not speak TLS
- {name: {{ .prefix }}_HEALTH_LISTEN, value: "0.0.0.0:9101"}
{{- end -}}

{{/* TLS variables of a process that calls content nodes. */}}
{{- define "winnow.peers" -}}
- {name: {{ .prefix }}_PEER_CA, value: /tls/ca.crt}
- {name: {{ .prefix }}_PEER_CERT, value: /tls/tls.crt}
- {name: {{ .prefix }}_PEER_KEY, value: /tls/tls.key}
- {name: {{ .prefix }}_PEER_NAME, value: {{ .name | quote }} }
{{- end -}}

{{/* URL of the assignment. Each release that serves the index has its own. */}}
{{- define "winnow.assignment" -}}
{{- $url := .Values.index.url | trimSuffix "/" -}}
{{- .Values.nodes.assignment | default (printf "%s/assignments/%s-%s.json" $url .Release.Namespace (include "winnow.name" .)) -}}
{{- end -}}

{{/* Number of content nodes before an upgrade; 0 if nodes.replicas was not set. */}}
{{- define "winnow.nodesBefore" -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-node" (include "winnow.name" .)) -}}
{{- if $set -}}{{ $set.spec.replicas }}{{- else -}}0{{- end -}}
{{- end -}}

{{- define "winnow.placing" -}}
{{- with .nodeSelector -}}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "winnow.env" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}
