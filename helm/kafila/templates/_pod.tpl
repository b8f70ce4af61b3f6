{{/* Parts of pod templates. */}}

{{/* The defaults in `pod` with what a component sets, as JSON; takes (list $ overrides). */}}
{{- define "kafila.podOptions" -}}
{{- $options := deepCopy (index . 0).Values.pod -}}
{{- range $key, $value := index . 1 -}}
{{- if not (empty $value) }}{{ $_ := set $options $key $value }}{{ end -}}
{{- end -}}
{{- toJson $options -}}
{{- end -}}

{{/*
The first map with the entries of the second, as JSON; takes (list $base $override). Not Sprig's
mergeOverwrite, which ignores `false`.
*/}}
{{- define "kafila.override" -}}
{{- $result := deepCopy (index . 0) -}}
{{- range $key, $value := index . 1 }}{{ $_ := set $result $key $value }}{{ end -}}
{{- toJson $result -}}
{{- end -}}

{{/* Scheduling of a pod; takes (dict "root" $ "name" component "pod" options "spread" true). */}}
{{- define "kafila.scheduling" -}}
{{- $selector := include "kafila.selector" (list .root .name) | fromYaml -}}
{{- $class := .pod.priorityClassName -}}
{{- if and (not $class) .root.Values.priorityClasses.create -}}
{{- $class = include "kafila.name" (list .root (ternary "node" "control-plane" (eq .name "client-node"))) -}}
{{- end -}}
{{- with $class }}
priorityClassName: {{ . }}
{{- end }}
{{- with .pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .pod.affinity }}
affinity: {{- toYaml .pod.affinity | nindent 2 }}
{{- else if and .spread (ne .pod.antiAffinity "none") }}
affinity:
  podAntiAffinity:
{{- if eq .pod.antiAffinity "required" }}
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- toYaml $selector | nindent 12 }}
{{- else }}
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- toYaml $selector | nindent 14 }}
{{- end }}
{{- end }}
{{- if .spread }}
topologySpreadConstraints:
{{- $zones := list (dict "maxSkew" 1 "topologyKey" "topology.kubernetes.io/zone" "whenUnsatisfiable" "ScheduleAnyway") }}
{{- range default $zones .pod.topologySpreadConstraints }}
  - {{- toYaml (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $selector))) | nindent 4 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment of a service: what differs from pod to pod, and secrets. */}}
{{- define "kafila.env" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $component := index . 2 -}}
{{- $prefix := include "kafila.envPrefix" $name -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: {{ $prefix }}LISTEN__ADVERTISE
  value: {{ printf "%s://%s:%v" (include "kafila.scheme" $root) (include "kafila.podHost" $root) $component.port | quote }}
{{- if eq $name "client-node" }}
{{- if not (hasKey $root.Values.clientNode.settings "host_ip") }}
- name: {{ $prefix }}HOST_IP
  value: $(POD_IP)
{{- end }}
{{- if not (hasKey $root.Values.clientNode.settings "name") }}
- name: {{ $prefix }}NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}
{{- if and $root.Values.clientNode.memoryFromPod (not (hasKey $root.Values.clientNode.settings "memory_total_mb")) }}
- name: {{ $prefix }}MEMORY_TOTAL_MB
  valueFrom:
    resourceFieldRef:
      containerName: client-node
      resource: limits.memory
      divisor: 1Mi
{{- end }}
{{- else }}
{{- with $root.Values.etcd.auth.secretName }}
- name: {{ $prefix }}ETCD__USER
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: {{ $root.Values.etcd.auth.usernameKey }}}
{{- end }}
{{- if and (eq $name "api-gateway") (not (hasKey $root.Values.apiGateway.settings "name")) }}
- name: {{ $prefix }}NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- end }}
{{- end }}
{{- end -}}

{{/* Security context of a container as small as its work allows, as JSON. */}}
{{- define "kafila.containerSecurity" -}}
{{- $root := index . 0 -}}
{{- $context := dict "readOnlyRootFilesystem" true "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) -}}
{{- if eq (index . 1) "client-node" -}}
{{- if and $root.Values.clientNode.hostAccess $root.Values.clientNode.drivers.rawExec -}}
{{- $context = dict "privileged" true "readOnlyRootFilesystem" true -}}
{{- else if $root.Values.clientNode.drivers.rawExec -}}
{{- /* For `user` of a task: its identity, its files, and signals to it. */ -}}
{{- $_ := set $context.capabilities "add" (list "CHOWN" "DAC_OVERRIDE" "FOWNER" "KILL" "SETGID" "SETUID") -}}
{{- end -}}
{{- end -}}
{{- toJson $context -}}
{{- end -}}

{{- define "kafila.podSecurity" -}}
{{- if eq . "client-node" -}}
{{- /* root: the directory on the machine belongs to root, and tasks may name a user. */ -}}
{{- dict "runAsUser" 0 "runAsGroup" 0 "seccompProfile" (dict "type" "RuntimeDefault") | toJson -}}
{{- else -}}
{{- dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault") | toJson -}}
{{- end -}}
{{- end -}}

{{/* Probes. The kubelet's gRPC probe speaks no TLS. */}}
{{- define "kafila.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
{{- if (index . 0).Values.tls.enabled }}
  httpGet: {path: /readyz, port: metrics}
{{- else }}
  grpc:
    port: {{ (index . 2).port }}
{{- end }}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end -}}

{{/* The pod template of a service; takes (list $ name component). */}}
{{- define "kafila.pod" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $component := index . 2 -}}
{{- $values := index $root.Values $component.key -}}
{{- $pod := include "kafila.podOptions" (list $root $values.pod) | fromJson -}}
{{- $isNode := eq $name "client-node" -}}
{{- $node := $root.Values.clientNode -}}
{{- $introduction := and $isNode $root.Values.tls.enabled $root.Values.tls.introductionSecret -}}
{{- $nodeCa := and (eq $name "api-gateway") $root.Values.tls.enabled $root.Values.tls.nodeCaSecret -}}
{{- $keyring := ternary $root.Values.apiGateway.keyringKeySecret "" (eq $name "api-gateway") -}}
{{- $etcdSecret := "" -}}
{{- if not $isNode }}{{ $etcdSecret = include "kafila.etcdClientSecret" $root }}{{ end -}}
metadata:
  labels:
    {{- include "kafila.podLabels" (list $root $name) | nindent 4 }}
    {{- with $pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "kafila.config" . | sha256sum }}
    {{- with $pod.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "kafila.serviceAccountName" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ default (ternary 60 30 $isNode) $pod.terminationGracePeriodSeconds | int }}
  securityContext:
    {{- include "kafila.override" (list (include "kafila.podSecurity" $name | fromJson) $pod.securityContext) | fromJson | toYaml | nindent 4 }}
  {{- if $isNode }}
  {{- if and $node.hostAccess $node.drivers.rawExec }}
  hostPID: true
  {{- else }}
  # The pause process reaps processes that tasks leave behind.
  shareProcessNamespace: true
  {{- end }}
  {{- if $node.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- end }}
  {{- with include "kafila.scheduling" (dict "root" $root "name" $name "pod" $pod "spread" (not $isNode)) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: {{ $name }}
      {{- $image := ternary $node.image $root.Values.image $isNode }}
      {{- $tag := coalesce $image.tag $root.Values.image.tag $root.Chart.AppVersion }}
      image: {{ include "kafila.image" (dict "repository" $image.repository "tag" $tag "digest" $image.digest) | quote }}
      imagePullPolicy: {{ $image.pullPolicy }}
      command: [kafila, {{ $name }}, -config, /etc/kafila/config.toml]
      env:
        {{- include "kafila.env" . | nindent 8 }}
        {{- with $pod.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: grpc, containerPort: {{ $component.port }}, protocol: TCP}
        - {name: metrics, containerPort: {{ include "kafila.metricsPort" (list $root $name) }}, protocol: TCP}
      {{- include "kafila.probes" . | nindent 6 }}
      {{- if eq $name "api-gateway" }}
      lifecycle:
        # Callers learn of the end of a pod later than the pod itself.
        preStop: {sleep: {seconds: 5}}
      {{- end }}
      resources: {{- toYaml $values.resources | nindent 8 }}
      securityContext: {{- include "kafila.override" (list (include "kafila.containerSecurity" (list $root $name) | fromJson) $pod.containerSecurityContext) | fromJson | toYaml | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/kafila, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- if $introduction }}
        - {name: introduction, mountPath: /etc/kafila-introduction, readOnly: true}
        {{- else if $root.Values.tls.enabled }}
        - {name: tls, mountPath: /etc/kafila-tls, readOnly: true}
        {{- end }}
        {{- if $nodeCa }}
        - {name: node-ca, mountPath: /etc/kafila-node-ca, readOnly: true}
        {{- end }}
        {{- if $keyring }}
        - {name: keyring, mountPath: /etc/kafila-keyring, readOnly: true}
        {{- end }}
        {{- if $etcdSecret }}
        - {name: etcd-tls, mountPath: /etc/kafila-etcd-tls, readOnly: true}
        {{- end }}
        {{- if and (not $isNode) $root.Values.etcd.auth.secretName }}
        - {name: etcd-user, mountPath: /etc/kafila-etcd-user, readOnly: true}
        {{- end }}
        {{- if $isNode }}
        - {name: data, mountPath: {{ $node.dataDir | quote }}}
        {{- range $node.hostVolumes }}
        - {name: {{ printf "volume-%s" .name }}, mountPath: {{ .path | quote }}, readOnly: {{ default false .readOnly }}}
        {{- end }}
        {{- if and $node.hostAccess $node.drivers.rawExec }}
        - {name: cgroups, mountPath: /sys/fs/cgroup}
        {{- end }}
        {{- end }}
        {{- with $pod.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "kafila.name" (list $root $name) }}
    - name: tmp
      emptyDir: {}
    {{- if $introduction }}
    - name: introduction
      secret:
        secretName: {{ $root.Values.tls.introductionSecret }}
        defaultMode: 0440
        items: [{key: ca.crt, path: ca.crt}, {key: token, path: token}]
    {{- else if $root.Values.tls.enabled }}
    - name: tls
      {{- if $isNode }}
      hostPath: {path: {{ $root.Values.tls.nodeDirectory | quote }}, type: Directory}
      {{- else }}
      secret:
        secretName: {{ include "kafila.tlsSecret" (list $root $component.role) }}
        defaultMode: 0440
      {{- end }}
    {{- end }}
    {{- if $nodeCa }}
    - name: node-ca
      secret:
        secretName: {{ $root.Values.tls.nodeCaSecret }}
        defaultMode: 0440
        items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
    {{- end }}
    {{- if $keyring }}
    - name: keyring
      secret:
        secretName: {{ $keyring }}
        defaultMode: 0440
        items: [{key: keyring_key, path: keyring_key}]
    {{- end }}
    {{- if $etcdSecret }}
    - name: etcd-tls
      secret:
        secretName: {{ $etcdSecret }}
        defaultMode: 0440
    {{- end }}
    {{- if and (not $isNode) $root.Values.etcd.auth.secretName }}
    - name: etcd-user
      secret:
        secretName: {{ $root.Values.etcd.auth.secretName }}
        defaultMode: 0440
        items: [{key: {{ $root.Values.etcd.auth.passwordKey }}, path: password}]
    {{- end }}
    {{- if $isNode }}
    - name: data
      hostPath: {path: {{ $node.dataDir | quote }}, type: DirectoryOrCreate}
    {{- range $node.hostVolumes }}
    - name: {{ printf "volume-%s" .name }}
      hostPath: {path: {{ .path | quote }}, type: Directory}
    {{- end }}
    {{- if and $node.hostAccess $node.drivers.rawExec }}
    - name: cgroups
      hostPath: {path: /sys/fs/cgroup, type: Directory}
    {{- end }}
    {{- end }}
    {{- with $pod.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
