"""Objects against the schemas of Kubernetes and of the custom resources that the chart uses."""

import functools
import json
import re

import jsonschema
from kubernetes_validate import utils
from referencing import Registry, Resource

from .chart import TESTS

# The oldest version that Chart.yaml admits, and the newest known one.
VERSIONS = ("1.30.0", "1.37.0")


@functools.cache
def registry(version):
    directory = f"kubernetes-json-schema/v{version}-local-strict"
    contents = utils.schema_contents(f"{directory}/_definitions.json", version)
    return Resource.from_contents(contents) @ Registry()


@functools.cache
def validator(version, api_version, kind):
    custom = TESTS / "custom-resources" / f"{kind.lower()}.json"
    if custom.exists():
        return jsonschema.Draft202012Validator(json.loads(custom.read_text()))
    # As kubernetes_validate names its files; it would read the definitions again for each object.
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    name = f"kubernetes-json-schema/v{version}-local-strict/{kind.lower()}-{group}.json"
    schema = utils.schema_contents(name, version)
    return jsonschema.Draft202012Validator(
        schema, registry=Resource.from_contents(schema) @ registry(version)
    )


def check(documents):
    """Yields a problem for each violation."""
    for version in VERSIONS:
        for document in documents:
            kind = document["kind"]
            where = f"{kind} {document['metadata']['name']} (Kubernetes {version})"
            try:
                found = validator(version, document["apiVersion"], kind)
            except FileNotFoundError:
                yield f"{where}: no schema of {document['apiVersion']}"
                continue
            for error in found.iter_errors(document):
                yield f"{where}: {error.json_path}: {error.message[:300]}"
    names = [(d["kind"], d["metadata"]["name"]) for d in documents]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name[0]} {name[1]}: rendered twice"
