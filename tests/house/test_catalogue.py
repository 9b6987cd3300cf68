"""Every file of the catalogue loads, and has a description and a source."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from wirepaint import browsers, catalogue, pages
from wirepaint.evaluation import network
from wirepaint.schemas import FOLDER
from wirepaint.studies import model as studies
from wirepaint.studies import running

FREE_LICENCES = r"CC0|CC-BY|MIT|BSD|Apache|OGL|ISC|Public domain|Open Government"


@pytest.mark.parametrize("name", catalogue.names("network"))
def test_a_network_loads_and_names_its_source(name):
    loaded = network.load(name)
    assert loaded.name == name
    assert loaded.title and loaded.summary and loaded.source


def test_the_networks_that_the_product_promises_are_there():
    names = set(catalogue.names("network"))
    assert {"lte", "3g", "geo-satellite"} <= names
    assert len([name for name in names if name.startswith("wpt-")]) >= 5
    assert len([name for name in names if name.startswith("lighthouse-")]) >= 2
    varying = [name for name in names if network.load(name).down["capacity"]["kind"] == "trace"]
    assert len(varying) >= 2


@pytest.mark.parametrize(("name", "down_mbit", "one_way_ms"), [("lte", 25, 13), ("3g", 7, 25)])
def test_the_networks_of_the_fld_paper_have_its_numbers(name, down_mbit, one_way_ms):
    loaded = network.load(name)
    assert loaded.rate("down") == down_mbit * 1e6
    assert loaded.down["delay_ns"] == loaded.up["delay_ns"] == one_way_ms * 1_000_000


@pytest.mark.parametrize(("name", "folder"), pages.shipped().items())
def test_a_page_loads_and_has_a_free_licence_and_a_source(name, folder):
    page = pages.load(folder)
    assert page.title and page.summary and page.source
    assert re.search(FREE_LICENCES, page.licence, re.IGNORECASE), page.licence
    for resource in page.resources:
        if resource.body is not None:
            assert (folder / "bodies" / resource.body).is_file()


def test_six_pages_ship_and_two_have_the_shape_of_a_large_modern_page():
    shipped = [pages.load(folder) for folder in pages.shipped().values()]
    assert len(shipped) >= 6
    hosts = [{resource.url.split("/")[2] for resource in page.resources} for page in shipped]
    large = [
        page
        for page, own in zip(shipped, hosts, strict=True)
        if len(page.resources) >= 100 and len(own) >= 10
    ]
    assert len(large) >= 2


@pytest.mark.parametrize("name", catalogue.names("study"))
def test_a_study_loads_and_its_code_knows_every_measure(name):
    own_name, study = studies.load(name)
    assert own_name == name
    assert study.title and study.summary and study.source
    assert {sweep.measure for sweep in study.sweeps.values()} <= set(study.module().MEASURES)
    assert len({claim.id for claim in study.claims}) == len(study.claims)
    if study.is_evaluated:
        points = [point for sweep in study.sweeps.values() for point in sweep.points()]
        assert all(study.module().conditions(study, study.chosen({}), point).key for point in points)
        return
    planned = running.jobs(study, quick=True)
    scenes = [study.module().scene(study, study.chosen({}), job.point, job.seed) for job in planned]
    assert all(study.module().describe(study, study.chosen({}), scene, Path()) for scene in scenes[::50])


@pytest.mark.parametrize("name", catalogue.names("browser"))
def test_each_number_of_a_browser_has_its_source_and_the_schema_takes_all(name: str) -> None:
    entry = tomllib.loads(catalogue.find("browser", name, Path()).read_text())
    assert entry["engine"] and entry["versions"]

    def unsourced(value: Any, key: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield key
        elif not {"value", "from"} & value.keys():
            for name, part in value.items():
                yield from unsourced(part, f"{key}.{name}")
        elif value.keys() != {"value", "from"} or len(value["from"]) < 10:
            yield key

    assert list(unsourced(entry["browser"], "browser")) == []
    schema = json.loads((FOLDER / "run.schema.json").read_text())
    definition = {"$ref": "#/$defs/Browser", "$defs": schema["$defs"]}
    jsonschema.validate(browsers.numbers(name), definition)
    wrong = browsers.numbers(name) | {"pipeline": "one"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, definition)
