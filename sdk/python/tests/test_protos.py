"""The checks of the protos notice what they should."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY


def check(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(root / "scripts" / "check-protos"), *arguments],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )


def test_the_protos_are_well() -> None:
    checked = check(REPOSITORY)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        # Breaks of the public API.
        ("v1/job", "  bool stop = 7;\n", "", 'Previously present field "7"'),
        ("v1/job", "  bool stop = 7;\n", "  bool stop = 77;\n", 'field "7"'),
        ("v1/job", "  bool stop = 7;\n", "  bool halted = 7;\n", "changed name"),
        ("v1/job", "  bool stop = 7;\n", "  string stop = 7;\n", "changed type"),
        ("v1/job", "  DIFF_TYPE_EDITED = 4;\n", "  DIFF_TYPE_OTHER = 4;\n", "DIFF_TYPE_EDITED"),
        (
            "v1/node",
            "  rpc List(ListNodesRequest) returns (ListNodesResponse);\n",
            "",
            'Previously present RPC "List"',
        ),
        # Files that were added after the first baseline.
        ("v1/csi", "  string plugin_id = 1;\n", "", 'Previously present field "1"'),
        ("v1/variable", "  string namespace = 1;\n", "  bytes namespace = 1;\n", "changed type"),
        # A field between services may get another name, but not another number.
        (
            "internal/v1/node",
            "  string secret = 2;\n}\n\nmessage RegisterNodeResponse",
            "}\n\nmessage RegisterNodeResponse",
            'field "2"',
        ),
        # Lint.
        ("v1/job", "package kafila.v1;", "package kafila.v2;", "kafila/v1"),
        (
            "v1/job",
            "message JobStub {",
            "message JobStub {\n  bool isNew = 99;",
            "lower_snake_case",
        ),
        (
            "v1/job",
            "enum DiffType {\n  // Never sent.\n  DIFF_TYPE_UNSPECIFIED",
            "enum DiffType {\n  // Never sent.\n  DIFF_TYPE_NIL",
            "_UNSPECIFIED",
        ),
        ("v1/job", "  // Creates an evaluation of a job.\n", "", "comment"),
        ("v1/job", "// A job in a list.\n", "", "the message JobStub has no comment"),
        ("v1/job", "EvaluateJobRequest)", "ScaleJobRequest)", "should be Evaluate…Request"),
        ("v1/job", "returns (EvaluateJobResponse)", "returns (JobStub)", "end with Response"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, file: str, old: str, new: str, complaint: str) -> None:
    shutil.copytree(REPOSITORY / "proto", tmp_path / "proto")
    (tmp_path / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "check-protos", tmp_path / "scripts")
    path = tmp_path / "proto" / "kafila" / f"{file}.proto"
    text = path.read_text()
    assert text.count(old) >= 1, "the proto has changed: change the test"
    path.write_text(text.replace(old, new, 1))
    checked = check(tmp_path)
    assert checked.returncode != 0
    assert complaint in checked.stdout + checked.stderr


def test_a_file_without_a_baseline_is_found(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "proto", tmp_path / "proto")
    (tmp_path / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "check-protos", tmp_path / "scripts")
    added = tmp_path / "proto" / "kafila" / "v1" / "added.proto"
    added.write_text(
        'syntax = "proto3";\n\npackage kafila.v1;\n\n// New.\nmessage Added {\n  bool is = 1;\n}\n'
    )
    checked = check(tmp_path)
    assert checked.returncode != 0
    for part in ("kafila/v1/added.proto", "run 'scripts/check-protos baseline'"):
        assert part in checked.stderr, checked.stdout + checked.stderr
    made = check(tmp_path, "baseline")
    assert made.returncode == 0, made.stdout + made.stderr
    checked = check(tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    added.write_text(added.read_text().replace("bool is", "string is"))
    assert "changed type" in check(tmp_path).stdout


def test_additions_and_names_between_services_are_free(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "proto", tmp_path / "proto")
    (tmp_path / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "check-protos", tmp_path / "scripts")
    jobs = tmp_path / "proto" / "kafila" / "v1" / "job.proto"
    jobs.write_text(
        jobs.read_text().replace("  bool stop = 7;\n", "  bool stop = 7;\n  bool new = 99;\n")
    )
    plans = tmp_path / "proto" / "kafila" / "internal" / "v1" / "plan.proto"
    plans.write_text(plans.read_text().replace("string eval_token = 2;", "string token = 2;"))
    checked = check(tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
