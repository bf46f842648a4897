{{/* A StatefulSet of content nodes with its disruption budget and autoscaler.
     set: name of the StatefulSet; count: number of nodes; data: directory of the index.
     For replicas of one shard also shard: its number; directory: name of its directory.
     Without `shard` and `directory`, the nodes follow an assignment. */}}
{{- define "winnow.contentNodes" -}}
{{- $name := include "winnow.name" . -}}
{{- $url := .Values.index.url | trimSuffix "/" -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .set }}
  labels:
    {{- include "winnow.labels" $ | nindent 4 }}
    app.kubernetes.io/component: node
    {{- with .shard }}
    winnow/shard: {{ . | quote }}
    {{- end }}
spec:
  serviceName: {{ $name }}-nodes
  {{- if not .Values.node.autoscaling.enabled }}
  replicas: {{ .count }}
  {{- end }}
  podManagementPolicy: Parallel
  minReadySeconds: {{ .Values.node.minReadySeconds }}
  selector:
    matchLabels: &labels
      {{- include "winnow.selector" $ | nindent 6 }}
      app.kubernetes.io/component: node
      {{- with .shard }}
      winnow/shard: {{ . | quote }}
      {{- end }}
  template:
    metadata:
      labels: *labels
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "9100"
    spec:
      {{- include "winnow.pod" $ | nindent 6 }}
      terminationGracePeriodSeconds: {{ include "winnow.grace" (dict "linger" 2) }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: {matchLabels: *labels}
      {{- with include "winnow.placing" .Values.node }}{{ . | nindent 6 }}{{- end }}
      {{- if or .directory .Values.bundle.url }}
      initContainers:
        {{- with .Values.bundle.url }}
        - name: bundle
          {{- include "winnow.container" $ | nindent 10 }}
          args: [bundle, pull, {{ . | quote }}, /models/bundle]
          volumeMounts:
            - {name: models, mountPath: /models}
            - {name: tmp, mountPath: /tmp}
        {{- end }}
        {{- if .directory }}
        - name: shard
          {{- include "winnow.container" $ | nindent 10 }}
          args:
            - index
            - pull
            - {{ printf "%s/%s" $url .directory | quote }}
            - {{ .data }}/{{ .directory }}
            {{- with .Values.index.snapshot }}
            - --snapshot
            - {{ . | quote }}
            {{- end }}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: tmp, mountPath: /tmp}
        {{- end }}
      {{- end }}
      containers:
        - name: node
          {{- include "winnow.container" $ | nindent 10 }}
          args: [node]
          env:
            {{- if .directory }}
            - {name: WINNOW_NODE_SHARD, value: {{ .data }}/{{ .directory }} }
            {{- else }}
            - name: WINNOW_NODE_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - {name: WINNOW_NODE_ADDRESS, value: "$(WINNOW_NODE_NAME).{{ $name }}-nodes:9000"}
            - {name: WINNOW_NODE_DATA, value: {{ .data }} }
            - {name: WINNOW_NODE_ASSIGNMENT, value: {{ include "winnow.assignment" $ | quote }} }
            - {name: WINNOW_NODE_PULL, value: {{ $url | quote }} }
            {{- end }}
            - {name: WINNOW_NODE_LISTEN, value: "0.0.0.0:9000"}
            - {name: WINNOW_NODE_METRICS_LISTEN, value: "0.0.0.0:9100"}
            - {name: WINNOW_NODE_EF, value: {{ .Values.node.ef | quote }} }
            {{- if .Values.bundle.url }}
            - {name: WINNOW_NODE_BUNDLE, value: /models/bundle}
            {{- end }}
            {{- if .Values.feed.enabled }}
            - {name: WINNOW_NODE_FEED, value: "true"}
            {{- with .Values.feed.archive.url }}
            - {name: WINNOW_NODE_ARCHIVE_URL, value: {{ . | quote }} }
            - {name: WINNOW_NODE_ARCHIVE_AFTER, value: {{ $.Values.feed.archive.after | int64 | quote }} }
            - {name: WINNOW_NODE_ARCHIVE_RESTORES, value: {{ $.Values.feed.archive.restores | int64 | quote }} }
            {{- end }}
            {{- if .Values.feed.journalSecretName }}
            - name: WINNOW_NODE_JOURNAL
              valueFrom: {secretKeyRef: {name: {{ .Values.feed.journalSecretName }}, key: url}}
            {{- else if include "winnow.journaled" $ }}
            - {name: WINNOW_NODE_JOURNAL, value: {{ .Values.feed.journal | default (printf "nats://%s-nats:4222" $.Release.Name) | quote }} }
            {{- end }}
            {{- end }}
            {{- if .Values.tls.secretName }}
            {{- include "winnow.tls" (dict "prefix" "WINNOW_NODE" "clients" true) | nindent 12 }}
            {{- if not .directory }}
            {{- include "winnow.peers" (dict "prefix" "WINNOW_NODE" "name" .Values.tls.name) | nindent 12 }}
            {{- end }}
            {{- end }}
            {{- with include "winnow.env" .Values.node.env }}{{ . | nindent 12 }}{{- end }}
          ports:
            - {name: grpc, containerPort: 9000}
            - {name: metrics, containerPort: 9100}
            {{- if .Values.tls.secretName }}
            - {name: health, containerPort: 9101}
            {{- end }}
          {{- include "winnow.probes" (ternary 9101 9000 (ne .Values.tls.secretName "")) | nindent 10 }}
          resources: {{- toYaml .Values.node.resources | nindent 12 }}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: tmp, mountPath: /tmp}
            {{- if .Values.bundle.url }}
            - {name: models, mountPath: /models, readOnly: true}
            {{- end }}
            {{- if .Values.tls.secretName }}
            - {name: tls, mountPath: /tls, readOnly: true}
            {{- end }}
      volumes:
        - {name: tmp, emptyDir: {}}
        {{- with .Values.tls.secretName }}
        - {name: tls, secret: {secretName: {{ . }}, defaultMode: 0440}}
        {{- end }}
        {{- if .Values.bundle.url }}
        - {name: models, emptyDir: {}}
        {{- end }}
        {{- if not .Values.node.persistence.enabled }}
        - {name: data, emptyDir: {sizeLimit: {{ .Values.node.persistence.size }}} }
        {{- end }}
  {{- if .Values.node.persistence.enabled }}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .Values.node.persistence.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources: {requests: {storage: {{ .Values.node.persistence.size }}} }
  {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .set }}
  labels: {{- include "winnow.labels" $ | nindent 4 }}
spec:
  maxUnavailable: 1
  # a pod that does not serve may be evicted at once
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "winnow.selector" $ | nindent 6 }}
      app.kubernetes.io/component: node
      {{- with .shard }}
      winnow/shard: {{ . | quote }}
      {{- end }}
{{- if .Values.node.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .set }}
  labels: {{- include "winnow.labels" $ | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: {{ .set }} }
  minReplicas: {{ .Values.node.replicas }}
  maxReplicas: {{ .Values.node.autoscaling.maxReplicas }}
  metrics:
    - type: Pods
      pods:
        metric: {name: {{ .Values.node.autoscaling.metric }} }
        target: {type: AverageValue, averageValue: {{ .Values.node.autoscaling.target | quote }} }
  # a new replica first pulls its shard, so it must not be removed soon
  behavior:
    scaleDown: {stabilizationWindowSeconds: 900}
{{- end }}
{{- end -}}
