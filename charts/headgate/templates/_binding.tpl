{{- /* The subjects of every binding. */ -}}
{{- define "headgate.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "headgate.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- /* The rules of the role in a file of files/rbac, which are copies of those in
config/rbac. Takes the file's name and the root.
The Lease has the release's name. */ -}}
{{- define "headgate.rules" -}}
{{- $root := index . 1 -}}
{{- $role := $root.Files.Get (printf "files/rbac/%s.yaml" (index . 0)) | splitList "\n---\n" | first | fromYaml -}}
rules:
{{- range $rule := $role.rules }}
- {{ toYaml $rule | replace "headgate-leader" (printf "%s-leader" (include "headgate.fullname" $root)) | nindent 2 | trim }}
{{- end }}
{{- end -}}
