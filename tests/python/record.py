"""Checks that the list in a wheel is of the files in it: record.py WHEEL

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import base64
import csv
import hashlib
import sys
import zipfile

wheel = zipfile.ZipFile(sys.argv[1])
record, = (name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
rows = {name: (digest, size) for name, digest, size in csv.reader(wheel.read(record).decode().splitlines())}
assert set(rows) == set(wheel.namelist()), set(rows) ^ set(wheel.namelist())
for name, (digest, size) in rows.items():
    data = wheel.read(name)
    expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    assert name == record or (digest, size) == (f"sha256={expected}", str(len(data))), name
for name in "tcc/py.typed", "tcc/__init__.py", record.replace("RECORD", "licenses/LICENSE"):
    assert name in rows, name
