"""Tides from measured loads, on samples of our own and on the public files."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflow_opt.errors import TraceError, UsageError
from edgeflow_opt.workloads import cluster, read_tide

HELIOS = """vc,local_time,total_gpu_num,running_gpu_num,idle_gpu_num_min
a,2020-05-01 00:00,64,59.0,16
b,2020-05-01 00:00,16,0.0,4
a,2020-05-01 00:10,64,0.0,64
b,2020-05-01 00:10,16,0.0,16
"""

PODS = """minute,pod000,pod001,pod002
0,50.0,,0.0
5,100.0,90.0,80.0
10,0.0,,
"""


def write(folder: Path, text: str) -> Path:
    """Return the path of a file with this text."""
    path = folder / "tide.csv"
    path.write_text(text)
    return path


def test_idle_gpus_are_summed_over_virtual_clusters(tmp_path: Path) -> None:
    """A quarter of 80 GPUs is idle, then all of them: 2 of 8 servers, then 8."""
    assert read_tide(write(tmp_path, HELIOS), 8) == ((0.0, 2), (600.0, 8))


def test_duty_cycles_are_averaged_over_pods_with_a_sample(tmp_path: Path) -> None:
    """Loads of 25, 90 and 0 % leave 7, 1 and 10 of ten servers."""
    assert read_tide(write(tmp_path, PODS), 10) == ((0.0, 7), (300.0, 1), (600.0, 10))


def test_a_measured_tide_begins_with_the_trace_and_repeats(tmp_path: Path) -> None:
    """Fifteen minutes are repeated from the first arrival on until the last deadline."""
    edge = cluster(4, 10, tide=write(tmp_path, PODS), start_s=1000.0, end_s=2500.0)[1]
    assert edge.capacity == (
        (1000.0, 7), (1300.0, 1), (1600.0, 10), (1900.0, 7), (2200.0, 1), (2500.0, 10),
    )  # fmt: skip


def test_faults_of_measured_loads_are_named(tmp_path: Path) -> None:
    """More idle GPUs than there are, no date, and a duty cycle above 100 % are refused."""
    with pytest.raises(TraceError, match="row 3, idle_gpu_num_min: must not be above"):
        read_tide(write(tmp_path, HELIOS.replace("16,0.0,4", "16,0.0,40")), 8)
    with pytest.raises(TraceError, match="local_time: must be a date and time"):
        read_tide(write(tmp_path, HELIOS.replace("2020-05-01 00:10", "noon", 1)), 8)
    with pytest.raises(TraceError, match="row 3, pod000: must be from 0 to 100"):
        read_tide(write(tmp_path, PODS.replace("100.0", "100.5")), 8)
    with pytest.raises(UsageError, match="say how many edge servers there are"):
        read_tide(write(tmp_path, PODS))


@pytest.mark.parametrize(
    "name",
    [
        "edge_helios_earth_idle/vc_gpu_10min.csv.gz",
        "edge_genai_gpu_load/gpu_duty_cycle_5min.csv.gz",
    ],
)
def test_public_tides_are_read(data_folder: Path, name: str) -> None:
    """Both files give a tide that moves, within the servers there are."""
    units = [count for _, count in read_tide(data_folder / name, 100)]
    assert len(set(units)) > 10
    assert 0 <= min(units) <= max(units) <= 100
