"""Events of any form to columns: only the needed paths, and a reason for every event that cannot be used."""

from headgate.events.cloudevents import from_cloudevents, read_cloudevents
from headgate.events.csv import read_csv
from headgate.events.decoder import decode
from headgate.events.json_lines import read_json_lines
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits
from headgate.events.reader import read
from headgate.events.tabular import read_arrow, read_parquet
from headgate.events.xml import from_xml, read_xml

__all__ = [
    "DEFAULT_LIMITS",
    "Decoded",
    "Limits",
    "decode",
    "from_cloudevents",
    "from_xml",
    "read",
    "read_arrow",
    "read_cloudevents",
    "read_csv",
    "read_json_lines",
    "read_parquet",
    "read_xml",
]
