"""The README's table of values, made from values.yaml: each key's comment and default."""

import json
import re

import yaml

from .chart import CHART

BEGIN, END = "<!-- values: begin -->", "<!-- values: end -->"
KEY = re.compile(r"^( *)([\w-]+):(?: |$)")


def rows():
    """(key, default, comment) of every value that is not a section."""
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    path, comment, inside = [], [], None
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("#"):
            comment.append(bare.removeprefix("#").strip())
            continue
        match = KEY.match(line)
        if not match:
            comment = []
            continue
        depth, key = len(match[1]), match[2]
        if inside is not None and depth > inside:
            continue
        inside = None
        path = [*path[: depth // 2], key]
        value = values
        for part in path:
            value = value[part]
        # A comment on a section speaks of it, except where the section is one value, as `resources`.
        is_section = isinstance(value, dict) and value and key != "resources"
        if not is_section:
            inside = depth
            yield ".".join(path), value, " ".join(comment)
        comment = []


def table():
    lines = ["| Value | Default | Meaning |", "| --- | --- | --- |"]
    for key, value, comment in rows():
        default = "" if value in ("", None) else f"`{json.dumps(value)}`"
        lines.append(f"| `{key}` | {default} | {comment.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def written(readme):
    """The README with the table as it has to be."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def check(readme):
    for key, _, comment in rows():
        if not comment:
            yield f"values.yaml: {key} has no comment"
    if written(readme) != readme:
        yield "helm/kafila/README.md: the table of values is not that of values.yaml (scripts/check-helm --update)"


def undeclared(schema, values, definitions, path=()):
    """Values of the schema without a default in values.yaml, which the table would not show."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
    for key, item in schema.get("properties", {}).items():
        here = (*path, key)
        # Settings and pods of components are explained once; sections of Kubernetes by its own documentation.
        if key in ("settings", "global") or path[-1:] in (("resources",), ("pod",)) and len(path) > 1:
            continue
        if not isinstance(values, dict) or key not in values:
            if path[-1:] != ("resources",):
                yield f"values.yaml: {'.'.join(here)} is in the schema, but has no default"
            continue
        yield from undeclared(item, values[key], definitions, here)
