"""Checks the wait counters of gfx11 and gfx12 over a kernel's control flow.

A load's register is not there until a wait says so; neither reads nor writes of it are held up by
the hardware. From "Data Dependency Resolution" of the RDNA3 and RDNA4 ISA guides:

- every memory operation counts up one counter when it is issued, or two, and down when it is done;
- loads of one counter are done in their order, except those of scalars, which come in any order,
  and FLAT ones; so a wait for n leaves the last n of an ordered kind, and all of an unordered one
  unless n is 0.

gfx11 has vmcnt (vector loads), vscnt (vector stores) and lgkmcnt (LDS, scalar loads); gfx12 has
loadcnt, storecnt, dscnt (LDS) and kmcnt (scalar loads). For each register the checker keeps how
many operations of its load's kind have been issued after it at least: 0 is the latest. The load is
done after a wait for n or fewer of them, and when the counter could not hold more: a wave waits
before an operation that its counter has no room for. Where paths join, the smaller number counts,
so that the states grow to a fixed point.

At a barrier, other waves may read and overwrite what this one has in LDS: no LDS operation of the
wave may be outstanding.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import functools
import re

import assembly

MOST = 63  # that a counter of operations in order counts to
UNORDERED = -1  # in place of a number of later operations

# Mnemonic, the counters that it counts, whether they are in order, whether it loads registers.
OPERATIONS = [
    (r"(buffer|tbuffer|global|scratch)_(load|atomic)", ["load"], True),
    (r"(buffer|tbuffer|global|scratch)_store", ["store"], True),
    (r"flat_(load|atomic)", ["load", "lds"], False),
    (r"flat_store", ["store", "lds"], False),
    (r"global_inv", ["load"], True),
    (r"global_wb", ["store"], True),
    (r"ds_", ["lds"], True),
    (r"s_(buffer_)?load|s_memtime|s_sendmsg_rtn", ["scalar"], False),
]
# The counter that counts each kind.
COUNTERS = {
    "gfx11": {"load": "vmcnt", "store": "vscnt", "lds": "lgkmcnt", "scalar": "lgkmcnt"},
    "gfx12": {"load": "loadcnt", "store": "storecnt", "lds": "dscnt", "scalar": "kmcnt"},
}
# The kinds whose loads of one register write it in their order, too; on gfx12, vector loads count
# in order but may write in another (LLVM's FeatureVmemWriteVgprInOrder, which gfx12 has not).
WRITES_IN_ORDER = {"gfx11": ("load", "lds"), "gfx12": ("lds",)}
LDS_WRITE, LDS_READ = ("LDS write", 0), ("LDS read", 0)
BARRIERS = ("s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst")


def family(target):
    for name in COUNTERS:
        if target.startswith(name):
            return name
    raise ValueError(f"the wait counters of {target} are not known")


def waited(instruction, gfx):
    """{counter: n} of a wait instruction, {} of any other."""
    name = instruction.mnemonic
    if not name.startswith("s_wait"):
        return {}
    text = " ".join(instruction.operands)
    number = re.search(r"(?:^|\s)(0x[0-9a-f]+|\d+)$", text)
    value = int(number[1], 0) if number else 0
    if name == "s_waitcnt" and gfx == "gfx11":
        named = {c: int(n) for c, n in re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", text)}
        if not named and number:
            named = {"lgkmcnt": value >> 4 & MOST, "vmcnt": value >> 10 & MOST}
        return named
    single = re.match(r"s_waitcnt_(vmcnt|vscnt|lgkmcnt)$", name)
    if single:
        return {single[1]: value}
    if name in ("s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt"):
        return {name.split("_")[2]: value >> 8 & MOST, "dscnt": value & MOST}
    single = re.match(r"s_wait_(loadcnt|storecnt|dscnt|kmcnt)$", name)
    if single:
        return {single[1]: value}
    return {counter: 0 for counter in COUNTERS[gfx].values()} if name == "s_wait_idle" else {}


@functools.cache
def operation(mnemonic):
    """(kinds, in order) of a memory operation, or None."""
    for pattern, kinds, ordered in OPERATIONS:
        if re.match(pattern, mnemonic):
            return kinds, ordered
    return None


def is_lds_load(name):
    """Whether a ds_ instruction gives registers something."""
    return bool(re.match(r"ds_(load|read|\w+_rtn|b?permute|swizzle|consume|append)", name))


class State:
    """What may be outstanding: {(register, kind): operations of the kind since, or UNORDERED}."""

    def __init__(self, pending=None):
        self.pending = dict(pending or {})

    def join(self, other):
        """Whether this state became larger by the other."""
        grown = False
        for key, since in other.pending.items():
            if since < self.pending.get(key, MOST + 1):
                self.pending[key] = since
                grown = True
        return grown

    def wait(self, counts, gfx):
        for (register, kind), since in list(self.pending.items()):
            limit = counts.get(COUNTERS[gfx][kind])
            if limit is not None and (limit == 0 or since >= limit):
                del self.pending[register, kind]

    def issue(self, kinds, ordered, results):
        for kind in kinds:
            for key, since in list(self.pending.items()):
                if ordered and key[1] == kind and since + 1 >= MOST:
                    del self.pending[key]
                elif ordered and key[1] == kind and since != UNORDERED:
                    self.pending[key] = since + 1
            for register in results:
                self.pending[register, kind] = 0 if ordered else UNORDERED


def results_of(instruction):
    """What a memory operation makes outstanding: registers, and LDS for barriers."""
    name = instruction.mnemonic
    if name.startswith("ds_"):
        if is_lds_load(name):
            return instruction.loaded() | {LDS_READ}
        return {LDS_WRITE}
    if name.startswith("flat_store"):
        return {LDS_WRITE}
    if "_store" in name or name.startswith(("global_inv", "global_wb")):
        return set()
    if "_atomic" in name and not re.search(r"\b(glc|th:TH_ATOMIC_RETURN)\b", instruction.text):
        return set()
    return instruction.loaded()


def step(state, instruction, gfx, report):
    """Takes the state over an instruction; report(text) is called for what is wrong."""
    counts = waited(instruction, gfx)
    if counts:
        state.wait(counts, gfx)
    issued = operation(instruction.mnemonic)
    results = results_of(instruction) if issued else set()
    pending = [key for key in state.pending if key[0] in instruction.touched]
    for register, kind in sorted(pending) if pending else ():
        # A later load of the same kind may write it later, if it does not read it for an address.
        same = (issued and issued[1] and kind in issued[0] and kind in WRITES_IN_ORDER[gfx]
                and state.pending[register, kind] != UNORDERED)
        only_result = register in results and not any(
            register in assembly.registers(text) for text in instruction.operands[1:])
        if not (same and only_result):
            report(f"{name_of(register)} may still be loaded ({COUNTERS[gfx][kind]})")
    if instruction.mnemonic in BARRIERS:
        for what in (LDS_WRITE, LDS_READ):
            if (what, "lds") in state.pending:
                report(f"an {what[0]} may be outstanding at a barrier")
    if issued:
        kinds, ordered = issued
        if "_atomic" in instruction.mnemonic and not results:
            kinds = ["store" if kind == "load" else kind for kind in kinds]
        state.issue(kinds, ordered, results)


def name_of(register):
    file, number = register
    return f"{file}{number}" if file in ("v", "s", "ttmp") else file


def check(kernel):
    """[(line, what is wrong)] of a kernel, in order of the lines."""
    gfx = family(kernel.target)
    if not kernel.blocks:
        return []
    entries = {0: State()}
    todo = [0]
    while todo:
        index = todo.pop()
        state = State(entries[index].pending)
        for instruction in kernel.blocks[index].instructions:
            step(state, instruction, gfx, lambda text: None)
        for successor in kernel.blocks[index].successors:
            if successor not in entries:
                entries[successor] = State(state.pending)
                todo.append(successor)
            elif entries[successor].join(state) and successor not in todo:
                todo.append(successor)
    problems = []
    for index, block in enumerate(kernel.blocks):
        state = State(entries[index].pending) if index in entries else State()
        for instruction in block.instructions:
            step(state, instruction, gfx,
                 lambda text: problems.append((instruction.line, f"{text}: {instruction.text}")))
    return problems
