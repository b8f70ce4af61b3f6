"""The chart, its value sets and its renders."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path

import helm_python
import yaml

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "helm/kafila"
TESTS = ROOT / "helm/tests"
RELEASE = {"name": "kafila", "namespace": "kafila"}


def value_sets():
    """Name -> values, of every file in helm/tests/values."""
    files = sorted((TESTS / "values").glob("*.yaml"))
    return {file.stem: yaml.safe_load(file.read_text()) for file in files}


def merged(base, over):
    """`base` with the values of `over`, as Helm merges values files."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


def render(values, chart=CHART, release=RELEASE):
    """Template path -> text, of the templates that render anything."""
    with quiet(), helm_python.Chart.load(str(chart)) as loaded:
        texts = loaded.render(values, is_install=True, **release)
    return {path: text for path, text in sorted(texts.items()) if text.strip()}


def objects(texts):
    """The objects in rendered templates."""
    documents = []
    for path, text in texts.items():
        if not path.endswith("NOTES.txt"):
            documents += [document for document in yaml.safe_load_all(text) if document]
    return documents


@contextmanager
def quiet():
    """Without the lines that Helm's engine writes to the error output."""
    sys.stderr.flush()
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
