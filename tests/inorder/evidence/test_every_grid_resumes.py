"""Every grid's own cells, made by a cheap stand-in: ended at drawn moments, none that was finished is lost.

The grids are those of the commands; a key that is not the same in every process, or does not come back from JSON as it
was, makes its cell anew and is found by this.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import psutil
import pytest

from conformance.waiting import pass_time

MOST = 10
"""Cells of each grid."""
CELL_S = 0.004
LONGEST_S = 0.7
PROGRAM = f"""
import sys, time
from pathlib import Path

from chaos.scenario import names as scenario_names
from inorder.evidence import false_alarms, frozen, hunts, planted
from inorder.evidence.chaos_grid import cells as chaos_grid
from inorder.evidence.grid import run
from inorder.evidence.interop import __main__ as interop
from inorder.evidence.kill_matrix import matrix
from inorder.evidence.load import __main__ as load
from inorder.evidence.profile_grid import __main__ as profile_grid
from inorder.evidence.scenario_matrix import simulated, sockets
from inorder.evidence.options import GridOptions
from inorder.evidence.systems import __main__ as systems
from inorder.evidence.systems.table import systems as names_of_systems
from inorder.evidence.track_record import __main__ as track_record

GRIDS = {{
    "kill matrix": [matrix.cell_of(name, 1, 300) for name in matrix.chosen()[:{MOST}]],
    "planted": [planted.cell_of(change, 1, 20) for change in planted.all_changes()[:{MOST}]],
    "false alarms": false_alarms.shares(1, {MOST} * false_alarms.SHARE),
    "interop": [interop.cell_for(run, 1, 2) for run in interop.chosen_runs(())][:{MOST}],
    "features": [interop.features_for(run, interop.NAMES) for run in interop.directions()],
    "cases": [profile_grid.cases_cell(body) for body in profile_grid.BODIES],
    "profiles": [
        profile_grid.profiles_cell("reference", way, names, {{"seed": 1}})
        for way, names in profile_grid.ways(()).items()
    ][:{MOST}],
    "track record": [track_record.cell_for(each, 3) for each in track_record.ENTRIES[:{MOST}]],
    "chaos": [
        chaos_grid.cell_of("reference+tcp", name, "reference", 1)
        for name in scenario_names()[:{MOST}]
    ],
    "systems": [
        systems.cell_of(name, 1, None) for name in [*names_of_systems()][:{MOST}]
    ],
    "scenarios": list(
        simulated.cells_of(scenario_names()[:{MOST}], (1,), every=False)
    )[:{MOST}],
    "sockets": list(sockets.cells_of(["consumer-killed", "consumer-paused"], (1, 2))),
    "hunts": list(hunts.cells_of(hunts.bugs(), (1,), 1))[:{MOST}],
    "frozen": list(frozen.cells_of(()))[:{MOST}],
    "load": [load.turn_of(4, 1, load.WARM, turn, ("ours",)) for turn in range({MOST})],
}}

def stand_in(cell):
    time.sleep({CELL_S})
    return cell.name

print("ready", flush=True)
for name, cells in GRIDS.items():
    for done in run(cells, stand_in, Path(sys.argv[1]) / name):
        assert done.value == done.cell.name
        print(f"{{'resumed' if done.resumed else 'made'}} {{name}}: {{done.cell.name}}", flush=True)
print(f"over {{len(GRIDS)}}")
"""


def finished(stores: Path) -> dict[str, int]:
    """Every file that a finished cell has; its inode changes when it is written anew."""
    return {f"{path}": path.stat().st_ino for path in stores.glob("*/[!.]*.json")}


def one_go(program: Path, stores: Path, ended: tuple[float, signal.Signals] | None) -> list[str]:
    """Start the program; ended: after how many seconds of work, and how. What it said."""
    words = [sys.executable, str(program), str(stores)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == "ready\n"
        if ended is not None:
            children = psutil.Process(it.pid).children(recursive=True)
            pass_time(ended[0])
            it.send_signal(ended[1])
            assert children == []
        return it.stdout.read().splitlines()


@pytest.mark.long
@pytest.mark.parametrize(("seed", "ended"), [(1, 2), (2, 4)], ids=["short", "whole"])
def test_no_grid_loses_a_finished_cell(tmp_path: Path, seed: int, ended: int) -> None:
    """ended: so many times, by Ctrl-C or SIGKILL, before they come to their end."""
    draw = Random(seed)
    program, stores = tmp_path / "program.py", tmp_path / "stores"
    program.write_text(PROGRAM, encoding="utf-8")
    before: dict[str, int] = {}
    told: list[str] = []
    for _ in range(ended):
        how = draw.choice((signal.SIGINT, signal.SIGKILL))
        told += one_go(program, stores, (draw.uniform(0, LONGEST_S), how))
        after = finished(stores)
        assert {name: after.get(name) for name in before} == before
        before = after
    told += one_go(program, stores, None)
    after = finished(stores)
    assert {name: after.get(name) for name in before} == before
    made = [line for line in told if line.startswith("made ")]
    # Who is killed between a cell's last byte and its word says nothing of that cell: it is resumed.
    assert len(made) == len(set(made)) <= len(after)
    kinds = {Path(name).parent.name for name in after}
    assert told[-1] == f"over {len(kinds)}"
    assert min(sum(Path(n).parent.name == kind for n in after) for kind in kinds) >= 2
