"""[capture]: which packets testbed runs keep."""

from __future__ import annotations

import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import plan
from wirepaint.runners.description import captured

FLOWS = """
title = "One flow"
backend = "{backend}"
{capture}
[scenarios]
network = ["lte"]
[[flows]]
name = "file"
bulk = "1 MB"
"""


def planned(folder, table, backend="simulator"):
    file = folder / "evaluation.toml"
    file.write_text(FLOWS.format(backend=backend, capture=table))
    return plan(file)


def test_without_the_table_nothing_is_captured(tmp_path):
    made = planned(tmp_path, "")
    assert made.resolved["capture"] is None
    assert captured(made.runs[0]) is None


def test_an_empty_table_keeps_whole_packets_up_to_100_mb_and_is_part_of_the_evaluation(tmp_path):
    made = planned(tmp_path, "[capture]")
    assert made.resolved["capture"] == {"snap_length": None, "size_limit": 100_000_000}
    described = captured(made.runs[0])
    assert described is not None
    assert (described.snap_length, described.size_limit) == (None, 100_000_000)


def test_lengths_and_limits_are_quantities(tmp_path):
    made = planned(tmp_path, '[capture]\nsnap_length = "128 B"\nsize_limit = "20 MB"')
    assert made.resolved["capture"] == {"snap_length": 128, "size_limit": 20_000_000}
    assert planned(tmp_path, '[capture]\nsnap_length = "full"').resolved["capture"]["snap_length"] is None


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (
            'snap_length = "20 B"',
            r'snap_length: found "20 B"; accepted: "full", or 94 B \(all headers\) to 65535 B',
        ),
        ("snap_length = 0", r'snap_length: found 0; accepted: "full", or 94 B'),
        ('snap_length = "all"', r'snap_length: found "all"; accepted: "full", or 94 B'),
        ('size_limit = "1 kB"', r'size_limit: found "1 kB"; accepted: 100 kB to 10 GB'),
        ('limit = "1 MB"', r"capture.limit: found .*; accepted: one of snap_length, size_limit"),
    ],
)
def test_other_values_are_refused(tmp_path, table, error):
    with pytest.raises(UsageError, match=error):
        planned(tmp_path, f"[capture]\n{table}")


def test_a_note_says_that_simulated_runs_have_none(tmp_path):
    assert "Simulated runs have no captures" in " ".join(planned(tmp_path, "[capture]").notes)
    assert planned(tmp_path, "").notes == []
