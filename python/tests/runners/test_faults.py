"""The run description of the parts with planted faults."""

from __future__ import annotations

from wirepaint.runners.testbed import faults


def test_a_value_is_replaced_multiplied_or_raised_for_one_element_or_for_all() -> None:
    run = {"network": {"rate": 10}, "responses": [{"think": 1}, {"think": 2}], "tls": "1.3"}
    planted = [
        {
            "at": "run",
            "set": {"network.rate": {"times": 0.5}, "responses.*.think": {"plus": 5}, "tls": "1.2"},
        },
        {"at": "run", "set": {"responses.1.think": 0}},
    ]
    told = faults.described(run, planted)
    assert told == {"network": {"rate": 5}, "responses": [{"think": 6}, {"think": 0}], "tls": "1.2"}
    assert run["network"] == {"rate": 10}


def test_without_a_fault_the_description_is_the_runs() -> None:
    run = {"a": 1}
    assert faults.described(run, [{"at": "path", "in": "server", "do": "true"}]) is run
