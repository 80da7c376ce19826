"""The format of lit's tests here: with sanitizers those that left_out.txt names are UNSUPPORTED; and where TCC_COUNTS
names a folder each test leaves there what it ran, for choose.py.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os

import lit.formats
import lit.Test
from choose import LIST


def read_list():
    with open(LIST, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


class Sampled(lit.formats.ShTest):
    def __init__(self, is_sanitized):
        super().__init__(execute_external=False)
        self.left_out = frozenset(read_list() if is_sanitized else [])

    def execute(self, test, lit_config):
        name, counts = "/".join(test.path_in_suite), os.environ.get("TCC_COUNTS")
        if name in self.left_out:
            return lit.Test.Result(lit.Test.UNSUPPORTED, "what it runs others run with sanitizers")
        if counts:
            file = os.path.join(counts, name, "%m.profraw")
            test.config.environment = {**test.config.environment, "LLVM_PROFILE_FILE": file}
        return super().execute(test, lit_config)
