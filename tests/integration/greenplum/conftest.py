"""Tests of a Greenplum are not even collected where none is given; the last lines of a test run say
so.
"""

from __future__ import annotations

import greenplum

collect_ignore_glob = [] if greenplum.given() else ["test_*.py"]
