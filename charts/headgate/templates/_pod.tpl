{{- /* The pod, for both modes. */ -}}
{{- define "headgate.pod" -}}
{{- $host := eq .Values.mode "hostNetwork" -}}
{{- $handover := include "headgate.handover" . -}}
metadata:
  labels:
    {{- include "headgate.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "headgate.serviceAccount" . }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $host }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  # Time to drain, and some to end.
  terminationGracePeriodSeconds: {{ add .Values.drainPeriodSeconds 15 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
    {{- if not $host }}
    # Whatever the container runtime makes of it: in a network of its own the pod
    # may listen on every port.
    sysctls:
    - name: net.ipv4.ip_unprivileged_port_start
      value: "0"
    {{- end }}
  {{- if $handover }}
  initContainers:
  # The directory on the node belongs to root, Headgate does not run as root: this
  # gives the directory to it, and ends.
  - name: handover
    image: {{ include "headgate.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [handover, prepare, --dir={{ $handover }}, --owner=65532:65532]
    securityContext:
      runAsNonRoot: false
      runAsUser: 0
      runAsGroup: 0
      readOnlyRootFilesystem: true
      allowPrivilegeEscalation: false
      capabilities:
        drop: [ALL]
        add: [CHOWN]
    resources:
      requests:
        cpu: 10m
        memory: 32Mi
      limits:
        memory: 64Mi
    volumeMounts:
    - name: handover
      mountPath: {{ $handover }}
  {{- end }}
  containers:
  - name: headgate
    image: {{ include "headgate.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
    - controller
    - --controller-name={{ .Values.controllerName }}
    - --leader-election-name={{ include "headgate.fullname" . }}-leader
    {{- if not .Values.gatewayServices }}
    - --gateway-services=false
    {{- end }}
    {{- if $host }}
    {{- range .Values.hostNetwork.addressPool }}
    - --address-pool={{ . }}
    {{- end }}
    {{- range .Values.hostNetwork.bindAddresses }}
    - --bind-address={{ . }}
    {{- end }}
    {{- range .Values.hostNetwork.nodeAddresses }}
    - --node-address={{ . }}
    {{- end }}
    {{- with $handover }}
    - --handover-dir={{ . }}
    {{- end }}
    {{- else }}
    - --address-service={{ .Release.Namespace }}/{{ include "headgate.fullname" . }}
    {{- end }}
    - --admin-address={{ with .Values.adminPort }}127.0.0.1:{{ . }}{{ end }}
    - --admin-socket=/run/headgate-pod/admin.sock
    {{- if .Values.metrics.enabled }}
    - --metrics-address=:{{ .Values.metrics.port }}
    {{- end }}
    - --drain-period={{ .Values.drainPeriodSeconds }}s
    - --log-level={{ .Values.logging.level }}
    - --log-format={{ .Values.logging.format }}
    - --access-log={{ ternary "-" "off" (eq .Values.accessLog "stdout") }}
    {{- if .Values.workers }}
    - --workers={{ .Values.workers }}
    {{- end }}
    {{- range .Values.trustedCIDRs }}
    - --trusted-cidr={{ . }}
    {{- end }}
    {{- range .Values.extraArgs }}
    - {{ . | quote }}
    {{- end }}
    env:
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    {{- with include "headgate.memory" . }}
    # Nine tenths of the limit: Go's collector works harder before the kernel kills.
    - name: GOMEMLIMIT
      value: {{ . | quote }}
    {{- end }}
    {{- with .Values.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    securityContext:
      readOnlyRootFilesystem: true
      {{- if $host }}
      # The program in the image has the file capability to listen on ports below
      # 1024. Without escalation the kernel would ignore it.
      allowPrivilegeEscalation: true
      capabilities:
        drop: [ALL]
        add: [NET_BIND_SERVICE]
      {{- else }}
      allowPrivilegeEscalation: false
      capabilities:
        drop: [ALL]
      {{- end }}
    # Asked through a socket in the pod: nothing of the node's network is needed,
    # and two pods on one node are told apart.
    startupProbe:
      exec:
        command: [/headgate, probe, live, --socket=/run/headgate-pod/admin.sock]
      periodSeconds: 1
      timeoutSeconds: 5
      failureThreshold: 60
    readinessProbe:
      exec:
        command: [/headgate, probe, ready, --socket=/run/headgate-pod/admin.sock]
      periodSeconds: 5
      timeoutSeconds: 5
    livenessProbe:
      exec:
        command: [/headgate, probe, live, --socket=/run/headgate-pod/admin.sock]
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 3
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    volumeMounts:
    - name: admin
      mountPath: /run/headgate-pod
    {{- if $handover }}
    - name: handover
      mountPath: {{ $handover }}
    {{- end }}
  volumes:
  - name: admin
    emptyDir:
      sizeLimit: 1Mi
  {{- if $handover }}
  # Where the next pod on this node asks the last one for its sockets.
  - name: handover
    hostPath:
      path: {{ $handover }}
      type: DirectoryOrCreate
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not $host }}
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "headgate.selector" . | nindent 8 }}
  {{- end }}
{{- end -}}
