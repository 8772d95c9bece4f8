"""Montages of EEG and similar caps: is each channel where its label says?  (extra ``eeg``)"""

from symlift.eeg.montages import check_montage, match_montage
from symlift.eeg.results import MontageCheck, MontageMatch
from symlift.maps import MapFault, MapVerdict

__all__ = [
    "MapFault",
    "MapVerdict",
    "MontageCheck",
    "MontageMatch",
    "check_montage",
    "match_montage",
]
