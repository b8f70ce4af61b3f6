"""Breaks copies of the chart on purpose: each break has to be found, with the expected message."""

import shutil
import tempfile
from pathlib import Path

import yaml

from . import network, refusals
from .chart import CHART, value_sets


def run(file, general, release_of, facts):
    """Returns the breaks that were missed."""
    missed = []
    graph = network.call_graph()
    for case in yaml.safe_load(file.read_text()):
        assert case["found"], f"{case['break']}: which message?"
        with tempfile.TemporaryDirectory() as directory:
            chart = Path(directory) / "kafila"
            shutil.copytree(CHART, chart)
            if "calls" in case:
                added = network.calls(case["service"], case["calls"], network.served_by())
            else:
                added = set()
                place = chart / case["file"]
                text = place.read_text()
                assert case["old"] in text, f"{case['file']} does not contain {case['old']!r}"
                place.write_text(text.replace(case["old"], case["new"], case.get("times", -1)))
            found = problems(case, chart, graph | added, general, release_of, facts)
        hit = [problem for problem in found if case["found"] in problem]
        print(f"{'found ' if hit else 'MISSED'} {case['break']}\n       {(hit or found or ['nothing'])[0][:200]}", flush=True)
        if not hit:
            missed.append(case["break"])
    return missed


def problems(case, chart, graph, general, release_of, facts):
    try:
        if "set" not in case:
            return list(general(chart))
        if case["set"] == "refused":
            return list(refusals.check(chart))
        return list(facts(release_of(value_sets()[case["set"]], chart)[1], graph))
    except Exception as error:  # A chart that does not render is found, too.
        return [f"{type(error).__name__}: {error}"]
