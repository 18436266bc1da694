{{- define "ringer.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- $name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "ringer.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ringer.labels" -}}
{{ include "ringer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "ringer.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "ringer.name" .) }}
{{- end }}

{{/* A map as TOML: values first, then the tables in it. JSON's numbers, texts and lists are TOML, too. */}}
{{- define "ringer.table" -}}
{{- $path := .path -}}
{{- range $key, $value := .table }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ $key | quote }} = {{ $value | toJson }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- if and (kindIs "map" $value) $value }}
{{- $inner := append $path (quote $key) }}

[{{ join "." $inner }}]
{{- include "ringer.table" (dict "path" $inner "table" $value) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Settings that the chart makes itself; those of `settings` go before them where both have one. */}}
{{- define "ringer.settings" -}}
{{- $storage := dict }}
{{- range $key := list "url" "endpoint" "region" }}
{{- with index $.Values.storage $key }}{{ $_ := set $storage $key . }}{{ end }}
{{- end }}
{{- if hasPrefix "http://" .Values.storage.endpoint }}{{ $_ := set $storage "allow_http" true }}{{ end }}
{{- $bus := dict }}
{{- with .Values.bus.url }}{{ $_ := set $bus "url" . }}{{ end }}
{{- with .Values.bus.prefix }}{{ $_ := set $bus "prefix" . }}{{ end }}
{{- $server := dict }}
{{- with .Values.publicUrl }}{{ $_ := set $server "public_url" . }}{{ end }}
{{- $metrics := dict }}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.key.name) }}{{ $_ := set $metrics "public" true }}{{ end }}
{{- $own := dict "server" $server "storage" $storage "bus" $bus "metrics" $metrics }}
{{- $all := mergeOverwrite $own (deepCopy .Values.settings) }}
{{- include "ringer.table" (dict "path" list "table" $all) | trim }}
{{- end }}

{{/* Variable of the environment whose value a Secret has. */}}
{{- define "ringer.secret" -}}
- name: {{ .variable }}
  valueFrom: { secretKeyRef: { name: {{ .name }}, key: {{ .key }} } }
{{- end }}

{{/* Refuses values that do not go together. */}}
{{- define "ringer.check" -}}
{{- $many := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) }}
{{- if and $many (not (and .Values.secrets.database.name .Values.secrets.sealing.name)) }}
{{- fail "more than one engine needs secrets.database and secrets.sealing: they share one PostgreSQL database and one key" }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas is above autoscaling.maxReplicas" }}
{{- end }}
{{- if and (eq .Values.autoscaling.kind "external") .Values.autoscaling.enabled (not .Values.autoscaling.labels) }}
{{- fail "autoscaling.labels choose the external metric: without them it would be that of all releases" }}
{{- end }}
{{- if ge (int .Values.media.rtpPorts.first) (int .Values.media.rtpPorts.last) }}
{{- fail "media.rtpPorts.first is not below media.rtpPorts.last" }}
{{- end }}
{{- if and .Values.secrets.bus.name .Values.secrets.busCredentials.name }}
{{- fail "secrets.bus and secrets.busCredentials: set one of them" }}
{{- end }}
{{- if and (eq .Values.media.network "ports") (gt (int (include "ringer.engines" .)) 60) }}
{{- fail "media.network = ports makes a service for each engine, for at most 60" }}
{{- end }}
{{- end }}

{{/* Most engines that there will be. */}}
{{- define "ringer.engines" -}}
{{- if .Values.autoscaling.enabled }}{{ max (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas) }}{{ else }}{{ int .Values.replicas }}{{ end }}
{{- end }}
