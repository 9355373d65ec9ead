# SPDX-License-Identifier: Apache-2.0
# chart_owners.py RULES TESTS OWNERS OUT: tests for promtool of the label `owner` of every alert of the chart.
#   RULES   a folder with the rendered rules, one file per PrometheusRule, named as those of manifests/monitoring/rules
#   TESTS   manifests/monitoring/tests: their input makes every alert fire as its expression does
#   OWNERS  JSON: {"owners": {team: [namespace, ..]}, "defaultOwner": team}
#   OUT     a folder for the tests: each file of TESTS with the owner that each alert must have (tests-*.yaml), and one
#           in which every alert fires with each label that can hold a namespace (labels.yaml, labels-rules.yaml)
# Prints what the first kind covers, as lines `ALERT OWNED|DEFAULT`.
import json, pathlib, re, sys, yaml

rules, tests, owners_file, out = map(pathlib.Path, sys.argv[1:])
values = json.loads(owners_file.read_text())
team_of = {name: team for team, names in values["owners"].items() for name in names}


def owner(labels):
    """The first of these labels that an alert has names the workload's namespace."""
    namespace = next((labels[key] for key in ("wl_namespace", "exported_namespace", "namespace") if labels.get(key)), None)
    return team_of.get(namespace, values["defaultOwner"])


covered = set()
for path in sorted(tests.glob("*.yaml")):
    # `0x300`, a zero 300 times, would be a number in hexadecimal.
    test = yaml.safe_load(re.sub(r"(values: )(0x[^}#\n]*)", r"\1'\2'", path.read_text()))
    test["rule_files"] = [str(rules / pathlib.Path(name).name) for name in test["rule_files"]]
    for case in test["tests"]:
        # The other expectations are about no label.
        case.pop("promql_expr_test", None)
        case["alert_rule_test"] = [expected for expected in case.get("alert_rule_test", []) if expected.get("exp_alerts")]
        for expected in case["alert_rule_test"]:
            for i, alert in enumerate(expected.get("exp_alerts", [])):
                labels = alert["exp_labels"]
                # YAML anchors share the mapping: make a new one.
                expected["exp_alerts"][i] = {**alert, "exp_labels": {**labels, "owner": owner(labels)}}
                covered.add((expected["alertname"], "OWNED" if owner(labels) in values["owners"] else "DEFAULT"))
    test["tests"] = [case for case in test["tests"] if case["alert_rule_test"]]
    if not test["tests"]:
        continue
    (out / f"tests-{path.name}").write_text(yaml.safe_dump(test, sort_keys=False))
print("\n".join(f"{name} {kind}" for name, kind in sorted(covered)))

owned = sorted(team_of)[0]
series = [{}, {"wl_namespace": owned}, {"exported_namespace": owned, "namespace": "gpuscale-exporter"}, {"namespace": owned},
          {"wl_namespace": "unowned"}, {"namespace": "gpuscale-exporter"}]
fired, cases = [], []
for path in sorted(rules.glob("*.yaml")):
    for group in yaml.safe_load(path.read_text())["groups"]:
        for rule in group["rules"]:
            if "alert" not in rule:
                continue
            name = f"{rule['alert']}{len(fired)}"
            fired.append({"alert": name, "expr": "probe", "labels": rule.get("labels", {})})
            static = {k: v for k, v in rule.get("labels", {}).items() if k != "owner"}
            cases.append({"eval_time": "2m", "alertname": name,
                          "exp_alerts": [{"exp_labels": {**labels, **static, "owner": owner(labels)}} for labels in series]})
inputs = [{"series": "probe{%s}" % ",".join(f'{k}="{v}"' for k, v in labels.items()), "values": "1x10"} for labels in series]
(out / "labels-rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "labels", "rules": fired}]}, sort_keys=False, width=1000))
(out / "labels.yaml").write_text(yaml.safe_dump({"rule_files": [str(out / "labels-rules.yaml")], "evaluation_interval": "1m",
                                                 "tests": [{"interval": "1m", "input_series": inputs, "alert_rule_test": cases}]}, sort_keys=False))
