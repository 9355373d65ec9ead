# The cluster of run-capacity-command.
def node($name; $labels; $spec; $gpus): {apiVersion: "v1", kind: "Node", metadata: {name: $name, labels: $labels}, spec: $spec,
	status: {conditions: [{type: "Ready", status: "True"}], allocatable: {cpu: "16", memory: "64Gi", pods: "110", "nvidia.com/gpu": $gpus}}};
def h100: {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "karpenter.sh/nodepool": "h100", rack: "r1"};
def pod($ns; $name; $node; $labels; $gpus; $status): {apiVersion: "v1", kind: "Pod", metadata: {namespace: $ns, name: $name, labels: $labels},
	spec: ({containers: [{name: "main", resources: {requests: {"nvidia.com/gpu": $gpus}}}]} + if $node == "" then {} else {nodeName: $node} end), status: $status};
def deployment($ns; $name; $spec): {apiVersion: "apps/v1", kind: "Deployment", metadata: {namespace: $ns, name: $name},
	spec: {replicas: 0, selector: {matchLabels: {app: $name}}, template: {metadata: {labels: {app: $name}}, spec: $spec}}};
def gpus($n): {containers: [{name: "main", resources: {limits: {"nvidia.com/gpu": $n, cpu: "4"}}}]};
def policy($ns; $name; $kind): {apiVersion: "gpuscale.dev/v1alpha1", kind: "GPUAutoscaler", metadata: {namespace: $ns, name: $name},
	spec: {scaleTargetRef: {kind: $kind, name: $name}}};
def dra($kind; $name): {apiVersion: "resource.k8s.io/v1", kind: $kind, metadata: {name: $name}};
def device($name): {name: $name, attributes: {productName: {string: "NVIDIA B200"}, type: {string: "gpu"}, uuid: {string: ("GPU-" + $name)}}};
def template($name; $request): dra("ResourceClaimTemplate"; $name) | .metadata.namespace = "training" | .spec.spec.devices.requests = [{name: "gpu", exactly: $request}];
def unschedulable: {phase: "Pending", conditions: [{type: "PodScheduled", status: "False", reason: "Unschedulable",
	message: "0/7 nodes are available: 2 Insufficient nvidia.com/gpu, 5 node(s) had untolerated taint(s)."}]};
node("a"; h100; {}; "8"),
node("b"; h100; {taints: [{key: "nvidia.com/gpu", effect: "NoSchedule"}]}; "8"),
node("c"; {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-nodepool": "l4"}; {unschedulable: true}; "4"),
node("d"; {}; {}; "-1"),
node("e"; {}; {}; "1"),
node("f"; h100; {}; "2"),
(node("g"; h100; {}; "8") | .status.conditions[0].status = "Unknown"),
pod("x"; "running"; "a"; {}; "3"; {phase: "Running"}),
pod("x"; "done"; "a"; {}; "5"; {phase: "Succeeded"}),
pod("x"; "lost"; "f"; {}; "4"; {phase: "Running"}),
pod("serving"; "llama-1"; ""; {app: "llama"}; "16"; unschedulable),
deployment("serving"; "llama"; gpus("2")),
deployment("serving"; "tolerant"; gpus("2") + {tolerations: [{key: "nvidia.com/gpu", operator: "Exists"}], nodeSelector: {rack: "r1"},
	affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "kubernetes.io/hostname", labelSelector: {matchLabels: {app: "tolerant"}}}]}}}),
deployment("training"; "impossible"; gpus("1") + {nodeSelector: {rack: "r1"}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: "rack", operator: "DoesNotExist"}]}]}}}}),
deployment("training"; "claims"; {containers: [{name: "main"}], resourceClaims: [{name: "gpu", resourceClaimTemplateName: "two"}]}),
deployment("training"; "odd-claims"; {containers: [{name: "main"}], resourceClaims: [{name: "gpu", resourceClaimTemplateName: "odd"}]}),
(dra("ResourceSlice"; "e-1") | .spec = {driver: "gpu.nvidia.com", nodeName: "e", pool: {name: "e", generation: 1, resourceSliceCount: 1},
	devices: [device("gpu-0"), device("gpu-1"), device("gpu-2"), (device("gpu-3") | .taints = [{key: "unhealthy", effect: "NoSchedule"}])]}),
(dra("DeviceClass"; "gpu.nvidia.com") | .spec.selectors = [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]),
(dra("ResourceClaim"; "held") | .metadata.namespace = "x" | .status.allocation.devices.results = [{request: "gpu", driver: "gpu.nvidia.com", pool: "e", device: "gpu-1"}]),
template("two"; {deviceClassName: "gpu.nvidia.com", count: 2}),
template("odd"; {deviceClassName: "gpu.nvidia.com", selectors: [{cel: {expression: "device.driver.matches('gpu.*')"}}]}),
policy("serving"; "llama"; "Deployment"), policy("serving"; "tolerant"; "Deployment"), policy("serving"; "gone"; "Deployment"),
policy("training"; "impossible"; "Deployment"), policy("training"; "claims"; "Deployment"), policy("training"; "odd-claims"; "Deployment")
