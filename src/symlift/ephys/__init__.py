"""Probes of electrophysiological recordings: which wire is which electrode?  (extra ``ephys``)"""

from symlift.ephys.kilosort import KilosortFolder, read_kilosort
from symlift.ephys.probes import check_probe, match_probe, recover_probe
from symlift.ephys.results import ProbeCheck, ProbeMatch, ProbeRank, WindowCheck
from symlift.maps import MapFault, MapVerdict

__all__ = [
    "KilosortFolder",
    "MapFault",
    "MapVerdict",
    "ProbeCheck",
    "ProbeMatch",
    "ProbeRank",
    "WindowCheck",
    "check_probe",
    "match_probe",
    "read_kilosort",
    "recover_probe",
]
