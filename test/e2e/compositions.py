# SPDX-License-Identifier: Apache-2.0
"""Checks on rendered manifests that need no cluster.

  compositions.py pairs MANIFESTS HELM      a third of the pairs of features, in one order, against the chart with the same
                                            features; with GPUSCALE_NIGHTLY all of them, in both orders
  compositions.py names MANIFESTS DOCS      names of cluster-wide objects in the manifests, and of those that pages create
  compositions.py walk N                    prints a walk over 0..N-1: there and back; with GPUSCALE_NIGHTLY one in which every
                                            ordered pair is a step
  compositions.py flags < OBJECTS.json      prints the flags of each program and the rights of each account
Prints one line per check, "ok NAME" or "not ok NAME", with the differences after the latter, each behind "# ".
"""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

import effective

# Name: (folders of manifests/, values of the chart). A folder is a resource if it is a Kustomization, else a component.
FEATURES = {
    "capacity": (["capacity"], ["capacity.enabled=true"]),
    "capacity-controller": (["capacity-controller"], ["capacity.controller=true"]),
    "cluster-fleets": (["cluster-fleets"], ["clusterFleets.enabled=true"]),
    "kinds": (["kinds"], ["kinds={rollouts,leaderworkersets,disaggregatedsetrolescalers,podcliquescalinggroups,dynamographdeploymentscalingadapters,modelservings,modelservingrolereplicas,jobs,jobsets,rayclusters,inferenceservices}"]),
    "pools": (["pools"], ["pools.enabled=true"]),
    "victims": (["victims"], ["victims.enabled=true"]),
    "scaled-objects": (["scaled-objects"], ["scaledObjects.enabled=true"]),
    "scaled-objects-authentication": (["scaled-objects-authentication", "scaled-objects"],
                                      ["scaledObjects.enabled=true", "scaledObjects.authentication=true"]),
    "remediate": (["remediate"], ["remediate.enabled=true"]),
    "remediate-devices": (["remediate-devices", "remediate"], ["remediate.enabled=true", "remediate.deviceTaints=true"]),
    "hpa-bridge": (["hpa-bridge"], ["externalMetrics.enabled=true"]),
    "custom-metrics": (["components/custom-metrics", "hpa-bridge"], ["externalMetrics.enabled=true", "externalMetrics.custom=true"]),
    "cert-manager": (["components/cert-manager", "hpa-bridge"],
                     ["externalMetrics.enabled=true", "externalMetrics.certificate.certManager=true"]),
    "exporter": (["exporter"], ["exporter.enabled=true"]),
}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C takes a tenth of the time
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "APIService", "Namespace", "PriorityClass"}


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])}: {done.stderr.strip()}")
    return done.stdout


def objects_of(text):
    return [o for o in yaml.load_all(text, Loader=LOADER) if o]


def kind_of(folder):
    return yaml.safe_load((folder / "kustomization.yaml").read_text())["kind"]


def kustomized(manifests, names):
    """Renders base and these folders, in this order."""
    with tempfile.TemporaryDirectory(dir=manifests.parent / "build") as folder:
        up = os.path.relpath(manifests, folder)
        lists = {"resources": [f"{up}/base"], "components": []}
        for name in names:
            lists["components" if kind_of(manifests / name) == "Component" else "resources"].append(f"{up}/{name}")
        (pathlib.Path(folder) / "kustomization.yaml").write_text(
            yaml.safe_dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", **lists}))
        return objects_of(output_of("kubectl", "kustomize", folder))


def summary(objects):
    """What must be equal: identities of the objects, flags of the programs, rights of the accounts."""
    objects = effective.effective(objects)
    # The chart's: --create-namespace makes the one of the release, and hooks do not belong to it.
    objects = [o for o in objects if "helm.sh/hook" not in o["metadata"].get("annotations", {})
               and (o["kind"], o["metadata"]["name"]) != ("Namespace", "gpuscale-system")]
    return {
        "objects": sorted(f"{o['kind']} {o['metadata'].get('namespace', '')}/{o['metadata']['name']}" for o in objects),
        "flags": sorted(f"{o['metadata']['name']}: {word}" for o in objects for c in effective.containers(o)
                        for word in c.get("args", []) + [f"{n}={json.dumps(v)}" for n, v in c.get("env", {}).items()]),
        "rights": [" ".join(right) for right in effective.rights(objects)],
    }


def report(name, differences):
    print(("not ok " if differences else "ok ") + name)
    for line in differences:
        print("# " + line)


def differences(got, want):
    lines = []
    for part in want:
        lines += [f"{part}: only in kustomize: {x}" for x in got[part] if x not in want[part]]
        lines += [f"{part}: only in the chart: {x}" for x in want[part] if x not in got[part]]
    return lines


def pairs(manifests, helm):
    charts, place = {}, {name: i for i, name in enumerate(FEATURES)}
    for first, second in itertools.permutations(FEATURES, 2):
        both = place[first] + place[second]
        if "GPUSCALE_NIGHTLY" not in os.environ and (both % 3 or (place[first] < place[second]) == (both % 2 == 0)):
            continue
        key = frozenset((first, second))
        names = list(dict.fromkeys(FEATURES[first][0] + FEATURES[second][0]))
        try:
            if key not in charts:
                values = ["exporter.enabled=false"] + FEATURES[first][1] + FEATURES[second][1]
                charts[key] = summary(objects_of(output_of(helm, "template", "gpuscale", str(manifests / "chart"), "--namespace",
                                                           "gpuscale-system", "--set", ",".join(values))))
            report(f"{first} and then {second} are the chart with both", differences(summary(kustomized(manifests, names)), charts[key]))
        except (RuntimeError, SystemExit) as error:
            report(f"{first} and then {second} are the chart with both", str(error).splitlines())


def names(manifests, docs):
    defined = {}
    for kustomization in manifests.rglob("kustomization.yaml"):
        for name in yaml.safe_load(kustomization.read_text()).get("resources", []):
            file = (kustomization.parent / name).resolve()
            if file.is_file():
                for obj in objects_of(file.read_text()):
                    if obj["kind"] in CLUSTER_WIDE:
                        defined.setdefault((obj["kind"], obj["metadata"]["name"]), set()).add(str(file.relative_to(manifests)))
    report(f"each of {len(defined)} cluster-wide objects is in one file",
           [f"{kind} {name}: {', '.join(sorted(files))}" for (kind, name), files in sorted(defined.items()) if len(files) > 1])
    taken = {(kind.lower(), name) for kind, name in defined}
    pages = list(docs.rglob("*.md")) + list(manifests.rglob("*.md")) + list(manifests.rglob("*.yaml"))
    created = [(page, match) for page in pages
               for match in re.findall(r"kubectl create (clusterrole|clusterrolebinding) (\S+)", page.read_text())]
    report(f"no page creates an object of a name that a manifest has ({len(created)} do)" if created else "pages create bindings",
           [f"{page.name}: {kind} {name}" for page, (kind, name) in created if (kind, name) in taken] if created else ["none found"])


def walk(n):
    """A closed walk over the complete directed graph of n nodes that takes every edge once (Hierholzer), or the short one."""
    if "GPUSCALE_NIGHTLY" not in os.environ:
        return list(range(n)) + list(range(n - 1))[::-1]
    left = {a: [b for b in range(n) if b != a] for a in range(n)}
    stack, path = [0], []
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            path.append(stack.pop())
    return path[::-1]


def main():
    what, *rest = sys.argv[1:]
    if what == "pairs":
        pairs(pathlib.Path(rest[0]).resolve(), rest[1])
    elif what == "names":
        names(pathlib.Path(rest[0]).resolve(), pathlib.Path(rest[1]))
    elif what == "walk":
        print(*walk(int(rest[0])), sep="\n")
    elif what == "flags":
        found = summary(json.load(sys.stdin))
        print(*found["flags"], *found["rights"], sep="\n")


if __name__ == "__main__":
    main()
