from __future__ import annotations

from collections.abc import Iterator

import pytest
from dask_cluster import Cluster, cluster


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("dask")) as started:
        started.start_worker()
        yield started
