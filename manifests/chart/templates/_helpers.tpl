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
{{- /* gpuscale.foreign ROOT PLURAL: not empty if the cluster has that definition from another installation (kubectl apply, another release),
which Helm would refuse to take over. Without a cluster (helm template), none has. */ -}}
{{- define "gpuscale.foreign" -}}
{{- $root := index . 0 -}}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (printf "%s.gpuscale.dev" (index . 1)) -}}
{{- $of := .metadata.annotations | default dict -}}
{{- if or (ne (get $of "meta.helm.sh/release-name") $root.Release.Name) (ne (get $of "meta.helm.sh/release-namespace") $root.Release.Namespace) -}}
{{ .metadata.name }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* gpuscale.definition ROOT PLURAL FILE: the definition in FILE, which stays when the release goes; nothing if it is foreign. */ -}}
{{- define "gpuscale.definition" -}}
{{- if not (include "gpuscale.foreign" .) -}}
{{ (index . 0).Files.Get (index . 2) | replace "\nmetadata:\n  name:" "\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n  name:" }}
{{- end -}}
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
{{- /* gpuscale.priceBook: cost.priceBook as YAML, whether it is an object or the text of a file; nothing without one. */ -}}
{{- define "gpuscale.priceBook" -}}
{{- $book := .Values.cost.priceBook -}}
{{- if kindIs "string" $book -}}
{{- $book = fromYaml $book -}}
{{- if $book.Error }}{{ fail (printf "cost.priceBook: expected a PriceBook in YAML: %s" $book.Error) }}{{ end -}}
{{- end -}}
{{- if $book -}}
{{- $book = merge (deepCopy $book) (dict "apiVersion" "gpuscale.dev/v1alpha1" "kind" "PriceBook") -}}
{{- if ne $book.kind "PriceBook" }}{{ fail (printf "cost.priceBook: expected kind PriceBook, got %s" $book.kind) }}{{ end -}}
{{- if not $book.models }}{{ fail "cost.priceBook: expected models with their prices" }}{{ end -}}
{{- /* gpuscale takes prices as strings. */ -}}
{{- range $book.models }}{{ $_ := set . "perGPUHour" (toString .perGPUHour) }}{{ end -}}
{{- range $book.discounts }}{{ $_ := set . "percent" (toString .percent) }}{{ end -}}
{{- if hasKey $book "assumedPerGPUHour" }}{{ $_ := set $book "assumedPerGPUHour" (toString $book.assumedPerGPUHour) }}{{ end -}}
{{- with $book.electricity }}{{ $_ := set . "perKWh" (toString .perKWh) }}{{ end -}}
{{- toYaml $book -}}
{{- end -}}
{{- end -}}
{{- /* gpuscale.price PRICE WHAT: a price of the book as a number of PromQL. (list "4.10" "models[0].perGPUHour") */ -}}
{{- define "gpuscale.price" -}}
{{- $price := index . 0 | toString -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$" $price) -}}
{{- fail (printf "cost.priceBook: %s: expected a decimal number such as 2.10, got %q" (index . 1) $price) -}}
{{- end -}}
{{- $price -}}
{{- end -}}
{{- /* What the controller's program reads from files of other objects: prices and sources. */ -}}
{{- define "gpuscale.fileArgs" -}}
{{- if include "gpuscale.priceBook" . }}
- --prices=/etc/gpuscale/prices/prices.yaml
{{- end }}
{{- include "gpuscale.sourcesArgs" . }}
{{- end -}}
{{- /* gpuscale.seriesMatcher ROOT MATCHER: the argument; by default the job that the Prometheus operator names after the PodMonitor. */ -}}
{{- define "gpuscale.seriesMatcher" -}}
{{- $root := index . 0 -}}
{{- printf "--series-matcher=%s" (default (printf "job=%q" (printf "%s/gpuscale-exporter" $root.Values.exporter.namespace)) (index . 1)) | quote -}}
{{- end -}}
{{- define "gpuscale.sourcesArgs" -}}
{{- if and .Values.sources.secretName .Values.sources.configMapName }}{{ fail "sources: expected secretName or configMapName, got both" }}{{ end }}
{{- if or .Values.sources.secretName .Values.sources.configMapName }}
- --sources=/etc/gpuscale/sources/{{ .Values.sources.key }}
{{- end }}
{{- end -}}
{{- /* gpuscale.fileMounts ROOT PRICES: their mounts; gpuscale.fileVolumes: their volumes. PRICES: whether prices are among them. */ -}}
{{- define "gpuscale.fileMounts" -}}
{{- $root := index . 0 -}}
{{- if and (index . 1) (include "gpuscale.priceBook" $root) }}
- name: prices
  mountPath: /etc/gpuscale/prices
  readOnly: true
{{- end }}
{{- if or $root.Values.sources.secretName $root.Values.sources.configMapName }}
- name: sources
  mountPath: /etc/gpuscale/sources
  readOnly: true
{{- end }}
{{- end -}}
{{- define "gpuscale.fileVolumes" -}}
{{- $root := index . 0 -}}
{{- if and (index . 1) (include "gpuscale.priceBook" $root) }}
- name: prices
  configMap:
    name: gpuscale-prices
{{- end }}
{{- if $root.Values.sources.secretName }}
- name: sources
  secret:
    secretName: {{ $root.Values.sources.secretName }}
{{- else if $root.Values.sources.configMapName }}
- name: sources
  configMap:
    name: {{ $root.Values.sources.configMapName }}
{{- end }}
{{- end -}}
