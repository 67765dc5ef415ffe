{{- /* What a schema can't say: values that do not go together. Each message says
what to do. */ -}}
{{- define "headgate.checks" -}}
{{- $v := .Values -}}
{{- if eq $v.mode "loadBalancer" -}}
{{- range $field := list "bindAddresses" "nodeAddresses" "addressPool" -}}
{{- if index $v.hostNetwork $field -}}
{{- fail (printf "hostNetwork.%s is for mode hostNetwork: in mode loadBalancer Gateways have the addresses of the Service. Leave it out, or set mode=hostNetwork." $field) -}}
{{- end -}}
{{- end -}}
{{- if and $v.adminPort (has (float64 $v.adminPort) (include "headgate.ports" . | fromJsonArray)) -}}
{{- fail (printf "adminPort %d is in loadBalancer.ports, where Gateways listen. Give one of them another port." (int $v.adminPort)) -}}
{{- end -}}
{{- if and $v.metrics.enabled (has (float64 $v.metrics.port) (include "headgate.ports" . | fromJsonArray)) -}}
{{- fail (printf "metrics.port %d is in loadBalancer.ports, where Gateways listen. Give one of them another port." (int $v.metrics.port)) -}}
{{- end -}}
{{- end -}}
{{- if $v.hostNetwork.addressPool -}}
{{- range $field := list "bindAddresses" "nodeAddresses" -}}
{{- if index $v.hostNetwork $field -}}
{{- fail (printf "hostNetwork.%s and hostNetwork.addressPool do not go together: with a pool each Gateway listens on an address of its own. Leave one of them out." $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.metrics.enabled (eq (int $v.metrics.port) (int $v.adminPort)) -}}
{{- fail (printf "metrics.port and adminPort are both %d. Give one of them another port." (int $v.adminPort)) -}}
{{- end -}}
{{- if and (ne $v.metrics.serviceMonitor.create "never") (not $v.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor needs metrics.enabled=true: without it there is nothing to scrape." -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- fail "serviceAccount.create=false needs serviceAccount.name: the name of the ServiceAccount that exists already." -}}
{{- end -}}
{{- if and $v.rbac.secretNamespaces (not $v.rbac.create) -}}
{{- fail "rbac.secretNamespaces needs rbac.create=true: without it the chart gives no rights at all." -}}
{{- end -}}
{{- range $label := list "app.kubernetes.io/name" "app.kubernetes.io/instance" -}}
{{- if hasKey $v.podLabels $label -}}
{{- fail (printf "podLabels: %s is how the chart finds its own pods. Use another label." $label) -}}
{{- end -}}
{{- end -}}
{{- $owner := dict
  "--controller-name" "controllerName"
  "--gateway-services" "gatewayServices"
  "--address-mode" "mode"
  "--address-service" "mode"
  "--address-pool" "hostNetwork.addressPool"
  "--bind-address" "hostNetwork.bindAddresses"
  "--node-address" "hostNetwork.nodeAddresses"
  "--handover-dir" "hostNetwork.handover"
  "--admin-address" "adminPort"
  "--admin-socket" "adminPort"
  "--drain-period" "drainPeriodSeconds"
  "--drain-timeout" "drainPeriodSeconds"
  "--log-level" "logging.level"
  "--log-format" "logging.format"
  "--access-log" "accessLog"
  "--workers" "workers"
  "--trusted-cidr" "trustedCIDRs"
  "--metrics-address" "metrics"
  "--leader-election-name" "fullnameOverride"
-}}
{{- range $arg := $v.extraArgs -}}
{{- $flag := splitList "=" $arg | first -}}
{{- with get $owner $flag -}}
{{- fail (printf "extraArgs: %s is set by the chart; use the value %s instead." $flag .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "headgate.ports" -}}
{{- $ports := list -}}
{{- range .Values.loadBalancer.ports }}{{ $ports = append $ports (int .) }}{{ end -}}
{{- $ports | toJson -}}
{{- end -}}
