{{- /* heliostat.historyName begins the names of what belongs to history. */ -}}
{{- define "heliostat.historyName" -}}
{{- printf "%s-history" (include "heliostat.fullname" . | trunc 50 | trimSuffix "-") }}
{{- end }}

{{- define "heliostat.archiverName" -}}
{{- printf "%s-archiver" (include "heliostat.fullname" . | trunc 45 | trimSuffix "-") }}
{{- end }}

{{- define "heliostat.archiverSelector" -}}
app.kubernetes.io/name: {{ include "heliostat.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: archiver
{{- end }}

{{- define "heliostat.archiverLabels" -}}
{{ include "heliostat.archiverSelector" . }}
{{ include "heliostat.release" . }}
{{- end }}

{{- /* heliostat.archiverHosts are the names of the replicas, separated by commas. */ -}}
{{- define "heliostat.archiverHosts" -}}
{{- $name := include "heliostat.archiverName" . }}
{{- $hosts := list }}
{{- range $i := until (int .Values.history.replicas) }}
{{- $hosts = append $hosts (printf "%s-%d.%s.%s.svc" $name $i $name $.Release.Namespace) }}
{{- end }}
{{- join "," $hosts }}
{{- end }}

{{- /* heliostat.archivers are their addresses. */ -}}
{{- define "heliostat.archivers" -}}
{{- $addresses := list }}
{{- range splitList "," (include "heliostat.archiverHosts" .) }}
{{- $addresses = append $addresses (printf "%s:8444" .) }}
{{- end }}
{{- join "," $addresses }}
{{- end }}

{{- /* heliostat.toArchiver is the rule of a NetworkPolicy for the way to archivers. */ -}}
{{- define "heliostat.toArchiver" -}}
- to:
  - podSelector:
      matchLabels:
        {{- include "heliostat.archiverSelector" . | nindent 8 }}
  ports:
  - {protocol: TCP, port: 8444}
  {{- with .Values.mesh.tunnelPort }}
  - {protocol: TCP, port: {{ int . }}}
  {{- end }}
{{- end }}

{{- /* heliostat.archiverResources are enough for 2,000 clusters. */ -}}
{{- define "heliostat.archiverResources" -}}
requests: {cpu: 100m, memory: 256Mi}
limits: {memory: 512Mi}
{{- end }}

{{- /* heliostat.spoolSize is how much of a spool's volume is used: a file system takes some of it. */ -}}
{{- define "heliostat.spoolSize" -}}
{{- $size := .Values.history.spool.size }}
{{- range $unit, $mebibytes := dict "Mi" 1 "Gi" 1024 "Ti" 1048576 }}
{{- if hasSuffix $unit $size }}
{{- printf "%dMi" (max 1 (mulf (trimSuffix $unit $size | float64) $mebibytes 0.9 | int64)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* heliostat.checkHistory refuses values that do not go together. */ -}}
{{- define "heliostat.checkHistory" -}}
{{- $store := .Values.history.store }}
{{- if not .Values.server.enabled }}
{{- fail "history.enabled: what is kept is read through the server; set server.enabled" }}
{{- end }}
{{- if not (or $store.url $store.claimName) }}
{{- fail "history.store: give url or claimName" }}
{{- end }}
{{- if and $store.claimName (gt (int .Values.history.replicas) 1) }}
{{- $claim := lookup "v1" "PersistentVolumeClaim" .Release.Namespace $store.claimName }}
{{- if not (has "ReadWriteMany" (dig "spec" "accessModes" (list) $claim)) }}
{{- fail (printf "history.store.claimName: %s is not known to have the access mode ReadWriteMany, which two replicas need; set history.replicas to 1, or install with Helm where the claim is" $store.claimName) }}
{{- end }}
{{- end }}
{{- end }}
