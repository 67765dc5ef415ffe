{{- define "headgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* The release's name, with the chart's unless that is in it. Cut so that
suffixes fit. */ -}}
{{- define "headgate.fullname" -}}
{{- $name := include "headgate.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "headgate.serviceAccount" -}}
{{- default (include "headgate.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: {{ include "headgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ regexReplaceAll "[^A-Za-z0-9._-]+" .Chart.AppVersion "_" | trunc 63 | trimAll "._-" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- /* The tag is that which `make image` gives to the version. */ -}}
{{- define "headgate.image" -}}
{{- $tag := regexReplaceAll "^[.-]+" (regexReplaceAll "[^A-Za-z0-9._-]+" .Chart.AppVersion "-") "" | trunc 128 -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default $tag }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- /* "yes" when GatewayClass is to be made: always, or when the API server
serves it. */ -}}
{{- define "headgate.makesClass" -}}
{{- $create := .Values.gatewayClass.create -}}
{{- if or (eq $create "always") (and (eq $create "auto") (.Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/GatewayClass")) -}}
yes
{{- end -}}
{{- end -}}

{{- define "headgate.makesMonitor" -}}
{{- $create := .Values.metrics.serviceMonitor.create -}}
{{- if or (eq $create "always") (and (eq $create "auto") (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor")) -}}
yes
{{- end -}}
{{- end -}}

{{- define "headgate.handover" -}}
{{- if and (eq .Values.mode "hostNetwork") .Values.hostNetwork.handover.enabled -}}
{{- default (printf "/run/%s" (include "headgate.fullname" .)) .Values.hostNetwork.handover.directory -}}
{{- end -}}
{{- end -}}

{{- /* Nine tenths of the memory limit, in bytes, for Go's collector: the rest is
for what is not on its heap. Empty without a limit. */ -}}
{{- define "headgate.memory" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources -}}
{{- if kindIs "float64" $limit }}{{ $limit = int64 $limit }}{{ end -}}
{{- $limit = toString $limit -}}
{{- if $limit -}}
{{- $unit := regexReplaceAll "[0-9]" $limit "" -}}
{{- /* In bytes: a plain number, or one with a unit. */ -}}
{{- $factors := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $bytes := mul (trimSuffix $unit $limit | atoi) (get $factors $unit) -}}
{{- div (mul $bytes 9) 10 -}}
{{- end -}}
{{- end -}}
