"""The table of docs/guide/metrics.md, made from the registry: ``python tests/house/metric_table.py``."""

from __future__ import annotations

from wirepaint.metrics import Metric, registry

HEAD = "| metric | unit | better | definition | source |\n|---|---|---|---|---|"


def row(metric: Metric) -> str:
    better = metric.better or ""
    unit = "label" if metric.label else metric.unit
    return f"| `{metric.name}` | {unit} | {better} | {metric.summary} | {metric.source} |"


def table() -> str:
    return "\n".join([HEAD, *map(row, registry().values())])


if __name__ == "__main__":
    print(table())
