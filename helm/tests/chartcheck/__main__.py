"""Runs the checks; see scripts/check-helm."""

import argparse
import json
import sys
import time

import helm_python
import yaml

from . import golden, misc, network, objects, prove, refusals, schemas, settings, table
from .chart import CHART, TESTS, merged, objects as parsed, quiet, render, value_sets
from .release import Release

SCHEMA = CHART / "values.schema.json"
README = CHART / "README.md"


def release_of(values, chart=CHART):
    """The rendered templates, and the release that they make."""
    texts = render(values, chart)
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    return texts, Release(parsed(texts), merged(defaults, values))


def bundled():
    """The release with every component, etcd included, and default policies."""
    return release_of(value_sets()["bundled"])[1]


def facts(release, graph):
    """Yields the problems of one release."""
    yield from schemas.check(release.documents)
    yield from objects.check(release)
    yield from network.check(release, graph)
    yield from settings.check_release(release)
    yield from misc.check(release)


def lint(values, chart=CHART):
    with quiet():
        report = helm_python.lint(str(chart), values, strict=True, namespace="kafila")
    # 1 is information; Helm would like an icon.
    messages = [m["error"] for m in report["messages"] if m["severity"] > 1]
    yield from dict.fromkeys([*messages, *report["errors"]])


def general(chart=CHART):
    """Yields the problems that no value set is needed for."""
    schema = json.loads((chart / "values.schema.json").read_text())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    yield from lint({}, chart)
    yield from settings.check_schema(schema)
    yield from table.undeclared(schema, values, schema["definitions"])
    # 53 bytes are Helm's limit for the name of a release.
    long = {"name": "r" * 53, "namespace": "kafila"}
    yield from objects.lengths(parsed(render(value_sets()["own-ca"], chart, long)))


def check():
    problems = []

    def report(step, found):
        found = list(found)
        problems.extend(found)
        print(f"{'ok    ' if not found else 'FAILED'} {step}", flush=True)
        for problem in found:
            print(f"       {problem}")

    report("chart: lint, settings in the schema, defaults", general())
    readme = README.read_text()
    report("chart: README", [*table.check(readme), *network.check_readme(readme, bundled())])
    graph = network.call_graph()
    base = value_sets()["external-tls"]

    def rendered(values):
        yield from facts(release_of(merged(base, values))[1], graph)

    report("chart: README's examples", misc.readme_examples(readme, rendered))
    for name, values in value_sets().items():
        texts, release = release_of(values)
        report(f"{name}: lint", lint(values))
        report(f"{name}: facts about {len(release.documents)} objects", facts(release, graph))
        report(f"{name}: golden render", golden.check(name, texts))
    count = refusals.count()
    report(f"{count} bad values are refused", refusals.check())
    return problems


def update():
    schema = json.loads(SCHEMA.read_text())
    settings.update_schema(schema)
    SCHEMA.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
    README.write_text(network.written(table.written(README.read_text()), bundled()))
    golden.update({name: render(values) for name, values in value_sets().items()})
    print("written: values.schema.json, README.md, helm/tests/golden; review the diff")


def main():
    parser = argparse.ArgumentParser(prog="scripts/check-helm")
    parser.add_argument("--update", action="store_true", help="write golden files, table and schema anew")
    parser.add_argument("--prove", action="store_true", help="break the chart, and require that it is found")
    arguments = parser.parse_args()
    started = time.monotonic()
    if arguments.update:
        return update()
    if arguments.prove:
        problems = prove.run(TESTS / "breaks.yaml", general, release_of, facts)
    else:
        problems = check()
    for note in sorted(settings.NOTES):
        print(f"note: {note}")
    print(f"{len(problems)} problems, {time.monotonic() - started:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
