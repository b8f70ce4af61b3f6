{{/* Names and labels. Templates with a component take (list $ "eval-broker"). */}}

{{- define "kafila.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kafila.name" -}}
{{- printf "%s-%s" (include "kafila.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{- define "kafila.selector" -}}
app.kubernetes.io/name: {{ default (index . 0).Chart.Name (index . 0).Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "kafila.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/part-of: kafila
{{ include "kafila.selector" . }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of pods: none that changes with the chart's version, which would restart etcd. */}}
{{- define "kafila.podLabels" -}}
app.kubernetes.io/part-of: kafila
{{ include "kafila.selector" . }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kafila.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kafila.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "kafila.image" -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository .tag -}}
{{- end -}}
{{- end -}}

{{/* The full DNS name of a component's Service; the release's domain comes from `clusterDomain`. */}}
{{- define "kafila.host" -}}
{{- $root := index . 0 -}}
{{- printf "%s.%s.svc.%s" (include "kafila.name" .) $root.Release.Namespace $root.Values.clusterDomain -}}
{{- end -}}
