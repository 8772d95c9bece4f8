"""Probes of electrophysiological recordings: which wire is which electrode?  (extra ``ephys``)"""

from symlift.ephys.probes import ProbeCheck, ProbeMatch, check_probe, match_probe, recover_probe

__all__ = ["ProbeCheck", "ProbeMatch", "check_probe", "match_probe", "recover_probe"]
