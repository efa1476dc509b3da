{{/* What templates about the page and the dashboards share. Each takes the root. */}}

{{/* heliostat.hasDashboards is not empty where the server serves the page and the dashboards. */}}
{{- define "heliostat.hasDashboards" -}}
{{- if and .Values.server.enabled .Values.server.dashboards.enabled }}yes{{ end }}
{{- end }}

{{/* heliostat.pageOrigin is where browsers reach the page and the API. */}}
{{- define "heliostat.pageOrigin" -}}
{{- default (printf "https://%s.%s.svc" (include "heliostat.serverName" .) .Release.Namespace) .Values.server.url }}
{{- end }}

{{/* heliostat.dashboardsOrigin is where browsers reach the dashboards of all clusters. */}}
{{- define "heliostat.dashboardsOrigin" -}}
{{- with .Values.server.dashboards }}
{{- if .host }}https://{{ .host }}
{{- else if .wildcard }}https://{{ .wildcard }}
{{- else }}{{ regexReplaceAll ":[0-9]+$" (include "heliostat.pageOrigin" $) "" }}:8444
{{- end }}
{{- end }}
{{- end }}

{{/* heliostat.outerHosts are the host names that browsers ask for, separated by commas and without ports: the page's and
those of dashboards. Names of the Service are not among them. */}}
{{- define "heliostat.outerHosts" -}}
{{- $hosts := list }}
{{- with .Values.server.url }}
{{- $hosts = append $hosts (trimPrefix "https://" .) }}
{{- end }}
{{- if include "heliostat.hasDashboards" . }}
{{- with .Values.server.dashboards.host }}
{{- $hosts = append $hosts . }}
{{- end }}
{{- with .Values.server.dashboards.wildcard }}
{{- $hosts = concat $hosts (list . (printf "*.%s" .)) }}
{{- end }}
{{- end }}
{{- $plain := list }}
{{- range $hosts }}
{{- $plain = append $plain (regexReplaceAll ":[0-9]+$" . "" | trimPrefix "[" | trimSuffix "]") }}
{{- end }}
{{- join "," ($plain | uniq) }}
{{- end }}

{{/* heliostat.pageHost is the host name in server.url. */}}
{{- define "heliostat.pageHost" -}}
{{- regexReplaceAll ":[0-9]+$" (trimPrefix "https://" .Values.server.url) "" }}
{{- end }}

{{/* heliostat.dashboardHosts are the host names that only dashboards have, separated by commas. Without any they are another
port of the page's. */}}
{{- define "heliostat.dashboardHosts" -}}
{{- if include "heliostat.hasDashboards" . }}
{{- without (splitList "," (include "heliostat.outerHosts" .)) (include "heliostat.pageHost" .) "" | join "," }}
{{- end }}
{{- end }}

{{/* heliostat.dashboardsName is the name of the Service of dashboards with host names of their own. */}}
{{- define "heliostat.dashboardsName" -}}
{{- printf "%s-dashboards" (include "heliostat.serverName" . | trunc 52 | trimSuffix "-") }}
{{- end }}

{{/* heliostat.sessionSecret is the name of the Secret with the keys that seal sessions. */}}
{{- define "heliostat.sessionSecret" -}}
{{- default (printf "%s-session" (include "heliostat.serverName" . | trunc 55 | trimSuffix "-")) .Values.server.session.secretName }}
{{- end }}

{{/* heliostat.pageName is the name of the ConfigMap with what the page is told. */}}
{{- define "heliostat.pageName" -}}
{{- printf "%s-page" (include "heliostat.serverName" . | trunc 58 | trimSuffix "-") }}
{{- end }}

{{/* heliostat.page are the files that say how people sign in, and what the page links to. */}}
{{- define "heliostat.page" -}}
sign-in.yaml: |
  {{- with .Values.server.signIn.oidc }}
  oidc:
    {{- toYaml (omit . "secretName") | nindent 4 }}
    {{- if .secretName }}
    clientSecretFile: /etc/heliostat/oidc/client-secret
    {{- end }}
  {{- end }}
links.yaml: |
  {{- with .Values.server.links }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* heliostat.serverResources are those of the server: what is given, and for the rest what is enough. Dashboards have
WebSockets, which take memory, and requests to services, which take CPU: a node with busy Ray pods gives a pod the share that
its request has in theirs. */}}
{{- define "heliostat.serverResources" -}}
{{- $has := eq "yes" (include "heliostat.hasDashboards" .) }}
{{- $requests := dict "cpu" (ternary "250m" "100m" $has) "memory" "64Mi" }}
{{- $enough := dict "requests" $requests "limits" (dict "memory" (ternary "768Mi" "384Mi" $has)) }}
{{- toYaml (mergeOverwrite $enough .Values.server.resources) }}
{{- end }}
