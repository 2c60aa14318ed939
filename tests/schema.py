"""Hold a report against the published schema, with a validator of others."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPORT_SCHEMA = Path(__file__).parents[1] / "schema" / "report.schema.json"


def problems(folder: Path, *reports: Any) -> str:
    """Return what check-jsonschema has against *reports*, "" when nothing; *folder* is to write them to."""
    paths = []
    for index, report in enumerate(reports):
        path = folder / f"report-{index}.json"
        path.write_text(json.dumps(report), encoding="utf-8")
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--schemafile", str(REPORT_SCHEMA), *paths],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr
