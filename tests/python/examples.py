"""Runs the examples in the package's docstrings.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import doctest
import importlib
import pkgutil
import sys

import tcc

names = ["tcc"] + [f"tcc.{m.name}" for m in pkgutil.iter_modules(tcc.__path__)]
results = [doctest.testmod(importlib.import_module(name)) for name in names]
attempted = sum(r.attempted for r in results)
print(f"{attempted} examples")
sys.exit(any(r.failed for r in results) or attempted == 0)
