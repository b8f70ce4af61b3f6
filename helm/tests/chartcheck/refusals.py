"""Bad values are refused, by the schema or by a template, with a message that says what is wrong."""

import json

import helm_python
import yaml

from .chart import CHART, TESTS, merged, render, value_sets


def cases():
    return yaml.safe_load((TESTS / "refused.yaml").read_text())


def count():
    return len(cases())


def check(chart=CHART):
    base = value_sets()["external"]
    for case in cases():
        values = json.dumps(case["values"])
        try:
            render(merged(base, case["values"]), chart)
        except helm_python.HelmError as error:
            if case["message"] not in str(error):
                yield f"{values} is refused with another message: {error}"
        else:
            yield f"{values} is accepted"
