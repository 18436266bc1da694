{{/* The one container of a pod, without its name. */}}
{{- define "ringer.container" -}}
{{- $media := .Values.media -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq $media.network "ports" }}
# Numbers of node ports stand in what is sent to the other side: each engine listens on its own.
command: ["/bin/bash", "-ec"]
args:
  - |
    sip=$(({{ $media.nodePorts.sip }} + ENGINE)) first=$(({{ $media.nodePorts.first }} + ENGINE * {{ $media.nodePorts.perEngine }}))
    export RINGER_SIP_LISTEN="0.0.0.0:$sip{{ if .Values.sip.tcp }},tcp:0.0.0.0:$sip{{ end }}"
    export RINGER_SIP_RTP_PORTS="$first-$((first + {{ $media.nodePorts.perEngine }} - 1))"
    exec /usr/bin/ringer up --config /etc/ringer/ringer.toml --no-page-link
{{- else }}
args: [up, --config, /etc/ringer/ringer.toml, --no-page-link]
{{- end }}
env:
  - name: POD_NAME
    valueFrom: { fieldRef: { fieldPath: metadata.name } }
  - name: POD_IP
    valueFrom: { fieldRef: { fieldPath: status.podIP } }
  - name: RINGER_SERVER_NAME
    value: $(POD_NAME)
  - name: RINGER_SERVER_LISTEN
    value: 0.0.0.0:8080
  - name: RINGER_SERVER_OWN_URL
    value: http://$(POD_IP):8080
  {{- if eq $media.network "ports" }}
  - name: ENGINE
    valueFrom: { fieldRef: { fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']" } }
  - name: RINGER_SIP_ADVERTISE
    valueFrom: { fieldRef: { fieldPath: status.hostIP } }
  {{- else }}
  - name: RINGER_SIP_LISTEN
    value: 0.0.0.0:{{ .Values.sip.port }}{{ if .Values.sip.tcp }},tcp:0.0.0.0:{{ .Values.sip.port }}{{ end }}
  - name: RINGER_SIP_RTP_PORTS
    value: {{ printf "%d-%d" (int $media.rtpPorts.first) (int $media.rtpPorts.last) }}
  - name: RINGER_SIP_ADVERTISE
    valueFrom: { fieldRef: { fieldPath: {{ if eq $media.network "host" }}status.hostIP{{ else }}status.podIP{{ end }} } }
  {{- end }}
  - name: RINGER_SERVER_DRAIN_TIMEOUT_S
    value: {{ .Values.drain.seconds | quote }}
  - name: RINGER_LOG_FORMAT
    value: json
  {{- with .Values.secrets }}
  {{- if .database.name }}
  {{- include "ringer.secret" (dict "variable" "RINGER_DATABASE_URL" "name" .database.name "key" .database.key) | nindent 2 }}
  {{- end }}
  {{- if .sealing.name }}
  {{- include "ringer.secret" (dict "variable" "RINGER_SECRET_KEY" "name" .sealing.name "key" .sealing.key) | nindent 2 }}
  {{- end }}
  {{- if .bootstrap.name }}
  {{- include "ringer.secret" (dict "variable" "RINGER_BOOTSTRAP_KEY" "name" .bootstrap.name "key" .bootstrap.key) | nindent 2 }}
  {{- end }}
  {{- if .internal.name }}
  {{- include "ringer.secret" (dict "variable" "RINGER_SECURITY_INTERNAL_TOKEN" "name" .internal.name "key" .internal.key) | nindent 2 }}
  {{- end }}
  {{- if .storage.name }}
  {{- include "ringer.secret" (dict "variable" "RINGER_STORAGE_ACCESS_KEY_ID" "name" .storage.name "key" .storage.accessKeyId) | nindent 2 }}
  {{- include "ringer.secret" (dict "variable" "RINGER_STORAGE_SECRET_ACCESS_KEY" "name" .storage.name "key" .storage.secretAccessKey) | nindent 2 }}
  {{- end }}
  {{- if .bus.name }}
  {{- include "ringer.secret" (dict "variable" "RINGER_BUS_USER" "name" .bus.name "key" .bus.user) | nindent 2 }}
  {{- include "ringer.secret" (dict "variable" "RINGER_BUS_PASSWORD" "name" .bus.name "key" .bus.password) | nindent 2 }}
  {{- end }}
  {{- if .busCredentials.name }}
  - name: RINGER_BUS_CREDENTIALS
    value: /etc/ringer-bus/credentials
  {{- end }}
  {{- if .environment }}
envFrom:
    {{- range .environment }}
  - secretRef: { name: {{ . }} }
    {{- end }}
  {{- end }}
  {{- end }}
ports:
  - { name: http, containerPort: 8080, protocol: TCP }
  {{- if ne $media.network "ports" }}
  - { name: sip, containerPort: {{ .Values.sip.port }}, protocol: UDP }
  {{- if .Values.sip.tcp }}
  - { name: sip-tcp, containerPort: {{ .Values.sip.port }}, protocol: TCP }
  {{- end }}
  {{- end }}
{{- range $kind := list "startup" "liveness" "readiness" }}
{{ $kind }}Probe:
  httpGet: { path: {{ (index $.Values.probes $kind).path }}, port: http }
  periodSeconds: {{ (index $.Values.probes $kind).periodSeconds }}
  failureThreshold: {{ (index $.Values.probes $kind).failureThreshold }}
  timeoutSeconds: 5
{{- end }}
lifecycle:
  preStop:
    exec:
      # New work goes to the other engines within 5 s; the signal that follows waits for the calls that run.
      command: ["/bin/bash", "-c", "ringer engines drain \"$RINGER_SERVER_NAME\" --config /etc/ringer/ringer.toml; sleep 6"]
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  privileged: false
  capabilities:
    drop: [ALL]
volumeMounts:
  - { name: data, mountPath: /data }
  - { name: tmp, mountPath: /tmp }
  - { name: settings, mountPath: /etc/ringer, readOnly: true }
  {{- if .Values.models.existingClaim }}
  - { name: models, mountPath: /models, readOnly: true }
  {{- end }}
  {{- if .Values.secrets.busCredentials.name }}
  - { name: bus, mountPath: /etc/ringer-bus, readOnly: true }
  {{- end }}
{{- end }}
