"""Renders against the files in helm/tests/golden; the diff of these files shows what a change does."""

import difflib

from .chart import TESTS

GOLDEN = TESTS / "golden"


def document(texts):
    return "".join(f"# {path}\n{text.strip()}\n\n" for path, text in texts.items())


def check(name, texts):
    file = GOLDEN / f"{name}.yaml"
    if not file.exists():
        yield f"{file.name} does not exist (scripts/check-helm --update)"
        return
    old, new = file.read_text().splitlines(), document(texts).splitlines()
    diff = list(difflib.unified_diff(old, new, file.name, "rendered", lineterm="", n=1))
    if diff:
        shown = "\n       ".join(diff[:40])
        yield f"the render differs (scripts/check-helm --update writes it anew):\n       {shown}"


def update(renders):
    GOLDEN.mkdir(exist_ok=True)
    for file in GOLDEN.glob("*.yaml"):
        file.unlink()
    for name, texts in renders.items():
        (GOLDEN / f"{name}.yaml").write_text(document(texts))
