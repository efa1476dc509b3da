{{- define "heliostat.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "heliostat.fullname" -}}
{{- $name := include "heliostat.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "heliostat.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "heliostat.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name must name an existing ServiceAccount when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "heliostat.selector" -}}
app.kubernetes.io/name: {{ include "heliostat.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "heliostat.labels" -}}
{{ include "heliostat.selector" . }}
{{ include "heliostat.release" . }}
{{- end }}

{{- define "heliostat.release" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: heliostat
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "heliostat.metricsName" -}}
{{- printf "%s-metrics" (include "heliostat.fullname" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{/* heliostat.memoryLimit is what Go keeps its heap below: 80 % of the container's limit, which is also for stacks and
buffers. Near it Go collects more often, instead of being killed. It takes resources. Empty without a limit in Ki, Mi or Gi. */}}
{{- define "heliostat.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" . | toString -}}
{{- range $unit, $kibibytes := dict "Ki" 1 "Mi" 1024 "Gi" 1048576 -}}
{{- if hasSuffix $unit $limit -}}
{{- printf "%dKiB" (mulf (trimSuffix $unit $limit | float64) $kibibytes 0.8 | int64) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "heliostat.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "heliostat.serverName" -}}
{{- printf "%s-server" (include "heliostat.fullname" . | trunc 56 | trimSuffix "-") }}
{{- end }}

{{- define "heliostat.serverSelector" -}}
app.kubernetes.io/name: {{ include "heliostat.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: server
{{- end }}

{{- define "heliostat.serverLabels" -}}
{{ include "heliostat.serverSelector" . }}
{{ include "heliostat.release" . }}
{{- end }}

{{- define "heliostat.serverMetricsName" -}}
{{- printf "%s-server-metrics" (include "heliostat.fullname" . | trunc 48 | trimSuffix "-") }}
{{- end }}

{{/* heliostat.serverIdentity is the file that says who is believed to be whom. */}}
{{- define "heliostat.serverIdentity" -}}
{{- $identity := .Values.server.identity }}
mode: {{ $identity.mode }}
{{- with $identity.issuers }}
issuers:
{{ toYaml . }}
{{- end }}
{{- with $identity.audience }}
audience: {{ . | quote }}
{{- end }}
{{- with $identity.frontProxy }}
frontProxy:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end }}

{{/* heliostat.serverSecret is the name of the Secret with the server's certificate. */}}
{{- define "heliostat.serverSecret" -}}
{{- default (printf "%s-tls" (include "heliostat.serverName" .)) .Values.server.tls.secretName }}
{{- end }}
