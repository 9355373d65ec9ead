{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /* gpuscale.labels NAME..: labels of an object. (list . "gpuscale") */ -}}
{{- define "gpuscale.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/part-of: gpuscale
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end -}}
{{- define "gpuscale.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}
{{- if $image.digest -}}{{ $image.repository }}@{{ $image.digest }}
{{- else -}}{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- /* What a container may do: nothing that it does not need. */ -}}
{{- define "gpuscale.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
{{- define "gpuscale.nonroot" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}
{{- /* gpuscale.scheduling NAME: where pods of the controller's program go. (list . "gpuscale") */ -}}
{{- define "gpuscale.scheduling" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- if $root.Values.affinity }}
  {{- toYaml $root.Values.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: {{ $name }}
  {{- end }}
topologySpreadConstraints:
{{- if $root.Values.topologySpreadConstraints }}
{{- toYaml $root.Values.topologySpreadConstraints | nindent 0 }}
{{- else }}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
{{- end }}
{{- end -}}
{{- /* gpuscale.networkPolicy NAME PORT..: in: these ports, and http from networkPolicy.from alone; out: what networkPolicy.egress
says. (list . "gpuscale" "http") */ -}}
{{- define "gpuscale.networkPolicy" -}}
{{- $root := index . 0 -}}{{- $name := index . 1 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gpuscale.labels" (list $root $name) | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
  policyTypes:
  - Ingress
  {{- if $root.Values.networkPolicy.egress }}
  - Egress
  {{- end }}
  ingress:
  {{- range slice . 2 }}
  - ports:
    - protocol: TCP
      port: {{ . }}
    {{- if and (eq . "http") $root.Values.networkPolicy.from }}
    from:
      {{- toYaml $root.Values.networkPolicy.from | nindent 6 }}
    {{- end }}
  {{- end }}
  {{- with $root.Values.networkPolicy.egress }}
  egress:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
