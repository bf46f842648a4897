{{/* A Job that spreads the shards over the first nodes.replicas nodes, node.replicas copies of each,
     and moves all shards away from other nodes.
     creates: whether the Job creates the assignment if there is none. */}}
{{- define "winnow.shardsJob" -}}
{{- $name := include "winnow.name" . -}}
{{- $assignment := include "winnow.assignment" . -}}
{{- $replicas := int .Values.node.replicas -}}
# if the Job gives up, the nodes continue to move shards
activeDeadlineSeconds: {{ .Values.nodes.moveSeconds }}
backoffLimit: 100
template:
  metadata:
    labels:
      {{- include "winnow.selector" . | nindent 6 }}
      app.kubernetes.io/component: shards
  spec:
    {{- include "winnow.pod" . | nindent 4 }}
    restartPolicy: OnFailure
    {{- if .creates }}
    initContainers:
      - name: init
        {{- include "winnow.container" . | nindent 8 }}
        args:
          - shards
          - init
          - --assignment
          - {{ $assignment | quote }}
          - --snapshot
          - {{ .Values.index.url | trimSuffix "/" | quote }}
          - --replicas
          - {{ $replicas | quote }}
          {{- range $number := until (int .Values.nodes.replicas) }}
          - --node
          - {{ printf "%s-node-%d=%s-node-%d.%s-nodes:9000" $name $number $name $number $name }}
          {{- end }}
        resources: {{- toYaml .Values.nodes.jobResources | nindent 10 }}
        volumeMounts:
          - {name: tmp, mountPath: /tmp}
    {{- end }}
    containers:
      - name: spread
        {{- include "winnow.container" . | nindent 8 }}
        args:
          - shards
          - spread
          - --wait
          - --assignment
          - {{ $assignment | quote }}
          - --address
          - {{ $name }}:8080
          - --replicas
          - {{ $replicas | quote }}
          {{- range $number := until (int .Values.nodes.replicas) }}
          - --node
          - {{ $name }}-node-{{ $number }}
          {{- end }}
          {{- if .Values.tls.secretName }}
          - --ca=/tls/ca.crt
          {{- if .Values.tls.clients }}
          - --cert=/tls/tls.crt
          - --key=/tls/tls.key
          {{- end }}
          {{- end }}
          {{- if .Values.keys.secretName }}
          - --token-file=/admin/token
          {{- end }}
        resources: {{- toYaml .Values.nodes.jobResources | nindent 10 }}
        volumeMounts:
          - {name: tmp, mountPath: /tmp}
          {{- if .Values.tls.secretName }}
          - {name: tls, mountPath: /tls, readOnly: true}
          {{- end }}
          {{- if .Values.keys.secretName }}
          - {name: admin, mountPath: /admin, readOnly: true}
          {{- end }}
    volumes:
      - {name: tmp, emptyDir: {}}
      {{- with .Values.tls.secretName }}
      - {name: tls, secret: {secretName: {{ . }}, defaultMode: 0440}}
      {{- end }}
      {{- if .Values.keys.secretName }}
      - {name: admin, secret: {secretName: {{ .Values.keys.adminSecretName }}, defaultMode: 0440}}
      {{- end }}
{{- end -}}
