"""State that was dealt out anew, as files in the checkpoint: a bucket takes up its file when it first works again."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import fs

from headgate.errors import EnvironmentProblem
from headgate.runtime.stateful.packing import from_bytes, to_bytes
from headgate.runtime.stateful.state_storage import InMemory
from headgate.spark.checkpoint import folder_of


def deal(checkpoint: str, generation: int, number: int, kept: InMemory) -> None:
    """Write the file of a bucket."""
    table = pa.table({"name": list(kept), "data": pa.array(list(kept.values()), pa.large_binary())})
    system, root = folder_of(checkpoint)
    path = _path(root, generation, number)
    system.create_dir(path.rpartition("/")[0], recursive=True)
    with system.open_output_stream(path) as f:
        f.write(to_bytes(table))


def dealt(checkpoint: str, generation: int, number: int) -> InMemory:
    system, root = folder_of(checkpoint)
    path = _path(root, generation, number)
    if system.get_file_info(path).type != fs.FileType.File:
        raise EnvironmentProblem(
            f"the checkpoint {checkpoint} lacks the state that was dealt to bucket {number}: {path}"
        )
    with system.open_input_stream(path) as f:
        table = from_bytes(f.read())
    return InMemory((row["name"], row["data"]) for row in table.to_pylist())


def _path(root: str, generation: int, number: int) -> str:
    return f"{root}/headgate/buckets/{generation}/{number}.state"
