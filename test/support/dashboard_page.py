#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the dashboards of manifests/monitoring from a Prometheus: each panel with its type, unit, thresholds, legend and place,
as one HTML page without scripts. A stand-in for Grafana, which shows whether a panel has data and says what it claims.

dashboard_page.py --prometheus URL --out FILE [--cluster NAME] [--absent-cluster NAME] [--minutes 5] [--wait 60] DASHBOARD.json..

Prints a line of JSON per target: dashboard, panel, expr, series (how many there are), elsewhere (how many values other than 0
there are for a cluster that does not exist, with --absent-cluster). A target without series is tried again for --wait seconds.
"""
import argparse
import html
import json
import math
import re
import time
import urllib.parse
import urllib.request

COLOURS = ["#3274d9", "#e0752d", "#56a64b", "#b877d9", "#e02f44", "#8f8f00", "#1f8a8a", "#a352cc", "#7c5a3a", "#5a6a7a"]
NAMED = {"green": "#1a7f37", "orange": "#b35900", "red": "#c4162a", "blue": "#1f60c4"}
ROW_PX, COLUMN_PX, POINTS, SERIES_MAX, ROWS_MAX, REPLY_MAX = 38, 58, 120, 40, 12, 64 << 20
e = html.escape


class Source:
    """The HTTP API of one Prometheus, with the variables of the dashboards filled in."""

    def __init__(self, url, cluster, minutes):
        self.url, self.cluster, self.seconds = url, cluster, minutes * 60

    def expand(self, expr, cluster=None):
        expr = expr.replace("$__rate_interval", "1m").replace("$cluster", cluster or self.cluster)
        return re.sub(r"\$(namespace|workload|model|policy|pool)\b", ".*", expr)

    def ask(self, path, **parameters):
        body = urllib.parse.urlencode(parameters).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + "/api/v1/" + path, body, timeout=30) as reply:
            return json.loads(reply.read(REPLY_MAX))["data"]["result"]

    def instant(self, expr, cluster=None):
        return self.ask("query", query=self.expand(expr, cluster))

    def range(self, expr):
        now = time.time()
        step = max(1, self.seconds // POINTS)
        return self.ask("query_range", query=self.expand(expr), start=now - self.seconds, end=now, step=step)


def number(value, unit, decimals=None):
    """A value as Grafana writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    steps, suffix, size = ["", " K", " M", " G", " T"], "", 1000.0
    if unit == "percentunit":
        return "%.*f %%" % (1 if decimals is None else decimals, 100 * value)
    if unit in ("bytes", "Bps"):
        steps, size = [" B", " KiB", " MiB", " GiB", " TiB"], 1024.0
        suffix = "/s" if unit == "Bps" else ""
    elif unit == "s" and 0 < abs(value) < 1:
        return "%.3g ms" % (value * 1000)
    else:
        suffix = {"celsius": " °C", "watt": " W", "s": " s", "h": " h", "kwatth": " kWh", "ops": " ops/s", "reqps": " req/s"}.get(unit, "")
    at = 0
    while abs(value) >= size and at < len(steps) - 1:
        value, at = value / size, at + 1
    text = "%.*f" % (decimals, value) if decimals is not None else "%.3g" % value
    return ("$" if unit == "currencyUSD" else "") + text + steps[at] + suffix


def name_of(metric, legend):
    if legend:
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda m: metric.get(m.group(1), ""), legend).strip() or legend
    return ", ".join("%s=%s" % item for item in sorted(metric.items()) if item[0] != "__name__")


def colour_of(value, defaults):
    colour = "green"
    for step in defaults["thresholds"]["steps"]:
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    return NAMED.get(colour, colour)


def last(series):
    return float(series["value"][1]) if "value" in series else float(series["values"][-1][1])


def legend_of(names):
    shown = "".join('<span><i style="background:%s"></i>%s</span>' % (COLOURS[i % len(COLOURS)], e(n)) for i, n in enumerate(names[:8]))
    return '<div class="legend">%s%s</div>' % (shown, "<span>and %d more</span>" % (len(names) - 8) if len(names) > 8 else "")


def is_right(name, panel):
    for override in panel["fieldConfig"]["overrides"]:
        places = [p["value"] for p in override["properties"] if p["id"] == "custom.axisPlacement"]
        options = override["matcher"]["options"]
        if "right" in places and (name == options or options.startswith("/") and re.search(options.strip("/"), name)):
            return True
    return False


def axis(values, defaults, stacked):
    low = defaults.get("min", min(values))
    high = defaults.get("max", max(values)) if not stacked else max(values)
    if high <= low:
        high = low + (abs(low) or 1)
    return low, high


def time_series(panel, series, width, height):
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    stacked = custom["stacking"]["mode"] == "normal"
    names = [s["name"] for s in series]
    lines, base = [], {}
    for s in series[:SERIES_MAX]:
        points = [(float(t), float(v)) for t, v in s["values"] if math.isfinite(float(v))]
        if stacked:
            points = [(t, base.setdefault(t, 0) + v) for t, v in points]
            base.update(points)
        lines.append(points)
    steps = [step["value"] for step in defaults["thresholds"]["steps"] if step["value"] is not None]
    parts, left, right, bottom = [], 78, 62 if any(is_right(n, panel) for n in names) else 8, 18
    every = [t for points in lines for t, _ in points]
    if not every:
        return '<p class="nodata">no finite value</p>'
    t0, t1 = min(every), max(max(every), min(every) + 1)
    inner, tall = width - left - right, height - bottom - 6

    def x(t):
        return left + inner * (t - t0) / (t1 - t0)

    for side in (False, True):
        of_side = [i for i in range(len(lines)) if is_right(names[i], panel) == side]
        values = [v for i in of_side for _, v in lines[i]]
        if not values:
            continue
        low, high = axis(values + (steps if not side and "max" not in defaults else []), {} if side else defaults, stacked)

        def y(v, low=low, high=high):
            return 6 + tall * (1 - (min(max(v, low), high) - low) / (high - low))

        for part in (0, 0.5, 1):
            v = low + (high - low) * part
            parts.append('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' % (left, width - right, y(v), y(v)))
            parts.append('<text x="%d" y="%.1f" text-anchor="%s">%s</text>' % (width - right + 5 if side else left - 5, y(v) + 4, "start" if side else "end", e(number(v, "short" if side else defaults["unit"]))))
        if not side and custom["thresholdsStyle"]["mode"] == "line":
            for step in defaults["thresholds"]["steps"]:
                if step["value"] is not None and low <= step["value"] <= high:
                    parts.append('<line class="threshold" stroke="%s" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' % (NAMED[step["color"]], left, width - right, y(step["value"]), y(step["value"])))
        for i in of_side:
            colour = COLOURS[i % len(COLOURS)]
            if custom["drawStyle"] == "bars":
                parts += ['<line stroke="%s" stroke-width="3" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>' % (colour, x(t), x(t), y(v), y(0)) for t, v in lines[i]]
                continue
            path, before = [], None
            for t, v in lines[i]:
                if before is not None and custom["lineInterpolation"] == "stepAfter":
                    path.append("%.1f,%.1f" % (x(t), y(before)))
                path.append("%.1f,%.1f" % (x(t), y(v)))
                before = v
            if len(path) == 1:
                parts.append('<circle r="3" fill="%s" cx="%s" cy="%s"/>' % (colour, *path[0].split(",")))
            parts.append('<polyline fill="none" stroke="%s" stroke-width="1.6" points="%s"/>' % (colour, " ".join(path)))
    for t, anchor in ((t0, "start"), (t1, "end")):
        parts.append('<text x="%.1f" y="%d" text-anchor="%s">%s</text>' % (x(t), height - 4, anchor, time.strftime("%H:%M:%S", time.gmtime(t))))
    return '<svg width="%d" height="%d" role="img">%s</svg>%s' % (width, height, "".join(parts), legend_of(names))


def stat(panel, series, *_):
    defaults = panel["fieldConfig"]["defaults"]
    cells = []
    for s in series:
        value = last(s)
        style = ' style="background:%s;color:#fff"' % colour_of(value, defaults) if panel["options"]["colorMode"] == "background" else ""
        cells.append("<div%s><b>%s</b>%s</div>" % (style, e(number(value, defaults["unit"], defaults.get("decimals"))), "<small>%s</small>" % e(s["name"]) if len(series) > 1 else ""))
    return '<div class="stat">%s</div>' % "".join(cells)


def table(panel, series, *_):
    hidden = set()
    for change in panel.get("transformations", []):
        hidden |= set(change["options"].get("excludeByName", {}))
    columns = sorted({label for s in series for label in s["metric"]} - hidden) + ([] if "Value" in hidden else ["Value"])
    rows = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % e(number(last(s), panel["fieldConfig"]["defaults"]["unit"]) if c == "Value" else s["metric"].get(c, "")) for c in columns) for s in series[:ROWS_MAX])
    more = "<p>and %d more rows</p>" % (len(series) - ROWS_MAX) if len(series) > ROWS_MAX else ""
    return '<div class="table"><table><tr>%s</tr>%s</table>%s</div>' % ("".join("<th>%s</th>" % e(c) for c in columns), rows, more)


def bars(panel, series, *_):
    defaults = panel["fieldConfig"]["defaults"]
    high = defaults.get("max", max(last(s) for s in series) or 1)
    return "".join('<div class="bar"><span>%s</span><i><b style="width:%.1f%%;background:%s"></b></i><span>%s</span></div>' % (
        e(s["name"]), 100 * min(1, max(0, last(s)) / high), colour_of(last(s), defaults), e(number(last(s), defaults["unit"]))) for s in series[:ROWS_MAX])


def cells(panel, series, width, height, paint):
    """A line per series, a cell per value."""
    left, shown = 150, series[:ROWS_MAX]
    tall = min(26, (height - 10) / max(1, len(shown)))
    every = [float(t) for s in shown for t, _ in s["values"]]
    t0, t1 = min(every), max(max(every), min(every) + 1)
    wide = (width - left) / len(set(every))
    parts = []
    for i, s in enumerate(shown):
        parts.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (left - 6, tall * (i + 0.65), e(s["name"][:22])))
        parts += ['<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>' % (left + (width - left - wide) * (float(t) - t0) / (t1 - t0), tall * i, wide + 0.5, tall - 2, paint(float(v))) for t, v in s["values"]]
    return '<svg width="%d" height="%d" role="img">%s</svg>' % (width, max(tall * len(shown), tall), "".join(parts))


def state_timeline(panel, series, width, height):
    options = {k: v for m in panel["fieldConfig"]["defaults"]["mappings"] for k, v in m["options"].items()}
    key = "".join('<span><i style="background:%s"></i>%s</span>' % (NAMED[o["color"]], e(o["text"])) for o in options.values())
    return cells(panel, series, width, height, lambda v: NAMED[options["%g" % v]["color"]] if "%g" % v in options else "#888") + '<div class="legend">%s</div>' % key


def status_history(panel, series, width, height):
    values = [float(v) for s in series for _, v in s["values"] if math.isfinite(float(v))]
    low, high = axis(values, panel["fieldConfig"]["defaults"], False)
    return cells(panel, series, width, height, lambda v: "hsl(%d 80%% 45%%)" % (220 - 220 * min(1, max(0, (v - low) / (high - low)))))


def heatmap(panel, series, width, height):
    """A line per bucket of values, a cell per time: how many series have a value in the bucket."""
    size = float(panel["options"]["calculation"]["yBuckets"]["value"])
    counts = {}
    for s in series:
        for t, v in s["values"]:
            if math.isfinite(float(v)):
                of_bucket = counts.setdefault(math.floor(float(v) / size), {})
                of_bucket[t] = of_bucket.get(t, 0) + 1
    if not counts:
        return ""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    lines = [{"name": "%s .." % number(b * size, unit), "values": sorted(counts[b].items())} for b in range(max(counts), min(counts) - 1, -1) if b in counts]
    most = max(n for of_bucket in counts.values() for n in of_bucket.values())
    return cells(panel, lines, width, height, lambda n: "hsl(24 90%% %d%%)" % (90 - 50 * n / most))


DRAWN = {"timeseries": time_series, "stat": stat, "table": table, "bargauge": bars, "gauge": bars, "state-timeline": state_timeline,
         "status-history": status_history, "heatmap": heatmap}
INSTANT = ("stat", "table", "bargauge", "gauge")


def ask_panel(panel, source, end):
    """The series of a panel, and how many each target has."""
    series, counts = [], []
    for target in panel["targets"]:
        ask = source.instant if panel["type"] in INSTANT else source.range
        got = ask(target["expr"])
        while not got and time.monotonic() < end:
            time.sleep(1)
            got = ask(target["expr"])
        counts.append(len(got))
        series += [dict(s, name=name_of(s["metric"], target.get("legendFormat", ""))) for s in got]
    return series, counts


def draw_panel(panel, series):
    place = panel["gridPos"]
    width, height = place["w"] * COLUMN_PX - 30, place["h"] * ROW_PX - 92
    if panel["type"] not in DRAWN:
        raise SystemExit("%s: panels of type %s are not supported: add a function to DRAWN" % (panel["title"], panel["type"]))
    body = DRAWN[panel["type"]](panel, series, width, height) if series else '<p class="nodata">%s</p>' % e(panel["fieldConfig"]["defaults"]["noValue"])
    links = " ".join('<a href="%s">%s</a>' % (e(link["url"].replace("${runbook}", "../../docs/operations.md")), e(link["title"])) for link in panel["links"])
    style = "grid-column:%d/span %d;grid-row:%d/span %d" % (place["x"] + 1, place["w"], place["y"] + 1, place["h"])
    return '<section class="panel%s" style="%s"><h3>%s %s</h3><p>%s</p>%s</section>' % ("" if series else " empty", style, e(panel["title"]), links, e(panel["description"]), body)


STYLE = """body{font:13px/1.35 system-ui,sans-serif;margin:16px;background:#f4f5f5;color:#1f2328;width:1400px}h1{font-size:20px;margin:24px 0 4px}
.board{display:grid;grid-template-columns:repeat(24,58px);grid-auto-rows:38px;width:1392px}.row{grid-column:1/25;font-size:15px;font-weight:600;align-self:end}
.panel{background:#fff;border:1px solid #d0d7de;border-radius:3px;margin:3px;padding:6px 10px;overflow:hidden;box-sizing:border-box}
.panel h3{font-size:13px;margin:0}.panel h3 a{float:right;font-weight:400;font-size:12px}.panel>p{margin:0;color:#59636e;font-size:11px;max-height:30px;overflow:hidden}
.empty{background:#fff5f5;border-color:#c4162a}.nodata{font-size:14px!important;color:#59636e;text-align:center;margin-top:16px!important}
.stat{display:flex;gap:6px;margin-top:6px}.stat div{flex:1;text-align:center;padding:8px 2px;border-radius:3px}.stat b{font-size:21px;display:block}
svg text{font-size:11px;fill:#424a53}.grid{stroke:#e4e6e8}.threshold{stroke-dasharray:5 3;stroke-width:1.2}
.legend{font-size:11px;max-height:30px;overflow:hidden}.legend span{margin-right:10px}.legend i{display:inline-block;width:10px;height:4px;margin-right:4px;vertical-align:middle}
.table{overflow:hidden;max-height:225px;margin-top:4px}table{border-collapse:collapse;font-size:11px}td,th{border-bottom:1px solid #e4e6e8;padding:2px 8px 2px 0;text-align:left}
.bar{display:flex;gap:8px;align-items:center;margin:6px 0}.bar>span{width:110px;font-size:12px}.bar>i{flex:1;background:#eaeef2;height:14px}.bar b{display:block;height:14px}"""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--prometheus", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--cluster", default=".*")
    p.add_argument("--absent-cluster")
    p.add_argument("--minutes", type=int, default=5)
    p.add_argument("--wait", type=float, default=60)
    p.add_argument("--title", default="Dashboards")
    p.add_argument("dashboards", nargs="+")
    a = p.parse_args()
    source, end = Source(a.prometheus, a.cluster, a.minutes), time.monotonic() + a.wait
    page = ['<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>%s</title><style>%s</style>' % (e(a.title), STYLE)]
    for file in a.dashboards:
        with open(file, encoding="utf-8") as f:
            board = json.load(f)
        page.append('<h1 id="%s">%s</h1><p>%s</p><div class="board">' % (board["uid"], e(board["title"]), e(board["description"])))
        for panel in board["panels"]:
            if panel["type"] == "row":
                page.append('<div class="row" style="grid-row:%d">%s</div>' % (panel["gridPos"]["y"] + 1, e(panel["title"])))
                continue
            series, counts = ask_panel(panel, source, end)
            page.append(draw_panel(panel, series))
            for target, count in zip(panel["targets"], counts):
                line = {"dashboard": board["uid"], "panel": panel["title"], "expr": target["expr"], "series": count}
                if a.absent_cluster:
                    line["elsewhere"] = sum(last(s) != 0 for s in source.instant(target["expr"], a.absent_cluster))
                print(json.dumps(line))
        page.append("</div>")
    with open(a.out, "w", encoding="utf-8") as f:
        f.write("".join(page) + "</html>\n")


if __name__ == "__main__":
    main()
