{{/*
The table of components. Each: its key in the values, its role in certificates, its kind of workload,
its port for gRPC, and the components that it calls (the call graph, from which the network policies
are made).
*/}}
{{- define "kafila.components" -}}
api-gateway: {key: apiGateway, role: gateway, kind: Deployment, port: 4646, calls: [api-gateway, eval-broker, scheduler-worker, plan-applier, deployment-watcher, cluster-controller, client-node]}
eval-broker: {key: evalBroker, role: broker, kind: Deployment, port: 4648, calls: []}
scheduler-worker: {key: schedulerWorker, role: worker, kind: Deployment, port: 4648, calls: [eval-broker, plan-applier]}
plan-applier: {key: planApplier, role: applier, kind: Deployment, port: 4648, calls: []}
deployment-watcher: {key: deploymentWatcher, role: watcher, kind: Deployment, port: 4648, calls: []}
cluster-controller: {key: clusterController, role: controller, kind: Deployment, port: 4648, calls: []}
{{- if .Values.clientNode.enabled }}
client-node: {key: clientNode, role: node, kind: DaemonSet, port: {{ .Values.clientNode.ports.grpc | int }}, calls: [api-gateway]}
{{- end }}
{{- end -}}

{{/* The port of /metrics, /healthz and /readyz. */}}
{{- define "kafila.metricsPort" -}}
{{- if eq (index . 1) "client-node" -}}
{{- (index . 0).Values.clientNode.ports.metrics | int -}}
{{- else -}}
4649
{{- end -}}
{{- end -}}

{{/* Prefix of the environment variables of a service's settings. */}}
{{- define "kafila.envPrefix" -}}
{{- printf "KAFILA_%s__" (. | upper | replace "-" "_") -}}
{{- end -}}

{{- define "kafila.scheme" -}}
{{- if .Values.tls.enabled }}https{{ else }}http{{ end -}}
{{- end -}}

{{/* `$(POD_IP)`, as the host of a URL. */}}
{{- define "kafila.podHost" -}}
{{- if eq .Values.ipFamily "IPv6" }}[$(POD_IP)]{{ else }}$(POD_IP){{ end -}}
{{- end -}}

{{- define "kafila.anyHost" -}}
{{- if eq .Values.ipFamily "IPv6" }}[::]{{ else }}0.0.0.0{{ end -}}
{{- end -}}

{{/* Whether services reach etcd over TLS: a word or nothing. */}}
{{- define "kafila.etcdTls" -}}
{{- if eq .Values.etcd.mode "bundled" -}}
{{- if .Values.tls.enabled }}yes{{ end -}}
{{- else if .Values.etcd.tls.secretName -}}
yes
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of a role. */}}
{{- define "kafila.tlsSecret" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- if eq $root.Values.tls.source "certManager" -}}
{{- printf "%s-%s-tls" (include "kafila.fullname" $root) $role -}}
{{- else -}}
{{- required (printf "tls.secrets.%s: name a Secret with tls.crt, tls.key and ca.crt, or set tls.source=certManager" $role) (index $root.Values.tls.secrets $role) -}}
{{- end -}}
{{- end -}}

{{/* The Secret with which services call etcd; nothing without TLS. */}}
{{- define "kafila.etcdClientSecret" -}}
{{- if eq (include "kafila.etcdTls" .) "yes" -}}
{{- if eq .Values.etcd.mode "bundled" -}}
{{- include "kafila.tlsSecret" (list . "etcd-client") -}}
{{- else -}}
{{- .Values.etcd.tls.secretName -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Addresses of etcd's members, as JSON. */}}
{{- define "kafila.etcdEndpoints" -}}
{{- if eq .Values.etcd.mode "bundled" -}}
{{- $root := . -}}
{{- $scheme := ternary "https" "http" (eq (include "kafila.etcdTls" .) "yes") -}}
{{- $all := list -}}
{{- range $member := until (int .Values.etcd.bundled.members) -}}
{{- $all = append $all (printf "%s://%s:2379" $scheme (include "kafila.etcdMember" (list $root $member))) -}}
{{- end -}}
{{- $all | toJson -}}
{{- else -}}
{{- if not .Values.etcd.external.endpoints -}}
{{- fail "etcd.external.endpoints is empty: set the addresses of your etcd, as in --set 'etcd.external.endpoints={http://etcd:2379}', or etcd.mode=bundled for a StatefulSet of this chart" -}}
{{- end -}}
{{- range .Values.etcd.external.endpoints -}}
{{- if and $.Values.etcd.tls.secretName (hasPrefix "http://" .) -}}
{{- fail (printf "etcd.external.endpoints: %s is without TLS, but etcd.tls.secretName is set: write https://, or remove the Secret" .) -}}
{{- end -}}
{{- if and $.Values.tls.enabled (hasPrefix "http://" .) (not $.Values.etcd.external.dangerouslyExposePlaintext) -}}
{{- fail (printf "etcd.external.endpoints: %s is without TLS, but tls.enabled is set: write https:// and set etcd.tls.secretName, or accept plaintext with etcd.external.dangerouslyExposePlaintext=true" .) -}}
{{- end -}}
{{- end -}}
{{- .Values.etcd.external.endpoints | toJson -}}
{{- end -}}
{{- end -}}

{{/* The DNS name of a member of the bundled etcd; takes (list $ 0). */}}
{{- define "kafila.etcdMember" -}}
{{- $root := index . 0 -}}
{{- $name := include "kafila.name" (list $root "etcd") -}}
{{- printf "%s-%v.%s-peers.%s.svc.%s" $name (index . 1) $name $root.Release.Namespace $root.Values.clusterDomain -}}
{{- end -}}
