# SPDX-License-Identifier: Apache-2.0
# GPUAutoscalers in every state, as the API server holds them, and Events about one. Times are so long ago that their
# short form is the same for the whole run: from eight hours on that is whole hours, and each is ten minutes old.
def ago($s): now - $s | floor | todate;
def hours($n): ago($n * 3600 + 600);
def object($ns; $name; $spec): {apiVersion: "gpuscale.dev/v1alpha1", kind: "GPUAutoscaler",
  metadata: {name: $name, namespace: $ns, generation: 2, creationTimestamp: ago(3 * 86400),
    managedFields: [{manager: "kubectl", operation: "Apply", fieldsV1: {"f:spec": {}}}]},
  spec: ({scaleTargetRef: {kind: "Deployment", name: $name}, minReplicas: 1, maxReplicas: 16,
    signals: [{name: "queue", query: "sum(waiting)", watermarks: {high: "8", low: "2"}}]} + $spec)};
def condition($type; $status; $reason; $message): {type: $type, status: $status, reason: $reason, message: $message,
  lastTransitionTime: hours(10), observedGeneration: 2};
def event($n; $reason; $type; $message): {apiVersion: "v1", kind: "Event", metadata: {name: "llama.\($n)", namespace: "serving"},
  involvedObject: {kind: "GPUAutoscaler", namespace: "serving", name: "llama"}, reason: $reason, type: $type,
  message: $message, count: $n, source: {component: "gpuscale"}, firstTimestamp: hours(11), lastTimestamp: hours(8 + $n)};

(object("serving"; "llama"; {gpus: {perReplica: 2, model: "H100-SXM"}}) | .metadata += {labels: {team: "ml"}, annotations: {"owner": "ann",
    "kubectl.kubernetes.io/last-applied-configuration": "{\"a\":\"long text\"}"}}
  | .status = {observedGeneration: 2, lastUpdateTime: hours(9), currentReplicas: 6, desiredReplicas: 6, readyReplicas: 4,
    lastScaleTime: hours(10), action: "None", reason: "DesiredWithinRange", message: "the desired count is within the acceptable range",
    signalsSummary: "queue 12/8, sm_active 0.71/0.7",
    signals: [{name: "queue", value: "12", target: "8", proposal: 6, state: "OK", reason: "AboveHighWatermark", sampleTime: hours(9)},
      {name: "sm_active", value: "0.7123456", target: "0.7", proposal: 6, state: "OK", reason: "WithinTolerance", sampleTime: hours(9)}],
    recommendations: [{time: hours(9), replicas: 6}], scaleEvents: [{time: hours(10), change: 2}], startupSeconds: 95,
    decisions: [{time: hours(11), action: "ScaleUp", reason: "AboveHighWatermark", from: 2, to: 4, message: "queue is 40, above its high watermark 8"},
      {time: hours(10), action: "ScaleUp", reason: "ScaleUpLimit", from: 4, to: 6, message: "a rate limit allows 6 now"}],
    conditions: [condition("Ready"; "True"; "Ready"; "the policy is valid, its target can be scaled and its signals can be read"),
      condition("AbleToScale"; "True"; "ReadyForNewScale"; "recommended size matches current size"),
      condition("Conflict"; "False"; "NoConflict"; "no other autoscaler drives the target")]}),
(object("serving"; "embed"; {scaleTargetRef: {kind: "StatefulSet", name: "embedder"}, minReplicas: 0, paused: false, gpus: {model: "X1"}})
  | .metadata.annotations = {"gpuscale.dev/paused": "true", "gpuscale.dev/paused-reason": "incident 7"}
  | .status = {observedGeneration: 1, lastUpdateTime: hours(9), currentReplicas: 3, desiredReplicas: 3, action: "Hold", reason: "Paused",
    message: "paused", signalsSummary: "queue ?/8", signals: [{name: "queue", target: "8", proposal: 3, state: "Missing", reason: "NoData"}],
    conditions: [condition("Paused"; "True"; "Paused"; "paused")]}),
(object("serving"; "by-manifest"; {paused: true}) | .status = {currentReplicas: 2, desiredReplicas: 2, reason: "Paused",
    signals: [{name: "queue", value: "4", target: "8", proposal: 2, state: "OK"}], lastUpdateTime: hours(9)}),
(object("training"; "batch"; {dryRun: true}) | del(.spec.minReplicas)),
(object("odd"; "older"; {unknown: 1}) | .status = {currentReplicas: "three", reason: "line\nbreak \u001b[31m", later: [1]}),
event(1; "SuccessfulRescale"; "Normal"; "from 4 to 6: a rate limit allows 6 now"),
event(2; "FailedGetScale"; "Warning"; "the API server answered 503")
