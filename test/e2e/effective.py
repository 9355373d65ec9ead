# SPDX-License-Identifier: Apache-2.0
"""Effective settings of rendered objects.

The kustomizations give flags through ConfigMaps (GPUSCALE_RUN_SCALED_OBJECTS: "true"), the chart through arguments
(--scaled-objects). effective() replaces both by the flags that the program then has, so that the two can be compared.
As a program: reads a JSON array of objects from stdin and writes it back that way.
"""
import json
import sys


def containers(obj):
    return obj.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])


def resolve(container, maps):
    """The environment of the container and the names of the ConfigMaps that it reads, as the kubelet resolves them."""
    env, read = {}, set()
    for source in container.get("envFrom", []):
        ref = source["configMapRef"]
        read.add(ref["name"])
        if ref["name"] not in maps and not ref.get("optional"):
            raise SystemExit(f"ConfigMap {ref['name']} is missing")
        env.update({key: {"value": value} for key, value in maps.get(ref["name"], {}).items()})
    for variable in container.get("env", []):
        entry = {key: value for key, value in variable.items() if key != "name"}
        ref = entry.get("valueFrom", {}).get("configMapKeyRef")
        if ref:
            read.add(ref["name"])
            value = maps.get(ref["name"], {}).get(ref["key"])
            if value is None:
                if not ref.get("optional"):
                    raise SystemExit(f"ConfigMap {ref['name']} lacks {ref['key']}")
                continue
            entry = {"value": value}
        env[variable["name"]] = entry
    return env, read


def flags(container, env):
    """Arguments of the program, those that come from the environment included; removes the latter from `env`."""
    args = list(container.get("args", []))
    prefix = "GPUSCALE_" + (args[0].upper() if args else "") + "_"
    for name in sorted(n for n in env if n.startswith("GPUSCALE_") and n != "GPUSCALE_PROMETHEUS_URL"):
        value = env.pop(name).get("value")
        if name.startswith(prefix) and value != "false":
            flag = "--" + name[len(prefix):].lower().replace("_", "-")
            args.append(flag if value == "true" else f"{flag}={value}")
    return args[:1] + sorted(args[1:])


def effective(objects):
    """The objects with effective arguments and environment, without the ConfigMaps that these come from."""
    maps = {o["metadata"]["name"]: o.get("data", {}) for o in objects if o["kind"] == "ConfigMap"}
    read_by_any = set()
    for obj in objects:
        for container in containers(obj):
            env, read = resolve(container, maps)
            read_by_any |= read
            if container["name"] == "gpuscale":
                container["args"] = flags(container, env)
            container.pop("envFrom", None)
            container.pop("env", None)
            if env:
                container["env"] = env
    return [o for o in objects if not (o["kind"] == "ConfigMap" and o["metadata"]["name"] in read_by_any)]


def rights(objects):
    """(account, namespace or "*", verb, group, resource or path) of everything that a binding grants, sorted."""
    roles = {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]): o.get("rules", [])
             for o in objects if o["kind"] in ("Role", "ClusterRole")}
    found = set()
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        where = binding["metadata"].get("namespace")
        ref = binding["roleRef"]
        rules = roles.get((ref["kind"], where if ref["kind"] == "Role" else None, ref["name"]))
        for subject in binding["subjects"]:
            account = f"{subject.get('namespace', '')}/{subject['name']}"
            if rules is None:  # a role of Kubernetes
                found.add((account, where or "*", "bound to", ref["kind"], ref["name"]))
                continue
            for rule in rules:
                for verb in rule["verbs"]:
                    for group in rule.get("apiGroups", []):
                        for resource in rule.get("resources", []):
                            found.add((account, where or "*", verb, group, resource))
    return sorted(found)


if __name__ == "__main__":
    json.dump(effective(json.load(sys.stdin)), sys.stdout, indent=2, sort_keys=True)
    print()
