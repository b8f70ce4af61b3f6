{{/* The configuration file of a service, as TOML. */}}

{{/* A value of any type within a line of TOML. Numbers of values files arrive as floats. */}}
{{- define "kafila.tomlValue" -}}
{{- if kindIs "map" . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }},{{ end }} {{ toJson $key }} = {{ include "kafila.tomlValue" (get $ $key) }}{{ end }} }
{{- else if kindIs "slice" . -}}
[{{ range $i, $item := . }}{{ if $i }}, {{ end }}{{ include "kafila.tomlValue" $item }}{{ end }}]
{{- else if kindIs "float64" . -}}
{{- if eq (floor .) . }}{{ printf "%.0f" . }}{{ else }}{{ toJson . }}{{ end -}}
{{- else -}}
{{- toRawJson . -}}
{{- end -}}
{{- end -}}

{{- define "kafila.toml" -}}
{{- $table := . -}}
{{- range $key := keys . | sortAlpha }}
{{- $value := get $table $key }}
{{- if not (kindIs "map" $value) }}
{{ $key }} = {{ include "kafila.tomlValue" $value }}
{{- end }}
{{- end }}
{{- range $key := keys . | sortAlpha }}
{{- $value := get $table $key }}
{{- if kindIs "map" $value }}

[{{ $key }}]
{{- range $name := keys $value | sortAlpha }}
{{ if regexMatch "^[A-Za-z0-9_-]+$" $name }}{{ $name }}{{ else }}{{ toJson $name }}{{ end }} = {{ include "kafila.tomlValue" (get $value $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What the chart sets itself, as JSON; takes (list $ "eval-broker" $component). */}}
{{- define "kafila.ownSettings" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $component := index . 2 -}}
{{- $v := $root.Values -}}
{{- $any := include "kafila.anyHost" $root -}}
{{- $metrics := include "kafila.metricsPort" (list $root $name) -}}
{{- $telemetry := dict "log" $v.telemetry.log "log_format" $v.telemetry.logFormat -}}
{{- with $v.telemetry.otlpEndpoint }}{{ $_ := set $telemetry "otlp_endpoint" . }}{{ end -}}
{{- if $v.telemetry.otlpLogs }}{{ $_ := set $telemetry "otlp_logs" true }}{{ end -}}
{{- if $v.telemetry.nomadMetricNames }}{{ $_ := set $telemetry "nomad_metric_names" true }}{{ end -}}
{{- $settings := dict
  "listen" (dict "grpc" (printf "%s:%v" $any $component.port) "metrics" (printf "%s:%s" $any $metrics))
  "telemetry" $telemetry -}}
{{- if $v.tls.enabled -}}
{{- if $v.tls.dangerouslyExposePlaintext }}{{ fail "tls.enabled and tls.dangerouslyExposePlaintext are both set: want certificates or plaintext" }}{{ end -}}
{{- if and (eq $name "client-node") $v.tls.introductionSecret -}}
{{- /* The node keeps its certificate and key in its data_dir. */ -}}
{{- $_ := set $settings "tls" (dict "ca_file" "/etc/kafila-introduction/ca.crt" "region" $v.region) -}}
{{- $_ := set $settings "introduction" (dict "token_file" "/etc/kafila-introduction/token") -}}
{{- else -}}
{{- $_ := set $settings "tls" (dict "ca_file" "/etc/kafila-tls/ca.crt" "cert_file" "/etc/kafila-tls/tls.crt" "key_file" "/etc/kafila-tls/tls.key" "region" $v.region) -}}
{{- end -}}
{{- if and $v.tls.introductionSecret (not $v.tls.nodeCaSecret) }}{{ fail "tls.introductionSecret needs tls.nodeCaSecret: without the CA of nodes no gateway introduces a node" }}{{ end -}}
{{- if and (eq $name "api-gateway") $v.tls.nodeCaSecret -}}
{{- $_ := set $settings "node_ca_cert_file" "/etc/kafila-node-ca/tls.crt" -}}
{{- $_ := set $settings "node_ca_key_file" "/etc/kafila-node-ca/tls.key" -}}
{{- end -}}
{{- else -}}
{{- if not $v.tls.dangerouslyExposePlaintext }}{{ fail "tls.enabled is false, and services refuse plaintext between machines: set tls.enabled=true and tls.source, or in a cluster for development tls.dangerouslyExposePlaintext=true" }}{{ end -}}
{{- $_ := set $settings "tls" (dict "insecure" true "dangerously_expose_plaintext" true) -}}
{{- end -}}
{{- if and (eq $name "api-gateway") $v.apiGateway.keyringKeySecret -}}
{{- $_ := set $settings "keyring_key_file" "/etc/kafila-keyring/keyring_key" -}}
{{- end -}}
{{- if eq $name "client-node" -}}
{{- $gateway := printf "%s://%s:%v" (include "kafila.scheme" $root) (include "kafila.host" (list $root "api-gateway")) (int $v.apiGateway.service.port) -}}
{{- $_ := set $settings "gateways" (list $gateway) -}}
{{- $_ := set $settings "data_dir" $v.clientNode.dataDir -}}
{{- $_ := set $settings "region" $v.region -}}
{{- $_ := set $settings "stop_tasks_on_exit" (not $v.clientNode.hostAccess) -}}
{{- $_ := set $settings "drivers" (dict "raw_exec" $v.clientNode.drivers.rawExec "mock_driver" $v.clientNode.drivers.mockDriver "cgroup_parent" (ternary "kafila.slice" "" $v.clientNode.hostAccess)) -}}
{{- $volumes := dict -}}
{{- range $v.clientNode.hostVolumes -}}
{{- if hasKey $volumes .name }}{{ fail (printf "clientNode.hostVolumes has %s twice: give each a name of its own" .name) }}{{ end -}}
{{- $_ := set $volumes .name (dict "path" .path "read_only" (default false .readOnly)) -}}
{{- end -}}
{{- if $volumes }}{{ $_ := set $settings "host_volumes" $volumes }}{{ end -}}
{{- $lowest := $v.clientNode.settings.min_dynamic_port | default 20000 | int -}}
{{- $highest := $v.clientNode.settings.max_dynamic_port | default 32000 | int -}}
{{- if gt $lowest $highest }}{{ fail (printf "clientNode.settings: min_dynamic_port %d is above max_dynamic_port %d" $lowest $highest) }}{{ end -}}
{{- else -}}
{{- $etcd := dict "endpoints" (include "kafila.etcdEndpoints" $root | fromJsonArray) "prefix" $v.etcd.prefix -}}
{{- if eq (include "kafila.etcdTls" $root) "yes" -}}
{{- $_ := set $etcd "ca_file" "/etc/kafila-etcd-tls/ca.crt" -}}
{{- $_ := set $etcd "cert_file" "/etc/kafila-etcd-tls/tls.crt" -}}
{{- $_ := set $etcd "key_file" "/etc/kafila-etcd-tls/tls.key" -}}
{{- end -}}
{{- if and (eq $v.etcd.mode "external") $v.etcd.external.dangerouslyExposePlaintext }}{{ $_ := set $etcd "dangerously_expose_plaintext" true }}{{ end -}}
{{- if $v.etcd.auth.secretName }}{{ $_ := set $etcd "password_file" "/etc/kafila-etcd-user/password" }}{{ end -}}
{{- $_ := set $settings "etcd" $etcd -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{- define "kafila.config" -}}
{{- $ttl := (index . 0).Values.apiGateway.settings.heartbeat_ttl | default "10s" -}}
{{- $counted := (index . 0).Values.clusterController.settings.heartbeat_ttl | default "10s" -}}
{{- if ne $ttl $counted }}{{ fail (printf "heartbeat_ttl is %s in apiGateway.settings and %s in clusterController.settings: set both to the same, or living nodes are marked down" $ttl $counted) }}{{ end -}}
{{- $own := include "kafila.ownSettings" . | fromJson -}}
{{- $settings := (index (index . 0).Values (index . 2).key).settings | deepCopy -}}
{{- range $key, $value := $own -}}
{{- if and (kindIs "map" $value) (hasKey $settings $key) -}}
{{- $_ := set $settings $key (include "kafila.override" (list (get $settings $key) $value) | fromJson) -}}
{{- else -}}
{{- $_ := set $settings $key $value -}}
{{- end -}}
{{- end -}}
{{- include "kafila.toml" $settings | trim -}}
{{- end -}}
