"""The processes in which this machine's cores simulate batches."""

from __future__ import annotations

import pytest

from wirepaint.cluster import local


def test_a_process_whose_asker_is_gone_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    process = local._Process()
    process.connection.send((b"no batch", {}))
    # Closed before it can answer: it reads the batch, and what it says about it has no reader.
    assert process.end() == 0
    assert capfd.readouterr().err == ""
